"""Folders of class maps, with a list of classes: ``images/`` and ``labels/`` (or ``parts/``), ``classes.txt``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sapiens2.assets import part_table
from sapiens2.data.loaders.fields import as_parts
from sapiens2.data.loaders.files import PICTURE_SUFFIXES, read_map
from sapiens2.data.loaders.folders import FolderSamples, Listing, list_files
from sapiens2.errors import InputError
from sapiens2.io import read_json
from sapiens2.types import PathLike

__all__ = ["ClassMapFolder", "ClassMaps", "read_class_list"]

_SUFFIXES = PICTURE_SUFFIXES - {".jpg", ".jpeg", ".webp"} | {
    ".npy",
    ".npz",
}  # no file whose numbers compression changes


@dataclass(frozen=True)
class ClassMaps:
    """Class ids, one map for each picture: palette or grey PNG, other lossless pictures, NPY or NPZ.

    Attributes:
        folder: Where they are.
        class_names: Classes in order; None for the 29 of the published models.
    """

    folder: Path
    class_names: tuple[str, ...] | None = None
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, _SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``parts``."""
        path = self._files.files[stem]
        names = part_table().names if self.class_names is None else self.class_names
        return {"parts": as_parts(read_map(path, keys=("parts", "labels", "segmentation")), len(names), str(path))}


class ClassMapFolder(FolderSamples):
    """Pictures with class maps.

    Args:
        images: Folder of pictures.
        labels: Folder of class maps with the same stems.
        classes: Names in order, or a file that :func:`read_class_list` reads; None for the published 29.
        strict: As for :class:`~sapiens2.data.loaders.folders.FolderSamples`.

    Attributes:
        class_names: The classes in order.

    Raises:
        InputError: As for the base class, or the list of classes is of no use.
    """

    def __init__(
        self,
        images: PathLike,
        labels: PathLike,
        classes: Sequence[str] | PathLike | None = None,
        *,
        strict: bool = True,
    ) -> None:
        if classes is None:
            self.class_names: tuple[str, ...] = part_table().names
        elif isinstance(classes, Sequence) and not isinstance(classes, str):
            self.class_names = _checked_names(classes, "classes")
        else:
            self.class_names = read_class_list(classes)
        super().__init__(images, [ClassMaps(Path(labels), self.class_names)], strict=strict)


def read_class_list(path: PathLike) -> tuple[str, ...]:
    """Read the names of classes in the order of their ids.

    Args:
        path: Text with one name a line; or JSON: a list of names, or an object of ids and names.

    Raises:
        InputError: The file is missing, empty or not of this form, or names repeat.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    if file.suffix.lower() != ".json":
        names = [line.strip() for line in _read_text(file).rstrip().splitlines()]
        if "" in names:  # left out silently it would shift the ids of all names below it
            raise InputError(
                f"{file}: line {names.index('') + 1} is blank. Lines are classes in the order of their ids; take it "
                "out, or give the class a name."
            )
        return _checked_names(names, str(file))
    document = read_json(file)
    if isinstance(document, dict):
        if sorted(document, key=str) != sorted((str(number) for number in range(len(document))), key=str):
            raise InputError(f"{file} has the ids {sorted(document)[:5]}...; expected 0 to {len(document) - 1}.")
        document = [document[str(number)] for number in range(len(document))]
    return _checked_names(document, str(file))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text ({error}). Save it as UTF-8.") from error


def _checked_names(names: Any, place: str) -> tuple[str, ...]:
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"{place} holds no list of class names: {str(names)[:80]}.")
    if len(set(names)) != len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"{place}: class names must be unique; these repeat: {', '.join(repeated)}.")
    if len(names) > 255:
        raise InputError(
            f"{place} has {len(names)} classes; class maps of 8 bits have at most 255, and 255 is ignored."
        )
    return tuple(names)
