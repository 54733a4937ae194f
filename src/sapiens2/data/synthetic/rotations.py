"""Small rotations, computed one at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["about", "between", "mirrored", "unit"]

Matrix = NDArray[np.float64]


def unit(vector: NDArray[np.floating]) -> Matrix:
    """The vector at length 1."""
    return np.asarray(vector, np.float64) / np.linalg.norm(vector)


def about(axis: NDArray[np.floating] | tuple[float, float, float], degrees: float) -> Matrix:
    """Rotation about an axis, counter-clockwise seen against it."""
    x, y, z = unit(np.asarray(axis, np.float64))
    angle = np.radians(degrees)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rotation: Matrix = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    return rotation


def between(start: NDArray[np.floating], end: NDArray[np.floating]) -> Matrix:
    """The shortest rotation that turns one direction into another."""
    start, end = unit(start), unit(end)
    axis = np.cross(start, end)
    length = np.linalg.norm(axis)
    if length < 1e-9:
        return np.eye(3) if start @ end > 0 else about((1.0, 0.0, 0.0), 180)
    return about(axis, float(np.degrees(np.arctan2(length, start @ end))))


def mirrored(rotation: Matrix) -> Matrix:
    """The rotation that a mirror in the plane x = 0 shows."""
    flip = np.diag([-1.0, 1.0, 1.0])
    result: Matrix = flip @ rotation @ flip
    return result
