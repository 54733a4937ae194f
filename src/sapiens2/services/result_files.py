"""Files that results are written to, and whether they may be replaced."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from sapiens2.services.picture_files import PictureFile
from sapiens2.types import PathLike, Task

__all__ = ["RESULT_SUFFIXES", "foreign_files", "is_own_file"]

RESULT_SUFFIXES: Mapping[Task, tuple[str, ...]] = MappingProxyType(
    {
        "pose": (".png", ".json"),
        "seg": (".png", "_classes.png"),
        "normal": (".png", "_16bit.png", ".npz"),
        "pointmap": (".png", ".npz", ".ply"),
        "matting": (".png", "_rgba.png", "_alpha.png"),
        "albedo": (".png", ".npz"),
    }
)
"""Task -> what comes after ``<stem>_<task>`` in the names of its files."""

MARKS = {
    ".png": b"tEXtSoftware\0sapiens2 ",
    ".json": b'"software":"sapiens2 ',
    ".ply": b"comment Software: sapiens2 ",
}
"""How each format says who wrote it; NPZ has an array for it."""

HEAD_BYTES = 1 << 16
"""The marks come before the data."""


def foreign_files(pictures: Iterable[PictureFile], tasks: Sequence[Task], output: PathLike) -> list[Path]:
    """Files that the results would replace although sapiens2 did not write them.

    Args:
        pictures: The pictures to predict.
        tasks: The tasks to predict.
        output: Folder of the results.
    """
    endings = [f"_{task}{suffix}" for task in tasks for suffix in RESULT_SUFFIXES[task]]
    if len(tasks) > 1:
        endings.append("_overview.png")
    places = [Path(output) / picture.folder / f"{picture.stem}{ending}" for picture in pictures for ending in endings]
    return [path for path in places if path.exists() and not is_own_file(path)]


def is_own_file(path: Path) -> bool:
    """Whether a file says of itself that sapiens2 wrote it."""
    if not path.is_file():
        return False
    if path.suffix == ".npz":
        return _npz_software(path).startswith("sapiens2 ")
    with path.open("rb") as stream:
        return MARKS[path.suffix] in stream.read(HEAD_BYTES)


def _npz_software(path: Path) -> str:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return str(archive["Software"])
    except (KeyError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):  # not one of ours
        return ""
