"""Mattes over a checkerboard, a colour or another picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_image, real_array

__all__ = ["checkerboard", "draw_matte", "straight_foreground"]

CHECKER_GREYS = (255, 204)
MIN_ALPHA = 1 / 510
"""Below half of an 8-bit step a pixel is transparent in the file, and its colour is noise."""


def draw_matte(
    alpha: Any, foreground: Any, *, background: Sequence[int] | NDArray[Any] | None = None
) -> NDArray[np.uint8]:
    """Lay a premultiplied foreground over a background: ``foreground + (1 - alpha) * background``.

    Args:
        alpha: ``(H, W)`` in [0, 1].
        foreground: ``(3, H, W)`` RGB in [0, 1], premultiplied with alpha.
        background: One RGB colour in 0..255, or a picture ``(H, W, 3)`` uint8; left out, a checkerboard.

    Returns:
        ``(H, W, 3)`` uint8.

    Raises:
        InputError: Shapes that do not match, values that are not finite, or a colour out of range.
    """
    matte = checked_array(alpha, "alpha", ("H", "W"), finite=True)
    front = checked_array(foreground, "foreground", (3, *matte.shape), finite=True)
    behind = checkerboard(matte.shape) if background is None else _background(background, matte.shape)
    composite = front.transpose(1, 2, 0) * 255 + (1 - matte[..., None]) * behind
    picture: NDArray[np.uint8] = np.rint(composite.clip(0, 255)).astype(np.uint8)
    return picture


def checkerboard(size_hw: tuple[int, ...]) -> NDArray[np.uint8]:
    """The ``(H, W, 3)`` pattern that stands for transparency."""
    height, width = size_hw
    cell = max(2, min(height, width) // 32)
    odd = (np.arange(height)[:, None] // cell + np.arange(width) // cell) % 2  # (H, W)
    return np.repeat(np.array(CHECKER_GREYS, np.uint8)[odd][..., None], 3, axis=2)


def straight_foreground(alpha: Any, foreground: Any) -> NDArray[np.float32]:
    """Undo the multiplication with alpha: colours as PNG stores them.

    Args:
        alpha: ``(H, W)`` in [0, 1].
        foreground: ``(3, H, W)`` in [0, 1], premultiplied.

    Returns:
        ``(3, H, W)`` float32 in [0, 1]; black where alpha is practically zero.

    Raises:
        InputError: Shapes that do not match, or values that are not finite.
    """
    matte = checked_array(alpha, "alpha", ("H", "W"), finite=True)
    front = checked_array(foreground, "foreground", (3, *matte.shape), finite=True)
    opaque = matte >= MIN_ALPHA
    return np.where(opaque, (front / np.where(opaque, matte, 1)).clip(0, 1), 0).astype(np.float32)


def _background(background: Sequence[int] | NDArray[Any], size_hw: tuple[int, ...]) -> NDArray[Any]:
    array = real_array(background, "background")
    if array.shape == (3,):
        if array.min() < 0 or array.max() > 255 or array.dtype.kind not in "iu":
            raise InputError(f"a background colour must be three integers in 0..255, got {array.tolist()}")
        return array
    picture = checked_image(array, "background")
    if picture.shape[:2] != size_hw:
        raise InputError(f"background must have the size {size_hw} of alpha, got {picture.shape[:2]}; resize it first")
    return picture
