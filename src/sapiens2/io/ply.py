"""Point clouds as binary PLY.

Source: G. Turk, The PLY Polygon File Format (Stanford, 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, real_array
from sapiens2.io.atomic import write_bytes
from sapiens2.types import PathLike

__all__ = ["PointCloud", "read_ply", "write_ply"]

POINT, NORMAL, COLOR = ("x", "y", "z"), ("nx", "ny", "nz"), ("red", "green", "blue")
DTYPES = {
    "char": "i1",
    "int8": "i1",
    "uchar": "u1",
    "uint8": "u1",
    "short": "<i2",
    "int16": "<i2",
    "ushort": "<u2",
    "uint16": "<u2",
    "int": "<i4",
    "int32": "<i4",
    "uint": "<u4",
    "uint32": "<u4",
    "float": "<f4",
    "float32": "<f4",
    "double": "<f8",
    "float64": "<f8",
}


class PointCloud(NamedTuple):
    """Points with optional colours and normals.

    Attributes:
        points: ``(N, 3)`` float32.
        colors_rgb: ``(N, 3)`` uint8, or None.
        normals: ``(N, 3)`` float32, or None.
    """

    points: NDArray[np.float32]
    colors_rgb: NDArray[np.uint8] | None
    normals: NDArray[np.float32] | None


def write_ply(
    path: PathLike,
    points: Any,
    *,
    colors_rgb: Any | None = None,
    normals: Any | None = None,
    comments: Sequence[str] = (),
) -> Path:
    """Write a point cloud, little endian.

    Args:
        path: The file to make or replace.
        points: ``(N, 3)``, finite; N may be 0.
        colors_rgb: ``(N, 3)`` uint8.
        normals: ``(N, 3)``, finite.
        comments: Lines for the header.

    Returns:
        The path.

    Raises:
        InputError: Shapes that do not match, values that are not finite, colours that are not uint8.
    """
    positions = checked_array(points, "points", ("N", 3), finite=True)
    count = len(positions)
    columns: list[tuple[tuple[str, ...], str, NDArray[Any]]] = [(POINT, "float", positions)]
    if normals is not None:
        columns.append((NORMAL, "float", checked_array(normals, "normals", (count, 3), finite=True)))
    if colors_rgb is not None:
        colors = real_array(colors_rgb, "colors_rgb")
        if colors.dtype != np.uint8 or colors.shape != (count, 3):
            raise InputError(f"colors_rgb must be uint8 ({count}, 3), got {colors.dtype} {colors.shape}")
        columns.append((COLOR, "uchar", colors))
    vertices = np.empty(count, [(name, DTYPES[kind]) for names, kind, _ in columns for name in names])
    for names, _, values in columns:
        for axis, name in enumerate(names):
            vertices[name] = values[:, axis]
    header = [
        "ply",
        "format binary_little_endian 1.0",
        *(f"comment {' '.join(comment.split())}" for comment in comments),
        f"element vertex {count}",
        *(f"property {kind} {name}" for names, kind, _ in columns for name in names),
        "end_header",
    ]
    return write_bytes(path, ("\n".join(header) + "\n").encode("utf-8") + vertices.tobytes())


def read_ply(path: PathLike) -> PointCloud:
    """Read the points of a little-endian PLY file; other elements and properties are left out.

    Raises:
        InputError: Not such a file, cut short, vertices that are not its first element, or no x, y, z.
    """
    content = Path(path).read_bytes()
    marker = b"end_header\n"
    end = content.find(marker)
    if not content.startswith(b"ply\n") or end < 0:
        raise InputError(f"{path} is not a PLY file with a complete header")
    count, dtype = _vertex_layout(content[:end].decode("utf-8", "replace").splitlines(), path)
    body = memoryview(content)[end + len(marker) :]
    if len(body) < count * dtype.itemsize:
        raise InputError(f"{path} is cut short: {count} points need {count * dtype.itemsize} bytes, got {len(body)}")
    vertices = np.frombuffer(body, dtype, count)

    def columns(names: tuple[str, ...], kind: type[np.generic]) -> NDArray[Any] | None:
        present = set(names) <= set(dtype.names or ())
        return np.stack([vertices[name] for name in names], axis=1).astype(kind) if present else None

    points = columns(POINT, np.float32)
    if points is None:
        raise InputError(f"{path} has no x, y and z; its properties are {', '.join(dtype.names or ()) or 'none'}")
    return PointCloud(points, columns(COLOR, np.uint8), columns(NORMAL, np.float32))


def _vertex_layout(header: list[str], path: PathLike) -> tuple[int, np.dtype[Any]]:
    """Number of vertices and the layout of one, from the lines of a header."""
    if "format binary_little_endian 1.0" not in header:
        raise InputError(f"{path} is not in the format binary_little_endian 1.0")
    count, fields, elements = 0, [], 0
    for words in (line.split() for line in header):
        if words[:1] == ["element"]:
            elements += 1
            if elements == 1 and words[1:2] != ["vertex"]:
                raise InputError(f"{path} begins with the element {' '.join(words[1:])}; expected vertex")
            count = int(words[2]) if elements == 1 else count
        elif words[:1] == ["property"] and elements == 1:
            if len(words) != 3 or words[1] not in DTYPES:
                raise InputError(f"{path} has a vertex property that is not one number: {' '.join(words)}")
            fields.append((words[2], DTYPES[words[1]]))
    return count, np.dtype(fields)
