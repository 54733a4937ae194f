"""Reading a map at the places where the pixels of a transformed picture come from.

Three ways for three kinds of maps: the nearest pixel for labels; smooth for colours, with a wider filter where the
picture shrinks; and, for geometry, smooth on surfaces but the nearest pixel across their edges, where a mean of front
and back would lie in the air.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from sapiens2.data.augment.affine import Affine
from sapiens2.geometry import resize_image

__all__ = ["Filter", "SourceGrid"]

Filter: TypeAlias = Literal["antialias", "udp"]
"""How colours are read. ``"antialias"``: bilinear, and averaged first where the picture shrinks. ``"udp"``: as
:func:`sapiens2.geometry.crop_people`, bilinear where the picture shrinks along an axis, else bicubic."""

_WHOLE = 1e-6
"""Positions that close to a pixel's centre, in pixels, lie on it."""


class SourceGrid:
    """Where each pixel of a target lies in its source.

    Args:
        affine: Map from the source to the target.

    Attributes:
        inside: ``(h, w)`` bool: the pixel nearest to the position is one of the source.
        is_whole: Whether every position is the centre of a pixel, so that nothing has to be interpolated.
    """

    def __init__(self, affine: Affine) -> None:
        self.affine = affine
        height, width = affine.target_hw
        inverse = affine.inverse
        x = inverse[0, 0] * np.arange(width) + inverse[0, 1] * np.arange(height)[:, None] + inverse[0, 2]
        y = inverse[1, 0] * np.arange(width) + inverse[1, 1] * np.arange(height)[:, None] + inverse[1, 2]
        near_x, near_y = np.floor(x + 0.5), np.floor(y + 0.5)
        self.is_whole = bool((np.abs(x - np.rint(x)) < _WHOLE).all() and (np.abs(y - np.rint(y)) < _WHOLE).all())
        if self.is_whole:
            near_x, near_y = np.rint(x), np.rint(y)
        source_height, source_width = affine.source_hw
        self.inside: NDArray[np.bool_] = (
            (near_x >= 0) & (near_x < source_width) & (near_y >= 0) & (near_y < source_height)
        )
        self._x, self._y = x, y  # (h, w) float64
        column = np.clip(near_x, 0, source_width - 1).astype(np.intp)
        self._flat = np.clip(near_y, 0, source_height - 1).astype(np.intp) * source_width + column

    def nearest(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Take the nearest pixel.

        Args:
            values: ``(..., H, W)`` of any dtype.
            fill: Value outside the source.

        Returns:
            ``(..., h, w)`` of the same dtype.
        """
        pixels = np.ascontiguousarray(values).reshape(*values.shape[:-2], -1)
        taken = np.take(pixels, self._flat, axis=-1)
        return taken if self.inside.all() else np.where(self.inside, taken, np.asarray(fill, values.dtype))

    def smooth(self, values: NDArray[Any], *, chosen: Filter = "antialias") -> NDArray[Any]:
        """Interpolate colours; 0 outside the source.

        Args:
            values: ``(C, H, W)`` uint8 or float32, finite.
            chosen: How to read.

        Returns:
            ``(C, h, w)`` of the same dtype; uint8 is rounded, and clipped where bicubic overshoots.
        """
        if self.is_whole:
            return self.nearest(values, 0)
        if chosen == "udp":
            mode = "bilinear" if min(self.affine.scales_xy) < 1 - _WHOLE else "bicubic"
            return _as_dtype(self._interpolate(values, mode, "zeros"), values.dtype)
        if min(self.affine.scales_xy) < 1 - _WHOLE:
            values, rest = _shrink(values, self.affine)
            return SourceGrid(rest)._bilinear(values)
        return self._bilinear(values)

    def on_surfaces(self, values: NDArray[np.float32], joined: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Interpolate within surfaces, take the nearest pixel elsewhere.

        Args:
            values: ``(C, H, W)``; NaN where there is nothing.
            joined: ``(H - 1, W - 1)``: the four pixels around this corner, the first of them at the same index, are
                finite and belong to one surface.

        Returns:
            ``(C, h, w)``; NaN where there is nothing and outside the source.
        """
        near: NDArray[np.float32] = self.nearest(values, np.nan)
        if self.is_whole or joined.size == 0 or not joined.any():
            return near
        row, column = np.floor(self._y).astype(np.intp), np.floor(self._x).astype(np.intp)
        within = (row >= 0) & (row < joined.shape[0]) & (column >= 0) & (column < joined.shape[1])
        within &= joined[row.clip(0, joined.shape[0] - 1), column.clip(0, joined.shape[1] - 1)]
        read = self._interpolate(np.nan_to_num(values, nan=0.0), "bilinear", "border")
        return np.where(within, read, near)

    def _bilinear(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bilinear without darkening towards the edges; 0 outside the source."""
        if self.is_whole:
            return self.nearest(values, 0)
        read = _as_dtype(self._interpolate(values, "bilinear", "border"), values.dtype)
        return read if self.inside.all() else np.where(self.inside, read, np.zeros((), values.dtype))

    def _interpolate(self, values: NDArray[Any], mode: str, padding: str) -> NDArray[np.float32]:
        height, width = values.shape[1:]
        grid = np.stack([(2 * self._x + 1) / width - 1, (2 * self._y + 1) / height - 1], axis=-1)
        read = F.grid_sample(
            torch.from_numpy(np.ascontiguousarray(values, np.float32))[None],
            torch.from_numpy(grid.astype(np.float32))[None],
            mode=mode,
            padding_mode=padding,
            align_corners=False,
        )
        return read[0].numpy()


def _shrink(values: NDArray[Any], affine: Affine) -> tuple[NDArray[Any], Affine]:
    """Average to about the target's resolution; what remains is a map that does not shrink.

    Only the part of the source that the target shows is read, with a margin as wide as the filter.
    """
    height, width = affine.source_hw
    scale_x, scale_y = (min(scale, 1.0) for scale in affine.scales_xy)
    corners = np.array([[x, y] for x in (0, affine.target_hw[1] - 1) for y in (0, affine.target_hw[0] - 1)])
    places = corners @ affine.inverse[:, :2].T + affine.inverse[:, 2]
    left, right = _span(places[:, 0], width, margin=2 / scale_x)
    top, bottom = _span(places[:, 1], height, margin=2 / scale_y)
    # Less a little, so that the rounding of a ratio of whole numbers does not add a pixel.
    small_hw = (
        max(1, math.ceil((bottom - top) * scale_y - _WHOLE)),
        max(1, math.ceil((right - left) * scale_x - _WHOLE)),
    )
    part = torch.from_numpy(np.ascontiguousarray(values[:, top:bottom, left:right]))
    small = resize_image(part[None], small_hw)[0].numpy()
    before = Affine.identity(affine.source_hw).cropped(top, left, (bottom - top, right - left)).resized(small_hw)
    back = before.inverse
    rest = Affine(back, small_hw, affine.source_hw).then(affine.matrix, affine.target_hw)
    return small, rest


def _span(places: NDArray[np.float64], length: int, margin: float) -> tuple[int, int]:
    first = min(max(0, math.floor(places.min() - margin)), length - 1)
    return first, max(min(length, math.ceil(places.max() + margin) + 1), first + 1)


def _as_dtype(values: NDArray[np.float32], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype == np.uint8:
        return np.rint(values).clip(0, 255).astype(np.uint8)
    return values
