"""Make the two contact sheets of ``docs/guide/synthetic-people.md``: 64 pictures, and keypoints on close-ups.

Seeds are taken in order from :data:`FIRST_SEED`: close-ups are the first that show most of their points.
Run it after a change of the generator: ``python scripts/make_synthetic_sheets.py``. Needs the extra ``synth``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sapiens2.assets import keypoint_table
from sapiens2.data.synthetic import SyntheticSample, render

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "guide" / "images"
FIRST_SEED = 5000
"""Not 1000, where seed 1037 wears a tight top of the colour of skin."""

COLUMNS, ROWS = 8, 8
PICTURE_HW, CELL_WH = (256, 192), (150, 200)
FACES, SMALL = 480, 240
"""Sides of a close-up of a face, and of a hand or a foot."""

SEEN, HIDDEN = (0, 255, 0), (255, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder of the two pictures")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    people_sheet().save(folder / "synthetic-people.jpg", quality=84, optimize=True)
    keypoint_sheet().save(folder / "synthetic-keypoints.jpg", quality=88, optimize=True)


def people_sheet() -> Image.Image:
    """64 pictures, every fifth of two people."""
    sheet = Image.new("RGB", (COLUMNS * CELL_WH[0], ROWS * CELL_WH[1]))
    for cell in range(COLUMNS * ROWS):
        made = render(FIRST_SEED + cell, PICTURE_HW, people=2 if cell % 5 == 4 else 1)
        row, column = divmod(cell, COLUMNS)
        picture = Image.fromarray(made.image).resize(CELL_WH, Image.Resampling.LANCZOS)
        sheet.paste(picture, (column * CELL_WH[0], row * CELL_WH[1]))
    return sheet


def keypoint_sheet() -> Image.Image:
    """Six faces, six hands and six feet with their keypoints."""
    sheet = Image.new("RGB", (3 * FACES, 2 * FACES + 2 * SMALL))
    shots = close_ups("face", (1024, 768), [face_points()], FACES)
    for index, shot in zip(range(6), shots, strict=False):
        sheet.paste(shot, (index % 3 * FACES, index // 3 * FACES))
    shots = close_ups("waist", (1024, 768), [hand_points("left"), hand_points("right")], SMALL)
    for index, shot in zip(range(6), shots, strict=False):
        sheet.paste(shot, (index * SMALL, 2 * FACES))
    shots = close_ups("legs", (1024, 768), [foot_points("left"), foot_points("right")], SMALL)
    for index, shot in zip(range(6), shots, strict=False):
        sheet.paste(shot, (index * SMALL, 2 * FACES + SMALL))
    return sheet


def face_points() -> list[int]:
    table = keypoint_table()
    return [
        index
        for index, (name, group) in enumerate(zip(table.names, table.groups, strict=True))
        if group == "face" or name in ("nose", "left_eye", "right_eye")
    ]


def hand_points(side: str) -> list[int]:
    table = keypoint_table()
    return [index for index, group in enumerate(table.groups) if group == f"{side}_hand"] + [
        table.index(f"{side}_wrist")
    ]


def foot_points(side: str) -> list[int]:
    return [keypoint_table().index(f"{side}_{name}") for name in ("big_toe", "small_toe", "heel", "ankle")]


def close_ups(framing: str, size_hw: tuple[int, int], groups: list[list[int]], side: int) -> Iterator[Image.Image]:
    """Square pictures around groups of keypoints that are in the picture, most of them seen, one per seed."""
    for seed in count(FIRST_SEED):
        made = render(seed, size_hw, people=1, framing=framing)
        for points in groups:
            box = surrounding(made, points)
            if box is not None:
                yield marked(made, box, side)
                break


def surrounding(made: SyntheticSample, points: list[int]) -> tuple[float, float, float, float] | None:
    """A square around keypoints, at least 70 pixels wide; None where the picture is smaller or many are not seen."""
    own = made.keypoints[0, points]
    if (own[:, 2] == 0).any() or (own[:, 2] == 2).mean() < 0.55:
        return None
    low, high = own[:, :2].min(axis=0), own[:, :2].max(axis=0)
    half = max(0.66 * float((high - low).max()), 35.0)
    height, width = made.image.shape[:2]
    if 2 * half > min(height, width):
        return None
    middle = np.clip((low + high) / 2, half, np.array([width, height]) - half)  # moved into the picture
    return (*(middle - half), *(middle + half))


def marked(made: SyntheticSample, box: tuple[float, float, float, float], side: int) -> Image.Image:
    """A part of a picture, enlarged, with the keypoints of its person."""
    crop = Image.fromarray(made.image).resize((side, side), Image.Resampling.LANCZOS, box=box)
    draw = ImageDraw.Draw(crop)
    scale = side / (box[2] - box[0])
    radius = 2 if side == FACES else 3
    places: NDArray[np.float64] = (made.keypoints[0, :, :2] + 0.5 - box[:2]) * scale
    for (x, y), state in zip(places, made.keypoints[0, :, 2], strict=True):
        if state > 0:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=SEEN if state == 2 else HIDDEN)
    return crop


if __name__ == "__main__":
    main()
