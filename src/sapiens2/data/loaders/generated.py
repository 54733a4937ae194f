"""The folders that ``sapiens2 synth`` writes: every kind of truth beside the pictures."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sapiens2.assets import part_table
from sapiens2.data.loaders.albedo import Albedos
from sapiens2.data.loaders.class_maps import ClassMaps, read_class_list
from sapiens2.data.loaders.coco import CocoKeypoints
from sapiens2.data.loaders.depth import Cameras, Depths
from sapiens2.data.loaders.files import PICTURE_SUFFIXES
from sapiens2.data.loaders.folders import STATED_SIZE, FolderSamples, Listing, TruthSource, list_files
from sapiens2.data.loaders.mattes import Foregrounds, Mattes, Trimaps
from sapiens2.data.loaders.normals import Masks, Normals
from sapiens2.errors import InputError
from sapiens2.types import PathLike

__all__ = [
    "FOLDER_NAMES",
    "KEYPOINT_FILES",
    "GeneratedFolder",
    "People",
    "coco_file_alone",
    "coco_files_in",
    "find_folder",
    "pictures_of",
    "sources_in",
]

FOLDER_NAMES: dict[str, tuple[str, ...]] = {
    "images": ("images", "image", "rgb"),
    "parts": ("parts", "labels", "segmentation"),
    "normals": ("normals", "normal"),
    "depth": ("depth", "depths"),
    "intrinsics": ("intrinsics", "camera_intrinsics", "intrinsics.json", "intrinsics.txt"),
    "alpha": ("alpha", "alphas", "mattes"),
    "foreground": ("foreground", "foregrounds"),
    "trimap": ("trimap", "trimaps"),
    "albedo": ("albedo", "albedos"),
    "masks": ("masks", "mask"),
}
"""Kinds of truth, and the names that their folders (or files) can have below the root."""

KINDS = ("parts", "normals", "depth", "alpha", "trimap", "albedo", "masks", "keypoints")
"""Kinds of truth that stand for themselves."""

KEYPOINT_FILES = ("keypoints.json", "annotations.json", "annotations/*.json")
"""Where COCO files are looked for below the root."""


@dataclass(frozen=True)
class People:
    """Boxes and keypoints of all people of each picture, from a COCO file.

    Attributes:
        folder: The file.
        images: Folder of the pictures.
        strict: Whether any problem is an error.
    """

    folder: Path
    images: Path
    strict: bool = True
    coco: CocoKeypoints = field(init=False, repr=False)
    _index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        coco = CocoKeypoints(self.images, self.folder, per_person=False, strict=self.strict)
        object.__setattr__(self, "coco", coco)
        own = (index for index in range(len(coco)) if _is_in(self.images, coco.image_path(index)))
        object.__setattr__(self, "_index", {coco.image_path(index).stem: index for index in own})

    def listing(self) -> Listing:
        """Pictures that the file lists, by stem; those in other folders are problems: truth is joined by stem alone."""
        paths = [self.coco.image_path(index) for index in range(len(self.coco))]
        others = [
            f"{path}: {self.folder.name} lists it, and it does not lie in {self.images} itself"
            for path in paths
            if not _is_in(self.images, path)
        ]
        files = {stem: paths[index] for stem, index in self._index.items()}
        return Listing(files, (*self.coco.problems, *others))

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``boxes_xywh`` and ``keypoints``, no rows where there is nobody, and what the file says of the size."""
        number = self.coco.image_id(self._index[stem])
        people = self.coco.people_of(number)
        count = len(self.coco.keypoint_names)
        return {
            STATED_SIZE: self.coco.stated_size(number),
            "boxes_xywh": np.array([person.box_xywh for person in people], np.float32).reshape(-1, 4),
            "keypoints": np.array([person.keypoints for person in people], np.float32).reshape(-1, count, 3),
        }


class GeneratedFolder(FolderSamples):
    """Pictures with every kind of truth that lies beside them, one sample per picture.

    Args:
        root: Folder with ``images`` and any of ``parts``, ``normals``, ``depth`` with ``intrinsics``, ``alpha`` with
            ``foreground``, ``albedo`` and ``keypoints.json``.
        truths: Kinds to read; None for all that are there. Reading fewer is quicker.
        strict: As for :class:`~sapiens2.data.loaders.folders.FolderSamples`.

    Attributes:
        kinds: Kinds that are read.
        class_names: Classes of ``parts`` in order; those of the published models where there are none.
        keypoint_names: Names of the keypoints in order, or None where there are none.

    Raises:
        InputError: As for the base class, or a kind is asked for that is not there.
    """

    def __init__(self, root: PathLike, truths: Sequence[str] | None = None, *, strict: bool = True) -> None:
        images = find_folder(root, "images")
        if images is None:
            raise InputError(f"There is no folder of pictures in {root}; expected {FOLDER_NAMES['images']}.")
        found = sources_in(root, strict=strict, kinds=truths)
        if missing := sorted(set(truths or ()) - set(found)):
            there = kinds_in(root)
            near = [name for kind in missing for name in difflib.get_close_matches(kind, there, n=1)]
            raise InputError(
                f"There are no {', '.join(missing)} in {root}; it has {', '.join(there) or 'no truth'}."
                + (f" Did you mean {near[0]}?" if near else "")
            )
        super().__init__(images, [source for sources in found.values() for source in sources], strict=strict)
        self.kinds = tuple(found)
        self.class_names = _class_names(Path(root)) or part_table().names
        people = [source.coco.keypoint_names for source in self.sources if isinstance(source, People)]
        self.keypoint_names: tuple[str, ...] | None = people[0] if people else None


