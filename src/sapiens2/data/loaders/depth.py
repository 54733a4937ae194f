"""Folders of depth maps with camera matrices: ``images/`` (or ``rgb/``), ``depth/``, ``intrinsics/``, ``masks/``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.loaders.fields import as_depth
from sapiens2.data.loaders.files import ARRAY_SUFFIXES, PICTURE_SUFFIXES, read_map
from sapiens2.data.loaders.folders import FolderSamples, Listing, TruthSource, list_files
from sapiens2.data.loaders.normals import Masks
from sapiens2.errors import InputError
from sapiens2.io import read_json
from sapiens2.types import PathLike

__all__ = ["Cameras", "DepthFolder", "Depths", "as_camera_matrix"]

_LOSSLESS = PICTURE_SUFFIXES - {".jpg", ".jpeg", ".webp"}


@dataclass(frozen=True)
class Depths:
    """Depth along the camera's z axis, one file for each picture: NPY, NPZ, EXR, or pictures of 16 bits.

    Attributes:
        folder: Where they are.
        unit_m: Metres per unit; None where files hold floats in metres.

    Convention: OpenCV camera; depth is Z, not the distance along the ray.
    """

    folder: Path
    unit_m: float | None = None
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, _LOSSLESS | ARRAY_SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``depth``."""
        path = self._files.files[stem]
        return {"depth": as_depth(read_map(path, keys=("depth", "Z")), str(path), unit_m=self.unit_m)}


@dataclass(frozen=True)
class Cameras:
    """Camera matrices: one file for each picture, or one file for all.

    A file is text of three rows of three numbers, NPY or NPZ, or JSON: a matrix, an object with ``intrinsics`` or with
    ``fx``, ``fy``, ``cx`` and ``cy``, or, for all pictures, an object that maps stems or file names to these.

    Attributes:
        folder: Folder of files with the stems of the pictures, or a single file.
    """

    folder: Path
    _files: Listing | None = field(init=False, repr=False)
    _document: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        single = self.folder.is_file()
        suffixes = {".json", ".txt", ".npy", ".npz"}
        object.__setattr__(self, "_files", None if single else list_files(self.folder, suffixes))
        object.__setattr__(self, "_document", _read_camera_file(self.folder) if single else None)

    def listing(self) -> Listing | None:
        """Files by stem, or None for a file that serves all pictures."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``intrinsics``."""
        if self._files is not None:
            path = self._files.files[stem]
            return {"intrinsics": as_camera_matrix(_read_camera_file(path), str(path))}
        document = self._document
        if isinstance(document, Mapping) and not {"intrinsics", "fx"} & document.keys():
            by_stem = {name: entry for name, entry in document.items() if stem in (name, Path(name).stem)}
            if not by_stem:
                raise InputError(f"{self.folder} has no camera for {stem}.")
            document = by_stem.get(stem, next(iter(by_stem.values())))
        return {"intrinsics": as_camera_matrix(document, f"{self.folder}: camera of {stem}")}


class DepthFolder(FolderSamples):
    """Pictures with depth and cameras, which make pointmaps.

    Args:
        images: Folder of pictures.
        depth: Folder of depth maps with the same stems.
        intrinsics: Folder of camera matrices, or a file for all.
        masks: Folder of masks, or None.
        unit_m: As for :class:`Depths`.
        strict: As for :class:`~sapiens2.data.loaders.folders.FolderSamples`.

    Convention: OpenCV camera; depth is Z.
    """

    def __init__(
        self,
        images: PathLike,
        depth: PathLike,
        intrinsics: PathLike,
        masks: PathLike | None = None,
        *,
        unit_m: float | None = None,
        strict: bool = True,
    ) -> None:
        sources: list[TruthSource] = [Depths(Path(depth), unit_m), Cameras(Path(intrinsics))]
        if masks is not None:
            sources.append(Masks(Path(masks)))
        super().__init__(images, sources, strict=strict)


def as_camera_matrix(value: Any, name: str) -> NDArray[np.float64]:
    """Read a camera matrix ``(3, 3)``.

    Args:
        value: Rows of numbers, nine numbers, the four fx, fy, cx, cy, or an object with ``intrinsics`` or these four
            as keys.
        name: What messages call it.

    Raises:
        InputError: It has another form, or the focal lengths are not above zero.
    """
    if isinstance(value, Mapping) and "intrinsics" in value:
        value = value["intrinsics"]
    if isinstance(value, Mapping):
        try:
            fx, fy, cx, cy = (float(value[key]) for key in ("fx", "fy", "cx", "cy"))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{name} is {str(dict(value))[:80]}; expected fx, fy, cx and cy, or intrinsics."
            ) from error
        value = [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]
    try:
        numbers = np.array(value)
    except (TypeError, ValueError):
        numbers = np.array(None)
    if numbers.dtype.kind not in "uif":
        raise InputError(f"{name} is no camera matrix: {str(value)[:80]}.")
    matrix = numbers.astype(np.float64)
    if matrix.shape not in ((3, 3), (9,), (4,)):
        raise InputError(f"{name} has shape {matrix.shape}; expected a camera matrix of 3 x 3, or fx, fy, cx, cy.")
    if not np.isfinite(matrix).all():
        raise InputError(f"{name} has numbers that are not finite: {matrix.tolist()}.")
    if matrix.shape == (4,):
        fx, fy, cx, cy = matrix.tolist()
        matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    matrix = matrix.reshape(3, 3)
    if min(matrix[0, 0], matrix[1, 1]) <= 0 or matrix[1, 0] or matrix[2].tolist() != [0, 0, 1]:
        raise InputError(f"{name} is {matrix.tolist()}; expected [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]] in pixels.")
    return matrix


def _read_camera_file(path: Path) -> Any:
    suffix = path.suffix.lower()
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: it has 0 bytes.")
    if suffix == ".json":
        return read_json(path)
    if suffix in (".npy", ".npz"):
        return read_map(path, keys=("intrinsics", "K"))
    try:
        return [float(word) for word in path.read_text(encoding="utf-8-sig").replace(",", " ").split()]
    except ValueError as error:
        raise InputError(f"{path} is no camera matrix: {error}.") from error
