"""Colours for classes that come without any."""

from __future__ import annotations

import colorsys

from sapiens2.assets.tables import RGB

__all__ = ["distinct_palette"]

GOLDEN_RATIO = (5**0.5 - 1) / 2
BACKGROUND: RGB = (50, 50, 50)


def distinct_palette(count: int) -> tuple[RGB, ...]:
    """``count`` colours, grey for the background and then hues that are far from their neighbours."""
    colors = [BACKGROUND]
    for index in range(1, count):
        hue, saturation, value = (index * GOLDEN_RATIO) % 1, (0.9, 0.65)[index % 2], (1.0, 0.8, 0.9)[index % 3]
        red, green, blue = (round(255 * channel) for channel in colorsys.hsv_to_rgb(hue, saturation, value))
        colors.append((red, green, blue))
    return tuple(colors[:count])