def find_folder(root: PathLike, kind: str) -> Path | None:
    """Find the folder (or file) of a kind of truth below a root, or None.

    Args:
        root: The root.
        kind: A key of :data:`FOLDER_NAMES`.
    """
    candidates = (Path(root) / name for name in FOLDER_NAMES[kind])
    return next((path for path in candidates if path.exists()), None)


def sources_in(
    root: PathLike, *, strict: bool = True, kinds: Sequence[str] | None = None
) -> dict[str, list[TruthSource]]:
    """Find the kinds of truth below a root.

    Args:
        root: The root.
        strict: Passed on to the reader of keypoints.
        kinds: Those to look for: parts, normals, depth, alpha, trimap, albedo, masks, keypoints; None for all.

    Returns:
        Kind -> readers. Depth comes with its cameras, alpha with its foregrounds; trimaps only where there is no alpha.

    Raises:
        InputError: A folder is there without what it needs: depth without intrinsics.
    """
    wanted = KINDS if kinds is None else kinds
    found: dict[str, list[TruthSource]] = {}

    def place(kind: str) -> Path | None:
        return find_folder(root, kind) if kind in wanted else None

    if folder := place("parts"):
        found["parts"] = [ClassMaps(folder, _class_names(Path(root)))]
    if folder := place("normals"):
        found["normals"] = [Normals(folder)]
    if folder := place("depth"):
        cameras = find_folder(root, "intrinsics")
        if cameras is None:
            raise InputError(f"{folder} has depth, and there are no camera matrices: expected {root}/intrinsics.")
        found["depth"] = [Depths(folder), Cameras(cameras)]
    if folder := place("alpha"):
        colours = find_folder(root, "foreground")
        found["alpha"] = [Mattes(folder), *([] if colours is None else [Foregrounds(colours)])]
    elif folder := place("trimap"):
        found["trimap"] = [Trimaps(folder)]
    if folder := place("albedo"):
        found["albedo"] = [Albedos(folder)]
    if folder := place("masks"):
        found["masks"] = [Masks(folder)]
    images = find_folder(root, "images")
    files = coco_files_in(root)
    if "keypoints" in wanted and images is not None and len(files) == 1:
        found["keypoints"] = [People(files[0], images, strict)]
    return found


def kinds_in(root: PathLike) -> list[str]:
    """Kinds of truth that have a folder or file below a root, which need not be of use."""
    named = [kind for kind in KINDS if kind in FOLDER_NAMES and find_folder(root, kind) is not None]
    return [*named, *(["keypoints"] if coco_files_in(root) else [])]


def coco_files_in(root: PathLike) -> list[Path]:
    """COCO files below a root, where :data:`KEYPOINT_FILES` says."""
    return [path for pattern in KEYPOINT_FILES for path in sorted(Path(root).glob(pattern))]


def pictures_of(root: PathLike, annotations: Path) -> Path:
    """Folder of a COCO file's pictures: one that its name names, as COCO has it, else ``images``, else the root.

    ``person_keypoints_val2017`` names ``val2017``: whole words, those at the end before others. A folder without
    pictures is none that is named.
    """
    name = annotations.stem

    def is_named(own: Path) -> bool:
        return re.search(rf"(?:^|[_\-. ]){re.escape(own.name)}(?:$|[_\-. ])", name) is not None and _has_pictures(own)

    named = [own for own in sorted(Path(root).iterdir()) if own.is_dir() and is_named(own)]
    if named:
        return max(named, key=lambda own: (name.endswith(own.name), len(own.name)))
    return find_folder(root, "images") or Path(root)


def coco_file_alone(root: PathLike) -> Path | None:
    """The one COCO file of a root, where its pictures do not lie as folders of truth need them: in ``images`` itself.

    Without ``images``, or with folders of pictures in it and no other truth, the file says where pictures are.
    """
    files, images = coco_files_in(root), find_folder(root, "images")
    if len(files) != 1:
        return None
    in_folders = images is not None and kinds_in(root) == ["keypoints"] and _is_of_folders(images)
    return files[0] if images is None or in_folders else None


def _is_of_folders(images: Path) -> bool:
    return not list_files(images, PICTURE_SUFFIXES).files and _has_pictures(images)


def _has_pictures(folder: Path) -> bool:
    return any(path.suffix.lower() in PICTURE_SUFFIXES for path in folder.rglob("*"))


def _is_in(folder: Path, path: Path) -> bool:
    return path.parent == folder or path.parent.resolve() == folder.resolve()


def _class_names(root: Path) -> tuple[str, ...] | None:
    files = [root / name for name in ("classes.txt", "classes.json")]
    return next((read_class_list(file) for file in files if file.is_file()), None)
