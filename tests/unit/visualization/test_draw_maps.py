"""Pictures of normals, pointmaps, mattes and albedo."""

from __future__ import annotations

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.visualization import (
    checkerboard,
    depth_range,
    draw_albedo,
    draw_contact_sheet,
    draw_matte,
    draw_normals,
    draw_pointmap,
    straight_foreground,
)
from sapiens2.visualization.turbo import turbo, turbo_table

RNG = np.random.default_rng(0)
GREY = [100, 100, 100]


def cloud(depth: np.ndarray) -> np.ndarray:
    return np.stack([np.zeros_like(depth), np.zeros_like(depth), depth]).astype(np.float32)


def test_draw_normals__axes_are_red_green_blue():
    normals = np.array([[[1, 0, 0, -1, 0]], [[0, 1, 0, 0, 0]], [[0, 0, 1, 0, 0]]], np.float32)
    assert draw_normals(normals)[0].tolist() == [
        [255, 128, 128],
        [128, 255, 128],
        [128, 128, 255],
        [0, 128, 128],
        [128, 128, 128],
    ]


def test_draw_normals__masked_and_broken_pixels_are_black():
    normals = np.zeros((3, 1, 3), np.float32)
    normals[0, 0, 0] = np.nan
    assert draw_normals(normals, mask=np.array([[True, False, True]]))[0].tolist() == [[0] * 3, [0] * 3, [128] * 3]


def test_turbo__published_colours():
    # Entries of the published table (Mikhailov 2019); the polynomial is farthest from it at the dark blue end.
    published = {
        0: (0.18995, 0.07176, 0.23217),
        16: (0.25107, 0.25237, 0.63374),
        32: (0.27628, 0.42118, 0.89123),
        128: (0.644, 0.990, 0.234),
        255: (0.480, 0.016, 0.011),
    }
    for index, color in published.items():
        assert np.abs(turbo_table()[index] / 255 - color).max() < (0.13 if index == 0 else 0.09)


def test_turbo__clips():
    assert turbo(np.array([-1.0, 2.0])).tolist() == turbo_table()[[0, 255]].tolist()


def test_draw_pointmap__near_is_red_far_is_blue_in_inverse_depth():
    depth = np.linspace(1, 5, 2001).reshape(3, 667)
    drawn = draw_pointmap(cloud(depth))
    near, far = depth_range(depth)
    assert drawn[0, 0].tolist() == turbo_table()[255].tolist()
    assert drawn[-1, -1].tolist() == turbo_table()[0].tolist()
    middle = 2 / (1 / near + 1 / far)  # harmonic mean: half way in inverse depth
    place = np.unravel_index(np.abs(depth - middle).argmin(), depth.shape)
    assert np.abs(drawn[place].astype(int) - turbo_table()[128]).max() <= 8


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.0, -2.0, 1e-45])
def test_draw_pointmap__invalid_depth_is_grey(bad):
    depth = np.full((4, 5), 2.0)
    depth[1:3] += 0.5
    depth[0, 0] = bad
    drawn = draw_pointmap(cloud(depth))
    assert drawn[0, 0].tolist() == GREY
    assert drawn[0, 1].tolist() != GREY


@pytest.mark.parametrize("depth", [np.full((4, 5), np.nan), np.zeros((4, 5)), np.full((1, 1), -1.0)])
def test_draw_pointmap__nothing_valid_is_all_grey(depth):
    assert (draw_pointmap(cloud(depth)) == GREY).all()


def test_draw_pointmap__empty_mask_is_all_grey():
    assert (draw_pointmap(cloud(np.ones((4, 5))), mask=np.zeros((4, 5), bool)) == GREY).all()


@pytest.mark.parametrize("depth", [1e-30, 2.0, 1e30])
def test_draw_pointmap__constant_depth_is_the_lowest_colour(depth):
    assert (draw_pointmap(cloud(np.full((4, 5), depth))) == turbo_table()[0]).all()


def test_draw_pointmap__mask_decides_the_limits():
    depth = np.full((4, 10), 1000.0)
    depth[:, :5] = np.linspace(1, 2, 20).reshape(4, 5)
    mask = depth < 100
    np.testing.assert_array_equal(draw_pointmap(cloud(depth), mask=mask)[:, :5], draw_pointmap(cloud(depth[:, :5])))


def test_draw_pointmap__doubled_depth_looks_the_same():
    depth = RNG.uniform(1, 4, (30, 30))
    np.testing.assert_array_equal(draw_pointmap(cloud(depth)), draw_pointmap(cloud(2 * depth)))


def test_draw_pointmap__given_limits_keep_colours_over_frames():
    frames = [np.linspace(1, far, 40).reshape(4, 10) for far in (2, 9)]
    first = [draw_pointmap(cloud(depth), depth_limits=(1, 10))[0, 0].tolist() for depth in frames]
    assert first[0] == first[1] == turbo_table()[255].tolist()


