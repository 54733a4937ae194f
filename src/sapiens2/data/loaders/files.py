"""Files of every kind that holds pictures or maps, read as arrays of the numbers that they store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2._optional import require
from sapiens2.errors import InputError
from sapiens2.io import read_npz, read_png
from sapiens2.io.npz import DAMAGE, damage_reason
from sapiens2.processing import load_image
from sapiens2.processing.image_input import decode_pil, displayed_pil, open_image

__all__ = ["ARRAY_SUFFIXES", "PICTURE_SUFFIXES", "read_map", "read_rgb"]

PICTURE_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
"""Files that count as pictures in a folder, in any case."""

ARRAY_SUFFIXES = frozenset({".exr", ".npy", ".npz"})
"""Files that hold arrays of numbers."""

_PNG_SIGNATURE_LENGTH = 33
_PNG_RGB16 = (16, 2)  # bit depth and colour type, bytes 24 and 25


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """Read a picture as it is displayed.

    Returns:
        ``(H, W, 3)`` uint8.

    Raises:
        InputError: The file is missing, empty, damaged or no picture; the message names it.
    """
    _require_content(path)
    pixels = load_image(path)
    return pixels.round().byte().permute(1, 2, 0).contiguous().numpy()


def read_map(path: Path, *, keys: Sequence[str] = ()) -> NDArray[Any]:
    """Read the numbers that a file stores: class ids stay ids, 16 bits stay 16 bits.

    Args:
        path: PNG or another picture, ``.npy``, ``.npz`` or ``.exr`` (needs the extra ``train``).
        keys: Names to look for in files of several arrays; one that is alone may have any name.

    Returns:
        ``(H, W)`` or ``(H, W, C)`` of a picture, turned as it is displayed; of an array file as it is stored.

    Raises:
        InputError: The file is missing, empty, damaged, or holds no array of these names; the message names it.
        MissingDependencyError: An EXR file, and OpenEXR is not installed.
    """
    _require_content(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _read_npy(path)
    if suffix == ".npz":
        return _chosen(read_npz(path), keys, path)
    if suffix == ".exr":
        return _chosen(_read_exr(path), keys, path)
    if suffix == ".png" and _is_rgb16(path):
        return read_png(path).pixels
    with open_image(path) as opened:
        decode_pil(opened)
        values = np.array(displayed_pil(opened))
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _require_content(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: it has 0 bytes.")


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        loaded = np.load(path, allow_pickle=False)
    except DAMAGE as error:
        raise InputError(f"{path} is not a readable NPY file of a plain array: {damage_reason(error)}") from error
    if not isinstance(loaded, np.ndarray):
        raise InputError(f"{path} is not an NPY file: it holds several arrays. Give it the suffix .npz.")
    return loaded


def _read_exr(path: Path) -> dict[str, NDArray[Any]]:
    exr = require("OpenEXR", extra="train")
    try:
        with exr.File(str(path)) as opened:
            return {name: np.asarray(channel.pixels) for name, channel in opened.channels().items()}
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"{path} is not a readable EXR file: {error}") from error


def _chosen(arrays: dict[str, NDArray[Any]], keys: Sequence[str], path: Path) -> NDArray[Any]:
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    for key in keys:
        if key in arrays:
            return arrays[key]
    raise InputError(f"{path} holds arrays called {sorted(arrays)}; expected a single one, or one of {list(keys)}.")


def _is_rgb16(path: Path) -> bool:
    with path.open("rb") as stream:
        header = stream.read(_PNG_SIGNATURE_LENGTH)
    return len(header) == _PNG_SIGNATURE_LENGTH and (header[24], header[25]) == _PNG_RGB16
