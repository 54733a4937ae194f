"""Lines and discs with smooth edges, drawn into an array.

Each shape is a segment with round ends (a disc is a segment of length zero). How much of a pixel it covers follows from
the signed distance of the pixel's centre to its edge, so that positions and widths may be fractions of a pixel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_box", "draw_disc", "draw_segment"]

Point = tuple[float, float]


def draw_segment(
    canvas: NDArray[np.uint8], start: Point, end: Point, radius: float, color: Sequence[int], opacity: float = 1.0
) -> None:
    """Blend a segment with round ends into a picture; what lies outside is cut off.

    Args:
        canvas: ``(H, W, 3)`` uint8, changed in place.
        start: x, y of one end.
        end: x, y of the other end.
        radius: Half of the width, in pixels.
        color: RGB, each 0..255.
        opacity: 0..1.

    Convention: pixel centres at integers, x right, y down.
    """
    (x0, y0), (x1, y1) = start, end
    height, width = canvas.shape[:2]
    margin = radius + 1
    left, right = max(0, int(min(x0, x1) - margin)), min(width, int(max(x0, x1) + margin) + 1)
    top, bottom = max(0, int(min(y0, y1) - margin)), min(height, int(max(y0, y1) + margin) + 1)
    if left >= right or top >= bottom:
        return
    x = np.arange(left, right, dtype=np.float32) - np.float32(x0)  # (w,)
    y = np.arange(top, bottom, dtype=np.float32)[:, None] - np.float32(y0)  # (h, 1)
    dx, dy = x1 - x0, y1 - y0
    length_squared = dx * dx + dy * dy
    if length_squared > 0:
        along = ((x * dx + y * dy) / length_squared).clip(0, 1)  # nearest place on the segment, 0 start .. 1 end
        distance = np.hypot(x - along * dx, y - along * dy)  # (h, w)
    else:
        distance = np.hypot(x, y)
    coverage = ((radius + 0.5 - distance).clip(0, 1) * opacity)[..., None]
    region = canvas[top:bottom, left:right]
    region[...] = np.rint(region + coverage * (np.asarray(color, np.float32) - region))


def draw_disc(
    canvas: NDArray[np.uint8], center: Point, radius: float, color: Sequence[int], opacity: float = 1.0
) -> None:
    """Blend a disc into a picture, in place; arguments as in :func:`draw_segment`."""
    draw_segment(canvas, center, center, radius, color, opacity)


def draw_box(
    canvas: NDArray[np.uint8], box_xyxy: Sequence[float], radius: float, color: Sequence[int], opacity: float = 1.0
) -> None:
    """Blend the outline of a box into a picture, in place; arguments as in :func:`draw_segment`."""
    left, top, right, bottom = box_xyxy
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
        draw_segment(canvas, start, end, radius, color, opacity)
