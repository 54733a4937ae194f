"""Albedo as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.io.arrays import checked_array, checked_mask
from sapiens2.visualization.pointmap import INVALID_GREY

__all__ = ["draw_albedo"]


def draw_albedo(albedo: Any, *, mask: Any | None = None) -> NDArray[np.uint8]:
    """Show the colour of surfaces without light and shade.

    Args:
        albedo: ``(3, H, W)`` RGB, display-encoded as it was estimated, in [0, 1]; beyond that it is clipped.
        mask: ``(H, W)`` bool; pixels outside it are grey.

    Returns:
        ``(H, W, 3)`` uint8.

    Raises:
        InputError: Another shape, or values that are not finite.
    """
    array = checked_array(albedo, "albedo", (3, "H", "W"), finite=True)
    picture: NDArray[np.uint8] = np.rint(array.clip(0, 1).transpose(1, 2, 0) * 255).astype(np.uint8)
    picture[~checked_mask(mask, array.shape[1:])] = INVALID_GREY
    return picture
