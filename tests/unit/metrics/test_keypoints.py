import math

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.metrics import PckMetric, keypoint_groups


def _fed(prediction, target, mask=None, num_keypoints=2, boxes=None, lengths=None, **settings):
    metric = PckMetric(num_keypoints, **settings)
    metric.update(prediction, target, mask, boxes=boxes, lengths=lengths)
    return metric


TRUTH = np.zeros((1, 2, 2))
NEAR_AND_FAR = np.array([[[3.0, 4.0], [0.0, 10.0]]])


def test_keypoint_groups__are_those_of_the_published_evaluation():
    sizes = {name: len(indices) for name, indices in keypoint_groups().items()}
    assert sizes == {"body": 17, "foot": 6, "face": 238, "left_hand": 20, "right_hand": 20, "whole": 308}


def test_pck_metric__hand_computed_at_the_limit():
    figures = _fed(NEAR_AND_FAR, TRUTH, boxes=[[0, 0, 40, 100]]).compute()
    assert figures["whole/pck_0.05_percent"] == 50  # 5 of 100 is still correct
    assert figures["whole/pck_0.1_percent"] == 100
    assert figures["whole/normalised_error"] == pytest.approx(0.075)
    assert (figures["whole/keypoints"], figures["people"]) == (2, 1)


@pytest.mark.parametrize(
    ("settings", "length"),
    [
        ({"boxes": [[5, 5, 30, 40]]}, 40),
        ({"boxes": [[5, 5, 40, 30]]}, 40),
        ({"boxes": [[5, 5, 30, 40]], "reference": "diagonal"}, 50),
        ({"lengths": [20], "reference": "given"}, 20),
    ],
)
def test_pck_metric__reference_lengths(settings, length):
    assert _fed(NEAR_AND_FAR, TRUTH, **settings).compute()["whole/normalised_error"] == pytest.approx(7.5 / length)


def test_pck_metric__axes_share_one_length():
    along_x, along_y = (_fed(TRUTH + move, TRUTH, boxes=[[0, 0, 20, 80]]) for move in ([6, 0], [0, 6]))
    assert along_x.compute() == along_y.compute()


def test_pck_metric__scaling_the_picture_changes_nothing():
    rng = np.random.default_rng(0)
    prediction, truth = rng.uniform(0, 50, (2, 3, 2, 2))
    boxes = np.array([[0, 0, 50, 40], [1, 2, 30, 60], [4, 4, 9, 9.0]])
    small, large = (_fed(f * prediction, f * truth, boxes=f * boxes).compute() for f in (1, 8))
    assert small == large


def test_pck_metric__unlabelled_points_do_not_count_and_lost_ones_are_wrong():
    prediction = np.array([[[np.nan, np.nan], [0, 0]], [[0, 0], [9, 9]]])
    target = np.array([[[0, 0], [0, 0]], [[0, 0], [np.nan, 0]]])
    mask = np.array([[True, True], [False, True]])
    metric = _fed(prediction, target, mask, boxes=[[0, 0, 10, 10]] * 2)
    figures = metric.compute()
    assert figures["whole/keypoints"] == 2
    assert figures["whole/pck_0.1_percent"] == 50
    assert figures["whole/normalised_error"] == 0
    assert metric.notes() == ("whole: 1 of 2 keypoints were not found, and count as wrong",)


def test_pck_metric__group_without_truth_is_nan_and_noted():
    metric = _fed(TRUTH, TRUTH, [[True, False]], boxes=[[0, 0, 9, 9]], groups={"a": [0], "b": [1]})
    assert metric.compute()["a/pck_0.1_percent"] == 100
    assert math.isnan(metric.compute()["b/pck_0.1_percent"])
    assert metric.notes() == ("b: no keypoint has a truth",)


def test_pck_metric__nobody_is_no_error():
    metric = _fed([], [], [], boxes=[])
    assert metric.compute()["people"] == 0
    assert metric.notes() == ("whole: no keypoint has a truth",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prediction": np.zeros((1, 3, 2))}, r"prediction must have shape \(N, 2, 2\), got \(1, 3, 2\)"),
        ({"prediction": np.zeros((2, 2, 2))}, "prediction has 2 people and target 1"),
        ({"prediction": np.full((1, 2, 2), np.inf)}, "infinite coordinates"),
        ({"mask": np.ones((1, 2))}, "mask must be bool"),
        ({"mask": np.ones((1, 3), bool)}, "mask must be bool"),
        ({"boxes": None}, "'longer_side' needs boxes"),
        ({"lengths": [3]}, "needs boxes, and only them"),
        ({"boxes": [[0, 0, 0, 0]]}, "must be above 0"),
        ({"boxes": [0, 0, 9, 9]}, r"boxes must have shape \(1, 4\)"),
        ({"reference": "head"}, "longer_side, diagonal, given; got 'head'"),
        ({"thresholds": [0]}, "thresholds"),
        ({"groups": {"a": [2]}}, "group 'a' must list indices 0 to 1"),
        ({"groups": {"a": []}}, "group 'a'"),
        ({"num_keypoints": 0}, "num_keypoints"),
    ],
)
def test_pck_metric__rejects(changes, message):
    with pytest.raises(InputError, match=message):
        _fed(**({"prediction": TRUTH, "target": TRUTH, "boxes": [[0, 0, 9, 9]]} | changes))
