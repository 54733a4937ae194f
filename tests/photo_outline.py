"""The committed photo's person, outlined by hand: what counts and how it was drawn is said in the JSON file itself."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sapiens2.assets import part_table

PATH = Path(__file__).parent / "golden" / "sample_photo_outline.json"
FINE = 8
"""Lines of samples per pixel along each axis."""

Polygons = list[list[list[float]]]


@cache
def outline() -> dict[str, Any]:
    """What the file says."""
    said: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return said


def outline_mask(*, held: bool = False) -> NDArray[np.bool_]:
    """``(512, 512)``: what the person covers, with the helmet before her when ``held``.

    It is left out unless asked for: it is not worn, no hand is seen to hold it, and generated people hold nothing,
    so that what stands before a person is no person in the truth that models learn.
    """
    said = outline()
    return coverage(said["person"] + (said["held"] if held else [])) >= 0.5


def held_mask() -> NDArray[np.bool_]:
    """``(512, 512)``: the helmet before her."""
    return coverage(outline()["held"]) >= 0.5


def outline_box(*, held: bool = False) -> tuple[float, float, float, float]:
    """The tight crop of 3:4, ``x, y, width, height``.

    Convention: as everywhere in the package, pixel centres at integers, so that the photo begins at -0.5.
    """
    x, y, width, height = outline()["boxes_xywh"]["person_and_held" if held else "person"]
    return x - 0.5, y - 0.5, width, height


def outline_parts() -> NDArray[np.uint8]:
    """``(512, 512)``: classes of body parts, the ignore label where nothing is said."""
    table, said = part_table(), outline()
    parts = np.zeros(said["size_wh"][::-1], np.uint8)
    for name, polygons in said["parts"]:
        drawn = [polygon for own in polygons for polygon in (said[own] if isinstance(own, str) else [own])]
        parts[coverage(drawn) >= 0.5] = table.ignore_index if name == "ignore" else table.names.index(name)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(parts, 1, mode="edge"), (3, 3))
    border = (around != parts[..., None, None]).any(axis=(2, 3))
    return np.where(border, table.ignore_index, parts).astype(np.uint8)


def coverage(polygons: Polygons) -> NDArray[np.float64]:
    """``(512, 512)``: the share of each pixel inside any of the polygons."""
    width, height = outline()["size_wh"]
    canvas = Image.new("L", (width * FINE, height * FINE))
    draw = ImageDraw.Draw(canvas)
    for polygon in polygons:
        draw.polygon([(x * FINE - 0.5, y * FINE - 0.5) for x, y in polygon], fill=255)
    return np.asarray(canvas.reduce(FINE)) / 255
