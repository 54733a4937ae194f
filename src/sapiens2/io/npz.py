"""Named arrays in one compressed file (numpy's ``.npz``), without pickled objects."""

from __future__ import annotations

import pickle
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.atomic import atomic_path
from sapiens2.types import PathLike

__all__ = ["DAMAGE", "damage_reason", "read_npz", "write_npz"]

DAMAGE = (
    *(ValueError, EOFError, OSError, MemoryError, NotImplementedError, RuntimeError, SyntaxError, KeyError),
    *(pickle.UnpicklingError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""What numpy and zipfile raise over files of arrays with bytes that are not as they were written."""

FASTEST = 1
"""Level of zlib, of 9: float maps come out as small as with numpy's 6, in half the time."""


def write_npz(path: PathLike, arrays: Mapping[str, Any], *, compress: bool = True) -> Path:
    """Write named arrays.

    Args:
        path: The file to make or replace.
        arrays: Name -> array of any shape; numbers and strings become arrays without axes.
        compress: Deflate the arrays. Noisy float32 maps shrink little and take most of the time.

    Returns:
        The path.

    Raises:
        InputError: An array holds Python objects; nothing is written.
    """
    converted = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in converted.items():
        if array.dtype.hasobject:
            raise InputError(
                f"cannot write {name} to {path}: it holds Python objects, and only plain arrays are stored"
            )
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", method, compresslevel=FASTEST) as archive:
        for name, array in converted.items():
            # Without the time of day: the same arrays make the same file.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return Path(path)


def read_npz(path: PathLike) -> dict[str, NDArray[Any]]:
    """Read every array of a file.

    Raises:
        InputError: The file is damaged, is not an NPZ file, or holds Python objects.
    """
    # numpy leaves a file that it opened itself open when the archive is damaged.
    with Path(path).open("rb") as stream:
        try:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            return {name: archive[name] for name in archive.files}
        except DAMAGE as error:
            raise InputError(f"{path} is not a readable NPZ file of plain arrays: {damage_reason(error)}") from error


def damage_reason(error: Exception) -> str:
    """What numpy says, without its advice to unpickle: that would run what a foreign file says."""
    return "it is damaged, or holds Python objects" if "pickle" in str(error) else str(error)
