"""Surface normals as pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.io.arrays import checked_array, checked_mask

__all__ = ["draw_normals"]


def draw_normals(normals: Any, *, mask: Any | None = None) -> NDArray[np.uint8]:
    """Show x, y and z as red, green and blue: each is ``(n + 1) / 2``.

    Args:
        normals: ``(3, H, W)``, components in [-1, 1]; beyond that they are clipped.
        mask: ``(H, W)`` bool; pixels outside it are black.

    Returns:
        ``(H, W, 3)`` uint8. A zero vector is mid grey, one that is not finite is black.

    Raises:
        InputError: Another shape.

    Convention: OpenCV camera frame, x right, y down.
    """
    array = checked_array(normals, "normals", (3, "H", "W"))
    shown = np.isfinite(array).all(axis=0) & checked_mask(mask, array.shape[1:])
    unit = np.where(shown, (array.clip(-1, 1) + 1) / 2, 0)  # (3, H, W)
    picture: NDArray[np.uint8] = np.rint(unit.transpose(1, 2, 0) * 255).astype(np.uint8)
    return picture
