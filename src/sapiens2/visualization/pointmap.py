"""Pointmaps as pictures of depth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_mask
from sapiens2.visualization.turbo import turbo

__all__ = ["INVALID_GREY", "depth_range", "draw_pointmap", "valid_depth"]

INVALID_GREY = (100, 100, 100)
MIN_RELATIVE_SPAN = 1e-5


def draw_pointmap(
    pointmap: Any, *, mask: Any | None = None, depth_limits: tuple[float, float] | None = None
) -> NDArray[np.uint8]:
    """Colour each pixel by its inverse depth: near is red, far is blue (turbo).

    Args:
        pointmap: ``(3, H, W)`` X, Y, Z in the camera frame. A pixel is valid when Z is finite and positive.
        mask: ``(H, W)`` bool; pixels outside it are drawn like invalid ones and do not set the limits.
        depth_limits: Nearest and farthest depth of the colour scale. Left out, they are :func:`depth_range`; give the
            frames of a video the same ones, or the colours flicker.

    Returns:
        ``(H, W, 3)`` uint8. Invalid pixels are grey; a map of one single depth has one single colour.

    Raises:
        InputError: Another shape, or limits that are not positive and ascending.

    Convention: OpenCV camera frame, x right, y down, z forward.
    """
    depth = checked_array(pointmap, "pointmap", (3, "H", "W"))[2]
    valid = valid_depth(depth) & checked_mask(mask, depth.shape)
    picture = np.empty((*depth.shape, 3), np.uint8)
    picture[...] = INVALID_GREY
    limits = depth_limits if depth_limits is not None else depth_range(depth[valid])
    if limits is None:
        return picture
    near, far = limits
    if not 0 < near <= far < np.inf:
        raise InputError(f"depth_limits must be 0 < nearest <= farthest, got ({near}, {far})")
    low, high = 1 / far, 1 / near
    inverse = 1 / depth[valid].astype(np.float64)
    span = high - low
    scaled = (inverse - low) / span if span > MIN_RELATIVE_SPAN * high else np.zeros_like(inverse)
    picture[valid] = turbo(scaled)
    return picture


def depth_range(depth: NDArray[Any], percentiles: tuple[float, float] = (1.0, 99.0)) -> tuple[float, float] | None:
    """Depths at two percentiles of the valid values, which leave outliers out; None when no value is valid.

    Args:
        depth: Any shape; values that are not finite and positive do not count.
        percentiles: Of the nearest and farthest.
    """
    valid = depth[valid_depth(depth)]
    if valid.size == 0:
        return None
    near, far = np.percentile(valid.astype(np.float64), percentiles).tolist()
    return near, far


def valid_depth(depth: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a depth is finite and positive, and its inverse is finite too."""
    tiny = np.finfo(np.float32).tiny
    valid: NDArray[np.bool_] = np.isfinite(depth) & (depth >= tiny)
    return valid
