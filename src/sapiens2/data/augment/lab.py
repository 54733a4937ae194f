"""sRGB and CIE Lab (D65).

Source: IEC 61966-2-1 (sRGB); CIE 15, Colorimetry (Lab).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["lab_to_srgb", "srgb_to_lab"]

_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], np.float32)
_FROM_XYZ = np.linalg.inv(_TO_XYZ)
_WHITE = _TO_XYZ.sum(axis=1)
_EDGE = 6 / 29


def srgb_to_lab(rgb: NDArray[np.float32]) -> NDArray[np.float32]:
    """Convert colours.

    Args:
        rgb: ``(N, 3)`` sRGB, 0..255.

    Returns:
        ``(N, 3)`` float32: lightness 0..100, then the axes green to red and blue to yellow.
    """
    value = rgb / np.float32(255)
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    ratio = linear @ _TO_XYZ.T / _WHITE
    root = np.where(ratio > _EDGE**3, np.cbrt(ratio), ratio / (3 * _EDGE**2) + 4 / 29)
    lab = [116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])]
    return np.stack(lab, axis=1).astype(np.float32)


def lab_to_srgb(lab: NDArray[np.float32]) -> NDArray[np.float32]:
    """Convert back; colours that sRGB does not have are clipped.

    Args:
        lab: ``(N, 3)``, as :func:`srgb_to_lab` returns it.

    Returns:
        ``(N, 3)`` float32, 0..255.
    """
    middle = (lab[:, 0] + 16) / 116
    root = np.stack([middle + lab[:, 1] / 500, middle, middle - lab[:, 2] / 200], axis=1)
    ratio = np.where(root > _EDGE, root**3, 3 * _EDGE**2 * (root - 4 / 29))
    linear = ((ratio * _WHITE) @ _FROM_XYZ.T).clip(0, 1)
    value = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return (value * 255).clip(0, 255).astype(np.float32)
