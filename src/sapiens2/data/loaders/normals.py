"""Folders of surface normals: ``images/`` (or ``rgb/``), ``normals/`` and, if there are, ``masks/``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sapiens2.assets import part_table
from sapiens2.data.loaders.fields import as_mask, as_normals, as_parts
from sapiens2.data.loaders.files import ARRAY_SUFFIXES, PICTURE_SUFFIXES, read_map
from sapiens2.data.loaders.folders import FolderSamples, Listing, TruthSource, list_files
from sapiens2.errors import ConfigurationError
from sapiens2.types import PathLike

__all__ = ["ExcludedParts", "Masks", "NormalFolder", "Normals"]


@dataclass(frozen=True)
class Normals:
    """Normals, one file for each picture: 8- or 16-bit RGB, NPY, NPZ or EXR.

    Attributes:
        folder: Where they are.
        signs: 1 or -1 for x, y and z, to come to x right, y down: ``(1, -1, -1)`` for OpenGL's axes.

    Convention: OpenCV camera frame, x right, y down.
    """

    folder: Path
    signs: tuple[int, int, int] = (1, 1, 1)
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, PICTURE_SUFFIXES | ARRAY_SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``normals``."""
        path = self._files.files[stem]
        keys = ("normals", "normal", "RGB", "XYZ")
        return {"normals": as_normals(read_map(path, keys=keys), str(path), signs=self.signs)}


@dataclass(frozen=True)
class Masks:
    """Pixels whose normals, points and albedo count, one file for each picture: any colour that is seen.

    Attributes:
        folder: Where they are.
    """

    folder: Path
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, PICTURE_SUFFIXES | {".npy", ".npz"}))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``surface``."""
        path = self._files.files[stem]
        return {"surface": as_mask(read_map(path, keys=("mask",)), str(path))}


@dataclass(frozen=True)
class ExcludedParts:
    """A mask without some body parts, such as hair whose scanned surface is not to be trusted.

    Parts are named, never numbered: the ids of a 28-class list mean other parts in the list of 29.

    Attributes:
        folder: Class maps.
        excluded: Names of the parts that do not count.
        class_names: Classes in order; None for the published 29.

    Raises:
        ConfigurationError: A name is not in the list.
    """

    folder: Path
    excluded: tuple[str, ...]
    class_names: tuple[str, ...] | None = None
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.excluded) - set(self._names)):
            raise ConfigurationError(f"There are no classes {unknown}; expected some of {', '.join(self._names)}.")
        object.__setattr__(self, "_files", list_files(self.folder, PICTURE_SUFFIXES | {".npy", ".npz"}))

    @property
    def _names(self) -> tuple[str, ...]:
        return part_table().names if self.class_names is None else self.class_names

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``surface``."""
        path = self._files.files[stem]
        parts = as_parts(read_map(path), len(self._names), str(path))
        return {"surface": ~np.isin(parts, [self._names.index(name) for name in self.excluded])}


class NormalFolder(FolderSamples):
    """Pictures with surface normals.

    Args:
        images: Folder of pictures.
        normals: Folder of normals with the same stems.
        masks: Folder of masks; None where zero vectors and NaN say where there is no normal.
        signs: As for :class:`Normals`.
        parts: Folder of class maps, for ``excluded_parts``.
        excluded_parts: Names of parts whose normals do not count.
        strict: As for :class:`~sapiens2.data.loaders.folders.FolderSamples`.

    Convention: OpenCV camera frame, x right, y down.
    """

    def __init__(
        self,
        images: PathLike,
        normals: PathLike,
        masks: PathLike | None = None,
        *,
        signs: tuple[int, int, int] = (1, 1, 1),
        parts: PathLike | None = None,
        excluded_parts: Sequence[str] = (),
        strict: bool = True,
    ) -> None:
        if (parts is None) != (not excluded_parts):
            raise ConfigurationError("parts and excluded_parts belong together; give both or none.")
        sources: list[TruthSource] = [Normals(Path(normals), signs)]
        if masks is not None:
            sources.append(Masks(Path(masks)))
        if parts is not None:
            sources.append(ExcludedParts(Path(parts), tuple(excluded_parts)))
        super().__init__(images, sources, strict=strict)
