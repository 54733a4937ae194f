"""A legend of colours beside or below a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets.tables import RGB
from sapiens2.visualization.lettering import font, font_size, text_width

__all__ = ["LegendEntry", "add_legend"]

PAPER, INK, FAINT = (250, 250, 250), (32, 32, 36), (120, 120, 126)


class LegendEntry(NamedTuple):
    """One line: a colour, what it stands for, and a value in fainter ink (may be empty)."""

    name: str
    color: RGB
    value: str = ""


@dataclass(frozen=True)
class Grid:
    """Sizes of a legend in pixels, its columns filled from the top."""

    columns: int
    rows: int
    column_width: int
    row_height: int
    margin: int

    @property
    def size_hw(self) -> tuple[int, int]:
        return self.rows * self.row_height + 2 * self.margin, self.columns * self.column_width + self.margin


def add_legend(picture: NDArray[np.uint8], entries: Sequence[LegendEntry]) -> NDArray[np.uint8]:
    """Put a legend to the right of a picture or below it, whichever makes the smaller sheet of sensible shape.

    The picture keeps its pixels and stays in the upper left corner. The sheet grows as far as the text needs it, so
    that a legend is readable even when the picture is smaller than its longest line.

    Args:
        picture: ``(H, W, 3)`` uint8.
        entries: The lines; with none the picture comes back as it is.

    Returns:
        ``(H', W', 3)`` uint8.
    """
    if not entries:
        return picture
    height, width = picture.shape[:2]
    size = font_size((height, width))
    is_beside, grid, sheet_hw = min(_layouts(entries, (height, width), size), key=lambda layout: _badness(layout[2]))
    panel_height, panel_width = grid.size_hw
    x, y = (width, 0) if is_beside else (0, height)
    sheet = np.full((*sheet_hw, 3), PAPER, np.uint8)
    sheet[:height, :width] = picture
    sheet[y : y + panel_height, x : x + panel_width] = _panel(entries, grid, size)
    return sheet


def _layouts(
    entries: Sequence[LegendEntry], picture_hw: tuple[int, int], size: int
) -> Iterator[tuple[bool, Grid, tuple[int, int]]]:
    """Every (beside or below, grid, size of the sheet) that shows the picture and the legend."""
    height, width = picture_hw
    for columns in range(1, len(entries) + 1):
        grid = _grid(entries, columns, size)
        panel_height, panel_width = grid.size_hw
        yield True, grid, (max(height, panel_height), width + panel_width)
        yield False, grid, (height + panel_height, max(width, panel_width))


def _badness(size_hw: tuple[int, int]) -> float:
    """Area of a sheet; one that is more than twice as long as wide counts as larger."""
    return size_hw[0] * size_hw[1] * max(1.0, max(size_hw) / min(size_hw) / 2)


def _grid(entries: Sequence[LegendEntry], columns: int, size: int) -> Grid:
    rows = -(-len(entries) // columns)
    widest = max(text_width(entry.name, size) for entry in entries)
    values = max(text_width(entry.value, size) for entry in entries)
    return Grid(
        columns=-(-len(entries) // rows),
        rows=rows,
        column_width=size + size // 2 + widest + values + (2 * size if values else size),
        row_height=round(1.5 * size),
        margin=size // 2,
    )


def _panel(entries: Sequence[LegendEntry], grid: Grid, size: int) -> NDArray[np.uint8]:
    from PIL import Image, ImageDraw

    height, width = grid.size_hw
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    face = font(size)
    for position, entry in enumerate(entries):
        column, row = divmod(position, grid.rows)
        left = grid.margin + column * grid.column_width
        middle = grid.margin + row * grid.row_height + grid.row_height // 2
        swatch = (left, middle - size // 2, left + size - 1, middle - size // 2 + size - 1)
        draw.rounded_rectangle(swatch, radius=size // 5, fill=entry.color)
        draw.text((left + size + size // 2, middle), entry.name, fill=INK, font=face, anchor="lm")
        right = left + grid.column_width - size - size // 4
        draw.text((right, middle), entry.value, fill=FAINT, font=face, anchor="rm")
    return np.asarray(image)
