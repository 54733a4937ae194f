from __future__ import annotations

import warnings

import numpy as np
import pytest

from sapiens2.assets import keypoint_table
from sapiens2.errors import InputError
from sapiens2.visualization import draw_pose


def grey(height: int = 200, width: int = 160) -> np.ndarray:
    return np.full((height, width, 3), 128, np.uint8)


def person(**at: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Keypoints (1, 308, 2) and scores (1, 308), NaN but for the named ones."""
    points = np.full((1, 308, 2), np.nan, np.float32)
    for name, xy in at.items():
        points[0, keypoint_table().index(name)] = xy
    return points, np.ones((1, 308), np.float32)


def changed(image: np.ndarray, points: np.ndarray, scores: np.ndarray, **options) -> np.ndarray:
    return (draw_pose(image, points, scores, **options) != image).any(axis=2)


def test_draw_pose__nobody_leaves_the_picture_as_it_is():
    image = grey()
    drawn = draw_pose(image, np.zeros((0, 308, 2)), np.zeros((0, 308)), boxes_xyxy=np.zeros((0, 4)))
    np.testing.assert_array_equal(drawn, image)
    assert drawn is not image


def test_draw_pose__links_join_shown_points_in_their_colour():
    points, scores = person(left_shoulder=(40, 50), left_elbow=(120, 50))
    image = grey()
    drawn = draw_pose(image, points, scores)
    link = keypoint_table().skeleton.index((5, 7))
    assert tuple(drawn[50, 80]) == keypoint_table().skeleton_colors_rgb[link]
    np.testing.assert_array_equal(image, grey())


def test_draw_pose__a_link_needs_both_ends():
    points, scores = person(left_shoulder=(40, 50), left_elbow=(120, 50))
    scores[0, keypoint_table().index("left_elbow")] = 0.29
    difference = changed(grey(), points, scores)
    assert difference[50, 40]
    assert not difference[:, 60:].any()
    assert changed(grey(), points, scores, threshold=0.2)[50, 80]


def test_draw_pose__points_are_at_their_place():
    points, scores = person(nose=(30, 170))
    rows, columns = np.nonzero(changed(grey(), points, scores))
    assert (rows.mean(), columns.mean()) == (170, 30)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_draw_pose__points_that_are_not_finite_are_left_out(bad):
    points, scores = person(nose=(bad, 20), neck=(20, bad))
    assert not changed(grey(), points, scores).any()


def test_draw_pose__points_far_outside_do_no_harm():
    points, scores = person(left_shoulder=(40, 50), left_elbow=(1e30, 50), neck=(-3e38, 3e38))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert changed(grey(), points, scores)[50, 40:].all()


def test_draw_pose__widths_follow_the_person():
    small = changed(grey(800, 800), *person(left_shoulder=(40, 50), left_elbow=(120, 50))).sum(axis=0).max()
    large = changed(grey(800, 800), *person(left_shoulder=(40, 50), left_elbow=(780, 50))).sum(axis=0).max()
    assert large > 1.5 * small


@pytest.mark.parametrize("size", [(1, 1), (1, 64), (64, 1), (3, 2)])
def test_draw_pose__tiny_pictures(size):
    points = np.random.default_rng(0).uniform(-2, 66, (2, 308, 2))
    drawn = draw_pose(grey(*size), points, np.ones((2, 308)), boxes_xyxy=np.zeros((2, 4)))
    assert drawn.shape == (*size, 3)


def test_draw_pose__other_sets_of_keypoints_use_the_given_links():
    points = np.float32([[[20, 50], [120, 50], [20, 150]]])
    assert not changed(grey(), points, np.ones((1, 3)))[50, 70]
    assert changed(grey(), points, np.ones((1, 3)), skeleton=[(0, 1)])[50, 70]


def test_draw_pose__boxes_on_request():
    points, scores = person()
    assert not changed(grey(), points, scores).any()
    assert changed(grey(), points, scores, boxes_xyxy=[[10, 20, 100, 150]])[[20, 150], [50, 50]].all()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((grey().astype(float), np.zeros((1, 3, 2)), np.zeros((1, 3))), {}, "image must be uint8"),
        ((grey(), np.zeros((3, 2)), np.zeros((1, 3))), {}, r"keypoints must have shape \(N, K, 2\), got \(3, 2\)"),
        ((grey(), np.zeros((1, 3, 2)), np.zeros((1, 4))), {}, r"scores must have shape \(1, 3\), got \(1, 4\)"),
        (
            (grey(), np.zeros((1, 3, 2)), np.zeros((1, 3))),
            {"skeleton": [(0, 3)]},
            r"skeleton joins \(0, 3\)",
        ),
        (
            (grey(), np.zeros((1, 3, 2)), np.zeros((1, 3))),
            {"boxes_xyxy": np.zeros((2, 4))},
            "boxes_xyxy must have",
        ),
    ],
)
def test_draw_pose__refuses(arguments, options, message):
    with pytest.raises(InputError, match=message):
        draw_pose(*arguments, **options)