@pytest.mark.parametrize("limits", [(0, 1), (2, 1), (np.nan, 1), (1, np.inf)])
def test_draw_pointmap__refuses_limits(limits):
    with pytest.raises(InputError, match="depth_limits must be 0 < nearest <= farthest"):
        draw_pointmap(cloud(np.ones((4, 5))), depth_limits=limits)


def test_depth_range__percentiles_leave_outliers_out():
    depth = np.concatenate([np.full(1000, 2.0), [1e6], [np.nan], [-3.0]])
    assert depth_range(depth) == (2.0, 2.0)
    assert depth_range(np.array([np.nan])) is None


def test_draw_matte__composite_of_premultiplied_colour():
    alpha, foreground = np.float32([[0.0, 0.25, 1.0]]), np.float32([[[0, 0.25, 1]], [[0, 0, 0]], [[0, 0.1, 0.5]]])
    assert draw_matte(alpha, foreground, background=(200, 100, 0))[0].tolist() == [
        [200, 100, 0],
        [214, 75, 26],
        [255, 0, 128],
    ]
    behind = np.full((1, 3, 3), (200, 100, 0), np.uint8)
    np.testing.assert_array_equal(
        draw_matte(alpha, foreground, background=behind), draw_matte(alpha, foreground, background=(200, 100, 0))
    )


def test_draw_matte__transparent_shows_the_checkerboard():
    drawn = draw_matte(np.zeros((64, 64)), np.zeros((3, 64, 64)))
    np.testing.assert_array_equal(drawn, checkerboard((64, 64)))
    assert sorted(np.unique(drawn)) == [204, 255]


def test_straight_foreground__undoes_the_multiplication():
    straight, alpha = RNG.uniform(0, 1, (3, 9, 9)), RNG.uniform(0.01, 1, (9, 9))
    np.testing.assert_allclose(straight_foreground(alpha, straight * alpha), straight, atol=1e-5)
    assert not straight_foreground(np.zeros((2, 2)), np.ones((3, 2, 2))).any()
    assert (straight_foreground(np.full((2, 2), 0.5), np.ones((3, 2, 2))) == 1).all()


@pytest.mark.parametrize(
    ("background", "message"),
    [
        ((0, 0, 256), "three integers in 0..255"),
        ((0.5, 0.5, 0.5), "three integers in 0..255"),
        (np.zeros((3, 4, 3), np.uint8), r"must have the size \(4, 4\) of alpha, got \(3, 4\)"),
        (np.zeros((4, 4, 3)), "background must be uint8"),
        (np.zeros((4, 4, 4), np.uint8), "background must have shape"),
    ],
)
def test_draw_matte__refuses_backgrounds(background, message):
    with pytest.raises(InputError, match=message):
        draw_matte(np.zeros((4, 4)), np.zeros((3, 4, 4)), background=background)


def test_draw_matte__sizes_must_agree():
    with pytest.raises(InputError, match=r"foreground must have shape \(3, 4, 5\), got \(3, 4, 4\)"):
        draw_matte(np.zeros((4, 5)), np.zeros((3, 4, 4)))


def test_draw_albedo__rounds_clips_and_masks():
    albedo = np.float32([[[0.5, 2.0]], [[0.0, -1.0]], [[1.0, 0.25]]])
    assert draw_albedo(albedo)[0].tolist() == [[128, 0, 255], [255, 0, 64]]
    assert draw_albedo(albedo, mask=np.array([[True, False]]))[0].tolist() == [[128, 0, 255], GREY]


@pytest.mark.parametrize("count", range(1, 9))
def test_draw_contact_sheet__every_panel_is_there_once(count):
    colors = [(30 * index + 5, 255 - 20 * index, 7) for index in range(count)]
    panels = [(f"Panel {index}", np.full((40, 30, 3), color, np.uint8)) for index, color in enumerate(colors)]
    sheet = draw_contact_sheet(panels)
    for color in colors:
        assert (sheet == color).all(axis=2).sum() == 40 * 30


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (2000, 1500)])
def test_draw_contact_sheet__odd_sizes_are_made_to_fit(size):
    sheet = draw_contact_sheet([("Input", np.zeros((*size, 3), np.uint8))] * 2, panel_side=200)
    assert max(sheet.shape) < 700


def test_draw_contact_sheet__refuses_nothing():
    with pytest.raises(InputError, match="at least one picture"):
        draw_contact_sheet([])


def test_draw_contact_sheet__columns__are_as_asked_for() -> None:
    panels = [("a", np.zeros((50, 40, 3), np.uint8))] * 3
    row, column = draw_contact_sheet(panels, columns=3), draw_contact_sheet(panels, columns=1)
    assert row.shape[1] > 3 * 40
    assert row.shape[0] < column.shape[0] / 2
    assert column.shape[0] > 3 * 50
    with pytest.raises(InputError, match="columns must be at least 1, got 0"):
        draw_contact_sheet(panels, columns=0)
