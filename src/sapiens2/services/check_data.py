"""Looking through a folder of training data: what is there, and everything that is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.loaders.coco import CocoKeypoints
from sapiens2.data.loaders.folders import FolderSamples, TruthSource
from sapiens2.data.loaders.generated import (
    FOLDER_NAMES,
    KEYPOINT_FILES,
    KINDS,
    People,
    coco_file_alone,
    coco_files_in,
    find_folder,
    pictures_of,
    sources_in,
)
from sapiens2.data.sample import IGNORE_LABEL
from sapiens2.errors import InputError
from sapiens2.io import read_json
from sapiens2.types import PathLike

__all__ = ["DataReport", "check_data"]

_EMPTY = "pictures with empty "

_MAPS = ("parts", "normals", "depth", "alpha", "albedo")
"""Maps that can say that there is nothing in a picture."""

_PEOPLE, _SCENE = "people", "scene.json"
"""What `sapiens2 synth` writes beside the truth: its own account of what it made."""


@dataclass(frozen=True)
class DataReport:
    """What was found in a folder.

    Attributes:
        root: The folder.
        kinds: Kinds of truth that were recognised.
        counts: What was counted -> how often.
        notes: What is left out on purpose or not read.
        faults: One message for each fault: the file, and what is wrong with it.
    """

    root: Path
    kinds: tuple[str, ...]
    counts: dict[str, int]
    notes: tuple[str, ...]
    faults: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "root": str(self.root),
            "kinds": list(self.kinds),
            "counts": self.counts,
            "notes": list(self.notes),
            "faults": list(self.faults),
        }


def check_data(root: PathLike, *, on_read: Callable[[int, int], None] | None = None) -> DataReport:
    """Recognise the layout of a folder, read every file of it and collect every fault.

    Pictures lie in ``images`` (or ``rgb``), and truth beside it: ``parts`` or ``labels`` with ``classes.txt``,
    ``normals``, ``depth`` with ``intrinsics``, ``alpha`` with ``foreground``, ``trimap``, ``albedo``, ``masks``; and
    ``keypoints.json`` or ``annotations/*.json``, whose pictures may also lie in a folder that its name names.

    Args:
        root: The folder.
        on_read: Called with the number of pictures that have been read and of all.

    Returns:
        The report.

    Raises:
        InputError: There is no such folder, or nothing in it that is recognised.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    faults: list[str] = []
    notes: list[str] = []
    counts: Counter[str] = Counter()
    sources = _sources(folder, faults)
    images = find_folder(folder, "images")
    coco_files = [] if "keypoints" in sources else _coco_files(folder)
    if not sources and not coco_files and not faults:
        names = ", ".join(names[0] for names in FOLDER_NAMES.values())
        raise InputError(
            f"{folder} has nothing that is recognised; expected pictures in {folder / 'images'} and truth beside it: "
            f"{names}, or {', '.join(KEYPOINT_FILES)}."
        )
    if sources and images is None:
        faults.append(f"{folder}: there is no folder of pictures; expected one of {', '.join(FOLDER_NAMES['images'])}")
    elif sources and images is not None:
        _check_folders(images, [own for group in sources.values() for own in group], counts, notes, faults, on_read)
    for group in sources.values():
        for source in group:
            notes += _coco_notes(source.coco) if isinstance(source, People) else []
    for file in coco_files:
        _check_coco(folder, file, counts, notes, faults, on_read)
    _check_layout(folder, notes, faults)
    kinds = (*sources, *(["keypoints"] if coco_files else []))
    return DataReport(folder, kinds, dict(counts), tuple(notes), tuple(dict.fromkeys(faults)))


def _check_layout(folder: Path, notes: list[str], faults: list[str]) -> None:
    """What lies beside the kinds of truth, is not read by loaders, and may be meant to be."""
    alpha, colours, trimap = (find_folder(folder, kind) for kind in ("alpha", "foreground", "trimap"))
    if alpha and trimap:
        notes.append(f"{trimap} was not read, since there is alpha")
    if colours and alpha is None:
        faults.append(
            f"{colours}: there is no alpha beside it, so its colours are of no use; expected {folder / 'alpha'}"
        )
    if find_folder(folder, "images") is None:  # COCO's layout: folders have names of their own
        return
    notes += [f"{own} was not read: its name is none of those that are known" for own in _unknown_folders(folder)]
    for own in [*sorted((folder / _PEOPLE).glob("*.json")), folder / _SCENE]:
        try:
            if own.is_file():
                read_json(own)
        except InputError as error:
            faults.append(f"{error}; `sapiens2 synth`, run again as before, makes it anew")


def _unknown_folders(folder: Path) -> list[Path]:
    known = {name for names in FOLDER_NAMES.values() for name in names} | {"annotations", _PEOPLE}
    inner = (own for own in sorted(folder.iterdir()) if own.is_dir() and not own.name.startswith("."))
    return [own for own in inner if own.name not in known]


def _sources(folder: Path, faults: list[str]) -> dict[str, list[TruthSource]]:
    """Readers of each kind; a kind that cannot even be opened is a fault, and the others go on."""
    found: dict[str, list[TruthSource]] = {}
    for kind in KINDS:
        if kind == "keypoints" and coco_file_alone(folder) is not None:
            continue
        try:
            found |= sources_in(folder, strict=False, kinds=[kind])
        except InputError as error:
            faults.append(str(error))
    if "alpha" in found:
        found.pop("trimap", None)
    return found


def _coco_files(folder: Path) -> list[Path]:
    if (alone := coco_file_alone(folder)) is not None:
        return [alone]
    files = coco_files_in(folder)
    # With one file beside `images` the folders are read together; if that failed, the fault has been noted.
    return [] if len(files) == 1 else files


def _check_folders(
    images: Path,
    sources: list[TruthSource],
    counts: Counter[str],
    notes: list[str],
    faults: list[str],
    on_read: Callable[[int, int], None] | None,
) -> None:
    try:
        samples = FolderSamples(images, sources, strict=False)
    except InputError as error:
        faults.append(str(error))
        return
    faults += samples.problems
    classes: set[int] = set()
    stems = samples.all_stems()
    for index, stem in enumerate(stems, start=1):
        fields, found = samples.examine(stem)
        faults += found
        classes |= _count(fields, counts)
        if on_read is not None:
            on_read(index, len(stems))
    empty = [name for name in counts if name.startswith(_EMPTY)]
    notes += [f"{counts.pop(name)} {name}" for name in empty]
    if "parts" in counts:
        counts["classes seen"] = len(classes - {IGNORE_LABEL})


def _count(fields: dict[str, Any], counts: Counter[str]) -> set[int]:
    """Count what a picture has, and give its classes."""
    for name in fields:
        if name not in ("boxes_xywh", "keypoints", "intrinsics"):
            counts["pictures" if name == "image" else name.removeprefix("straight_")] += 1
        if name in _MAPS and not _shown(fields, name).any():
            counts[_EMPTY + name] += 1
    if "keypoints" in fields:
        counts["people"] += len(fields["keypoints"])
        counts["visible keypoints"] += int((fields["keypoints"][..., 2] > 0).sum())
    return set(np.unique(fields["parts"]).tolist()) if "parts" in fields else set()


def _shown(fields: dict[str, Any], name: str) -> NDArray[Any]:
    """What is known of a map after masks of surfaces; black is an albedo like others."""
    values = np.isfinite(fields[name]) if name == "albedo" else np.nan_to_num(fields[name])
    is_masked = name in ("normals", "depth", "albedo") and "surface" in fields
    return np.where(fields["surface"], values, 0) if is_masked else values


def _check_coco(
    folder: Path,
    file: Path,
    counts: Counter[str],
    notes: list[str],
    faults: list[str],
    on_read: Callable[[int, int], None] | None,
) -> None:
    try:
        samples = CocoKeypoints(pictures_of(folder, file), file, per_person=False, strict=False)
    except InputError as error:
        faults.append(str(error))
        return
    faults += samples.problems
    notes += _coco_notes(samples)
    for index in range(len(samples)):
        try:
            sample = samples[index]
        except InputError as error:
            faults.append(str(error))
        else:
            _count({"image": sample.image, "keypoints": sample.keypoints}, counts)
        if on_read is not None:
            on_read(index + 1, len(samples))


def _coco_notes(samples: CocoKeypoints) -> list[str]:
    return [f"{samples.annotation_file}: {count} {what}" for what, count in samples.notes.items()]
