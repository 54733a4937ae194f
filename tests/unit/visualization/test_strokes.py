from __future__ import annotations

import numpy as np
import pytest

from sapiens2.visualization.strokes import draw_box, draw_disc, draw_segment

WHITE = (255, 255, 255)


def black(height: int = 40, width: int = 50) -> np.ndarray:
    return np.zeros((height, width, 3), np.uint8)


@pytest.mark.parametrize("center", [(20.0, 15.0), (20.25, 15.5), (19.5, 14.9)])
@pytest.mark.parametrize("radius", [1.0, 2.5, 6.3])
def test_draw_disc__area_and_centre_of_mass_are_those_of_the_circle(center, radius):
    canvas = black()
    draw_disc(canvas, center, radius, WHITE)
    weight = canvas[..., 0] / 255
    y, x = np.mgrid[:40, :50]
    assert weight.sum() == pytest.approx(np.pi * radius**2, rel=0.08, abs=0.4)
    assert (weight * x).sum() / weight.sum() == pytest.approx(center[0], abs=0.03)
    assert (weight * y).sum() / weight.sum() == pytest.approx(center[1], abs=0.03)


def test_draw_segment__area_is_that_of_a_rectangle_with_round_ends():
    canvas = black(80, 80)
    draw_segment(canvas, (15.2, 20.7), (60.1, 55.3), 3.0, WHITE)
    length = np.hypot(60.1 - 15.2, 55.3 - 20.7)
    assert (canvas[..., 0] / 255).sum() == pytest.approx(6 * length + 9 * np.pi, rel=0.01)


def test_draw_segment__direction_makes_no_difference():
    one, other = black(), black()
    draw_segment(one, (3, 4), (40, 30), 2.0, (10, 200, 30))
    draw_segment(other, (40, 30), (3, 4), 2.0, (10, 200, 30))
    assert np.abs(one.astype(int) - other).max() <= 1
    assert one.any()


def test_draw_segment__opacity_blends():
    canvas = np.full((9, 9, 3), 100, np.uint8)
    draw_disc(canvas, (4, 4), 3, (200, 0, 100), 0.5)
    assert canvas[4, 4].tolist() == [150, 50, 100]
    assert canvas[0, 0].tolist() == [100, 100, 100]


@pytest.mark.parametrize("point", [(-50.0, 5.0), (500.0, 5.0), (5.0, -50.0), (5.0, 500.0), (-1e6, 1e6)])
def test_draw_disc__outside_changes_nothing(point):
    canvas = black()
    draw_disc(canvas, point, 3, WHITE)
    assert not canvas.any()


def test_draw_segment__crossing_the_picture_from_outside():
    canvas = black()
    draw_segment(canvas, (-1e6, 20), (1e6, 20), 1.0, WHITE)
    assert (canvas[20] == 255).all()
    assert not canvas[25].any()


@pytest.mark.parametrize("size", [(1, 1), (1, 30), (30, 1)])
def test_draw_box__tiny_pictures(size):
    canvas = black(*size)
    draw_box(canvas, (0, 0, size[1] - 1, size[0] - 1), 0.6, WHITE)
    assert canvas.any()
