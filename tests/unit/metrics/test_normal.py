import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sapiens2.errors import InputError
from sapiens2.metrics import NormalMetric
from sapiens2.metrics.normal import BIN_DEG


def _tilted(angles_deg):
    """Unit vectors that lean from the z axis by the given angles, ``(3, 1, N)``."""
    angles = np.radians(np.atleast_1d(angles_deg))
    return np.stack([np.sin(angles), 0 * angles, np.cos(angles)])[:, None]


def _straight(number):
    return _tilted(np.zeros(number))


def _measured(prediction, target, mask=None, **settings):
    metric = NormalMetric(**settings)
    metric.update(prediction, target, mask)
    return metric.compute()


def test_normal_metric__hand_computed():
    figures = _measured(_tilted([0, 10, 20, 90]), _straight(4))
    assert figures["mean_angular_error_deg"] == pytest.approx(30)
    assert figures["median_angular_error_deg"] == pytest.approx(15)
    assert figures["rms_angular_error_deg"] == pytest.approx(math.sqrt((100 + 400 + 8100) / 4))
    assert figures["within_5_deg_percent"] == 25
    assert figures["within_11.25_deg_percent"] == 50
    assert figures["within_22.5_deg_percent"] == figures["within_30_deg_percent"] == 75
    assert (figures["images"], figures["pixels"]) == (1, 4)


@pytest.mark.parametrize("limit", [5, 11.25, 22.5, 30])
def test_normal_metric__within_changes_at_its_limit(limit):
    figures = _measured(_tilted([limit - 1e-6, limit + 1e-6, limit + 1e-6]), _straight(3))
    assert figures[f"within_{limit:g}_deg_percent"] == pytest.approx(100 / 3)


def test_normal_metric__perfect_is_zero_for_any_lengths():
    normals = np.random.default_rng(0).normal(size=(3, 20, 30))
    figures = _measured(normals * 7, normals / 3)
    assert figures["mean_angular_error_deg"] < 1e-6
    assert figures["median_angular_error_deg"] == 0
    assert figures["within_5_deg_percent"] == 100


def test_normal_metric__opposed_is_180():
    figures = _measured(-_straight(3), _straight(3))
    assert figures["mean_angular_error_deg"] == figures["median_angular_error_deg"] == 180


def test_normal_metric__tiny_angles_are_not_lost():
    assert _measured(_tilted(1e-5), _straight(1))["mean_angular_error_deg"] == pytest.approx(1e-5, rel=1e-6)


def test_normal_metric__zero_prediction_is_a_right_angle():
    assert _measured(np.zeros((3, 1, 2)), _straight(2))["mean_angular_error_deg"] == 90


def test_normal_metric__targets_that_are_no_direction_do_not_count():
    target = _straight(4)
    target[:, 0, 1], target[:, 0, 2], target[:, 0, 3] = 0, np.nan, -1000
    figures = _measured(_tilted([0, 50, 50, 50]), target)
    assert figures["pixels"] == 1
    assert figures["mean_angular_error_deg"] == 0


def test_normal_metric__pools_over_pixels_not_images():
    metric = NormalMetric()
    metric.update(_tilted([10.0]), _straight(1))
    metric.update(_tilted([40.0, 40.0, 40.0]), _straight(3))
    assert metric.compute()["mean_angular_error_deg"] == pytest.approx(32.5)


@given(st.lists(st.floats(0, 180), min_size=1, max_size=30))
def test_normal_metric__median_is_exact_to_half_a_bin(angles):
    figures = _measured(_tilted(angles), _straight(len(angles)))
    assert figures["median_angular_error_deg"] == pytest.approx(np.median(angles), abs=BIN_DEG / 2 + 1e-9)
    assert figures["mean_angular_error_deg"] == pytest.approx(np.mean(angles), abs=1e-9)


def test_normal_metric__rejects_thresholds_and_channels():
    with pytest.raises(InputError, match="thresholds_deg must be above 0"):
        NormalMetric(thresholds_deg=(5, 0))
    with pytest.raises(InputError, match=r"\(3, H, W\)"):
        NormalMetric().update(np.zeros((4, 4, 3)), np.zeros((4, 4, 3)))
