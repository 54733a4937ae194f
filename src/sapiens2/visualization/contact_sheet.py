"""Several pictures on one sheet, each with a caption."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_image
from sapiens2.visualization.lettering import font, font_size, text_width

__all__ = ["draw_contact_sheet"]

PAPER, INK = (250, 250, 250), (32, 32, 36)
MAX_COLUMNS = 4


def draw_contact_sheet(
    panels: Sequence[tuple[str, NDArray[np.uint8]]], *, panel_side: int = 640, columns: int | None = None
) -> NDArray[np.uint8]:
    """Lay captioned pictures out in rows.

    Args:
        panels: (caption, picture ``(H, W, 3)`` uint8). Pictures may differ in size; each is made smaller, never larger,
            until it fits its cell.
        panel_side: Longest side of a cell, in pixels.
        columns: Pictures in a row; left out, what brings the sheet closest to 3:2.

    Returns:
        ``(H', W', 3)`` uint8.

    Raises:
        InputError: No pictures, or not pictures, or no columns.
    """
    from PIL import Image, ImageDraw

    if not panels:
        raise InputError("a contact sheet needs at least one picture")
    if columns is not None and columns < 1:
        raise InputError(f"columns must be at least 1, got {columns}")
    images = [Image.fromarray(checked_image(picture, caption)) for caption, picture in panels]
    for image in images:
        image.thumbnail((panel_side, panel_side), Image.Resampling.LANCZOS)
    letters = font_size((panel_side, panel_side)) + 2
    captions = [caption for caption, _ in panels]
    cell_width = max(*(image.width for image in images), *(text_width(caption, letters) for caption in captions))
    cell_height = max(image.height for image in images)
    gap, band = max(4, letters // 2), round(1.8 * letters)
    columns = columns or _columns(len(images), cell_width + gap, cell_height + band + gap)
    rows = -(-len(images) // columns)
    size = (columns * (cell_width + gap) + gap, rows * (cell_height + band + gap) + gap)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    for position, (caption, image) in enumerate(zip(captions, images, strict=True)):
        row, column = divmod(position, columns)
        x, y = gap + column * (cell_width + gap), gap + row * (cell_height + band + gap)
        draw.text((x, y + band // 2), caption, fill=INK, font=font(letters), anchor="lm")
        sheet.paste(image, (x, y + band))
    return np.array(sheet)


def _columns(count: int, cell_width: int, cell_height: int) -> int:
    """The number of columns that brings the sheet closest to 3:2, with a penalty for each empty cell."""

    def badness(columns: int) -> float:
        rows = -(-count // columns)
        aspect = columns * cell_width / (rows * cell_height)
        return abs(math.log(aspect / 1.5)) + 0.1 * (rows * columns - count)

    return min(range(1, min(count, MAX_COLUMNS) + 1), key=badness)
