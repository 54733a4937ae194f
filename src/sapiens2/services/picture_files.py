"""Pictures named on a command line, and the names that their results get."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sapiens2.errors import InputError
from sapiens2.results import file_stem
from sapiens2.types import TASKS, PathLike

__all__ = ["PICTURE_SUFFIXES", "FoundPictures", "PictureFile", "find_pictures"]

PICTURE_SUFFIXES = frozenset(
    {
        *(".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg"),
        *(".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"),
    }
)
"""Files that count as pictures in folders and patterns, in any case. A file that is given itself may have any name."""

_UNSAFE = re.compile(r'[\\:*?"<>|\x00-\x1f]')
"""Characters that some file system does not take in a name."""


@dataclass(frozen=True)
class PictureFile:
    """A picture and where its results go.

    Attributes:
        path: The file.
        folder: Folder of the results, relative to the output.
        stem: How the names of the results begin; no other picture of the run has the same in this folder.
    """

    path: Path
    folder: Path
    stem: str

    @property
    def place(self) -> Path:
        """The picture below the folder that was given, such as ``sub/photo.jpg``; its name if it was given itself."""
        return self.folder / self.path.name


@dataclass(frozen=True)
class FoundPictures:
    """What a list of inputs stands for.

    Attributes:
        pictures: Each file once, in the order of the inputs; folders and patterns sorted by name.
        problems: One message for each input that stands for nothing.
    """

    pictures: tuple[PictureFile, ...]
    problems: tuple[str, ...]


def find_pictures(
    inputs: Sequence[PathLike], *, recursive: bool = False, output: PathLike | None = None
) -> FoundPictures:
    """Find the pictures that files, folders and patterns stand for.

    Results are named after the picture, without the suffix; pictures whose names differ in nothing else keep it. What
    was found in a sub-folder goes to the same sub-folder of the output. If that would still give two pictures one name
    (``a/x.jpg`` and ``b/x.jpg``), all results go where the pictures are, relative to the folder that they share.

    Args:
        inputs: Files, folders, and patterns such as ``"shoot/*.jpg"`` or ``"**/*.png"``.
        recursive: Whether folders are searched to any depth.
        output: Folder that results go to; what lies in it is not taken for input.

    Returns:
        The pictures, and what could not be found.

    Raises:
        InputError: ``output`` is one of the folders to search (its pictures and the results would mix), or a result
            might replace one of the pictures.
    """
    excluded = None if output is None else Path(output).resolve()
    found: dict[Path, tuple[Path, Path]] = {}
    problems = []
    for given in inputs:
        if not os.fspath(given).strip():
            problems.append("an input is empty; write . for the current folder")
            continue
        path = Path(given)
        if path.is_dir() and path.resolve() == excluded:
            raise InputError(f"{path} is an input and the output; name another folder for the results")
        matches = list(_matches(path, recursive, excluded))
        if not matches:
            problems.append(_nothing_found(path, recursive))
        for match, relative in matches:
            found.setdefault(match.resolve(), (match, relative))
    places = list(found.values())
    if len({relative for _, relative in places}) < len(places):
        places = _below_shared_folder([match for match, _ in places])
    stems = _unique_stems([relative for _, relative in places])
    pictures = [PictureFile(path, place.parent, stem) for (path, place), stem in zip(places, stems, strict=True)]
    if output is not None:
        _require_kept(pictures, Path(output))
    return FoundPictures(tuple(pictures), tuple(problems))


def _require_kept(pictures: Sequence[PictureFile], output: Path) -> None:
    """Refuse to write ``a_pose.png`` for ``a.jpg`` where a picture of that name is among the inputs."""
    makers = {((output / own.folder).resolve(), own.stem): own for own in pictures}
    for picture in pictures:
        path = picture.path.resolve()
        for cut in (match.start() for match in re.finditer("_", path.stem)):
            maker = makers.get((path.parent, path.stem[:cut]))
            if maker is not None and path.stem[cut + 1 :].split("_")[0] in (*TASKS, "overview"):
                raise InputError(
                    f"the results of {maker.path} might replace {picture.path}, which is an input; name another folder "
                    "for the results"
                )


def _matches(path: Path, recursive: bool, excluded: Path | None) -> Iterator[tuple[Path, Path]]:
    """(file, its place in the output before it is named) for one input."""
    if path.is_dir():
        for inner in _pictures(path.rglob("*") if recursive else path.iterdir(), excluded):
            if not any(part.startswith(".") for part in inner.relative_to(path).parts):
                yield inner, inner.relative_to(path)
    elif path.is_file():
        yield path, Path(path.name)
    elif not path.exists() and glob.has_magic(str(path)):
        matches = glob.iglob(str(path), recursive=True)  # noqa: PTH207  Path.glob takes no absolute pattern
        for inner in _pictures(map(Path, matches), excluded):
            yield inner, Path(inner.name)


def _pictures(paths: Iterable[Path], excluded: Path | None) -> list[Path]:
    return sorted(
        path
        for path in paths
        if path.suffix.lower() in PICTURE_SUFFIXES
        and path.is_file()
        and (excluded is None or excluded not in path.resolve().parents)
    )


def _nothing_found(path: Path, recursive: bool) -> str:
    if path.is_dir():
        return f"{path}: no pictures in this folder" + ("" if recursive else " (its sub-folders: --recursive)")
    if path.exists():
        return f"{path}: a pipe, socket or device, which may never end; only files are read"
    if glob.has_magic(str(path)):
        return f"{path}: no picture matches this pattern"
    return f"{path}: there is no such file or folder"


def _below_shared_folder(paths: Sequence[Path]) -> list[tuple[Path, Path]]:
    resolved = [path.resolve() for path in paths]
    try:
        shared = os.path.commonpath([path.parent for path in resolved])
    except ValueError as error:
        raise InputError("pictures of the same name lie on different drives; predict one drive at a time") from error
    return [(path, full.relative_to(shared)) for path, full in zip(paths, resolved, strict=True)]


def _unique_stems(places: Sequence[Path]) -> list[str]:
    """A stem for each place; those that meet in one folder keep the suffix. Case alone does not tell files apart."""
    full = [_UNSAFE.sub("_", place.name) for place in places]
    stems = [_UNSAFE.sub("_", file_stem(place.name)) for place in places]
    while True:
        keys = [(place.parent, stem.casefold()) for place, stem in zip(places, stems, strict=True)]
        counts = Counter(keys)
        resolved = [name if counts[key] > 1 else stem for key, name, stem in zip(keys, full, stems, strict=True)]
        if resolved == stems:
            return [
                stem if counts[key] == 1 else f"{stem}-{index}"
                for index, (key, stem) in enumerate(zip(keys, stems, strict=True))
            ]
        stems = resolved
