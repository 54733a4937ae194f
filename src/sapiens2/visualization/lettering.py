"""Text in pictures, at a size that suits them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

__all__ = ["font", "font_size", "text_width"]

MIN_SIZE, MAX_SIZE = 11, 72


def font_size(size_hw: tuple[int, int]) -> int:
    """Height of letters in pixels for a picture of ``(height, width)``: readable in small ones, in scale in large."""
    return min(max(math.isqrt(size_hw[0] * size_hw[1]) // 40, MIN_SIZE), MAX_SIZE)


@lru_cache(maxsize=16)
def font(size: int) -> FreeTypeFont | ImageFont:
    """Pillow's own font at a size in pixels."""
    from PIL import ImageFont

    return ImageFont.load_default(size=size)


def text_width(text: str, size: int) -> int:
    """Width of a line of text, in pixels."""
    return int(font(size).getlength(text) + 0.999)
