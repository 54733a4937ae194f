from __future__ import annotations

import numpy as np
import pytest

from sapiens2.assets import part_table
from sapiens2.errors import InputError
from sapiens2.visualization import LegendEntry, add_legend, distinct_palette, draw_segmentation
from sapiens2.visualization.lettering import font_size

RNG = np.random.default_rng(0)


def picture(height: int = 60, width: int = 80) -> np.ndarray:
    return RNG.integers(0, 256, (height, width, 3), np.uint8)


def test_draw_segmentation__blends_half_of_the_palette():
    image, ids = picture(), np.full((60, 80), 23)
    expected = (image + np.float32(part_table().palette_rgb[23])) / 2
    assert np.abs(draw_segmentation(image, ids, legend=False) - expected).max() <= 0.51


@pytest.mark.parametrize("opacity", [0.0, 0.25, 1.0])
def test_draw_segmentation__opacity_is_the_share_of_the_colour(opacity):
    image, ids = picture(), np.full((60, 80), 4)
    expected = image + opacity * (np.float32(part_table().palette_rgb[4]) - image)
    assert np.abs(draw_segmentation(image, ids, opacity=opacity, legend=False) - expected).max() <= 0.51


def test_draw_segmentation__ignored_pixels_stay_and_have_no_legend():
    image, ids = picture(), np.full((60, 80), 255)
    np.testing.assert_array_equal(draw_segmentation(image, ids), image)


def test_draw_segmentation__borders_are_darker():
    image, ids = np.full((60, 80, 3), 200, np.uint8), np.zeros((60, 80), np.uint8)
    ids[:, 40:] = 1
    drawn = draw_segmentation(image, ids, legend=False).astype(int)
    assert (drawn[:, 39] < drawn[:, 38] - 20).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1), (64, 64), (300, 2000), (2000, 300), (1500, 2000)])
@pytest.mark.parametrize("present", [1, 29])
def test_draw_segmentation__legend_fits_at_every_size(size, present):
    image = np.full((*size, 3), 77, np.uint8)
    ids = np.arange(size[0] * size[1]).reshape(size) % present
    plain, sheet = draw_segmentation(image, ids, legend=False), draw_segmentation(image, ids)
    np.testing.assert_array_equal(sheet[: size[0], : size[1]], plain)
    assert sheet.shape[0] > size[0] or sheet.shape[1] > size[1]
    panel = sheet.copy()
    panel[: size[0], : size[1]] = 250
    swatches = {tuple(color) for color in panel[panel.std(axis=2) > 5].tolist()}
    assert {part_table().palette_rgb[index] for index in np.unique(ids)[1:]} <= swatches
    ink = (panel < 245).any(axis=2)
    assert not ink[-1].any(), "text or a swatch is cut off below"
    assert not ink[:, -1].any(), "text or a swatch is cut off on the right"


def test_add_legend__long_names_widen_the_sheet():
    image = picture(64, 64)
    short, long = (add_legend(image, [LegendEntry("n" * length, (255, 0, 0), "99.9%")]) for length in (3, 60))
    assert long.shape[1] > short.shape[1] + 200


def test_add_legend__without_entries_the_picture_is_returned():
    image = picture()
    assert add_legend(image, []) is image


def test_font_size__readable_in_small_pictures_and_in_scale_in_large_ones():
    assert [font_size(size) for size in ((64, 64), (1, 1), (768, 1024), (4096, 3072))] == [11, 11, 22, 72]


def test_distinct_palette__colours_are_distinct():
    palette = distinct_palette(60)
    assert len(set(palette)) == 60
    assert palette[0] == (50, 50, 50)


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        (
            np.zeros((60, 81), int),
            {},
            r"must be integers \(60, 80\) like the picture, got int64 \(60, 81\)",
        ),
        (np.zeros((60, 80)), {}, "got float64"),
        (np.full((60, 80), 29), {}, r"id 29; expected 0..28 or 255"),
        (np.full((60, 80), -1), {}, "id -1"),
        (np.zeros((60, 80), int), {"opacity": 1.5}, "opacity must lie in 0..1, got 1.5"),
        (np.zeros((60, 80), int), {"class_names": ["a"]}, "1 class_names and 29 colours"),
    ],
)
def test_draw_segmentation__refuses(ids, options, message):
    with pytest.raises(InputError, match=message):
        draw_segmentation(picture(), ids, **options)
