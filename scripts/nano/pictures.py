"""The pictures of ``docs/guide/nano-models.md``: ``python -m scripts.nano.pictures``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

import sapiens2
from sapiens2.assets import sample_photo
from sapiens2.data.synthetic import render

FOLDER = Path(__file__).parents[2] / "docs" / "guide" / "images"
SEEDS = tuple(9_010_000_000 + number for number in range(8))
CELL_WH = (150, 200)
CROP_XYWH = (5, 12, 375, 500)
"""The box of the person on the photograph (``tests/golden/sample_photo_outline.json``)."""


def _row(predict: sapiens2.Predictor, picture: np.ndarray) -> Image.Image:
    prediction = predict(picture)
    cells = [Image.fromarray(picture)]
    cells += [  # the parts without their legend; the others show people alone
        Image.fromarray(prediction.seg.draw()) if task == "seg" else prediction.plot(task) for task in prediction.tasks
    ]
    row = Image.new("RGB", (CELL_WH[0] * len(cells), CELL_WH[1]))
    for column, cell in enumerate(cells):
        fitted = ImageOps.pad(cell.convert("RGB"), CELL_WH, Image.Resampling.LANCZOS, color="white")
        row.paste(fitted, (column * CELL_WH[0], 0))
    return row


def _stack(rows: list[Image.Image]) -> Image.Image:
    sheet = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)))
    for number, row in enumerate(rows):
        sheet.paste(row, (0, number * CELL_WH[1]))
    return sheet


def main() -> None:
    """Write both sheets: photograph, whole and cropped; people that were not trained on."""
    predict = sapiens2.load("all", size="nano")
    with Image.open(sample_photo()) as photo:
        pixels = np.array(photo.convert("RGB"))
    x, y, width, height = CROP_XYWH
    rows = [_row(predict, pixels), _row(predict, pixels[y : y + height, x : x + width])]
    _stack(rows).save(FOLDER / "nano-photo.jpg", quality=88)
    people = [_row(predict, render(seed, (256, 192)).image) for seed in SEEDS]
    _stack(people).save(FOLDER / "nano-people.jpg", quality=88)


if __name__ == "__main__":
    main()
