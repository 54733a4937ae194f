import math

import numpy as np
import pytest
from scipy.optimize import nnls

from sapiens2.errors import InputError
from sapiens2.metrics import PointmapMetric
from sapiens2.metrics.baselines import constant_plane


def _fed(prediction, target, mask=None, **settings):
    metric = PointmapMetric(**settings)
    metric.update(prediction, target, mask)
    return metric


def _on_axis(*depths):
    depths = np.array(depths, np.float64)
    return np.stack([0 * depths, 0 * depths, depths])[:, None]


def _scene(seed=0, size_hw=(12, 10)):
    rng = np.random.default_rng(seed)
    depth = rng.uniform(2, 4, size_hw)
    rays = rng.uniform(-0.5, 0.5, (2, *size_hw))
    return np.stack([rays[0] * depth, rays[1] * depth, depth])


def test_pointmap_metric__hand_computed():
    target = _on_axis(1.0, 2.0, 4.0, 4.0)
    prediction = target + np.array([[[0, 0, 0, 0.03]], [[0, 0, 0, 0.04]], [[0, 0.6, 0, 0]]])
    figures = _fed(prediction, target, alignment="none").compute()
    assert figures["l2_mean_m"] == pytest.approx((0.6 + 0.05) / 4)
    assert figures["l2_rms_m"] == pytest.approx(math.sqrt((0.36 + 0.0025) / 4))
    assert figures["abs_rel_depth"] == figures["relief_abs_rel"] == pytest.approx(0.3 / 4)
    assert figures["relief_error_m"] == pytest.approx(0.6 / 4)
    assert figures["delta_1_percent"] == 75
    assert figures["delta_2_percent"] == figures["delta_3_percent"] == 100
    assert figures["within_10_cm_percent"] == figures["within_20_cm_percent"] == 75
    assert figures["plane_relief_error_m"] == pytest.approx((1.75 + 0.75 + 1.25 + 1.25) / 4)
    assert figures["plane_relief_abs_rel"] == pytest.approx((1.75 + 0.375 + 0.3125 * 2) / 4)


@pytest.mark.parametrize("alignment", ["none", "scale", "scale_shift"])
def test_pointmap_metric__perfect(alignment):
    figures = _fed(_scene(), _scene(), alignment=alignment).compute()
    for name in ("l2_mean_m", "l2_rms_m", "abs_rel_depth", "scale_error", "relief_abs_rel", "relief_error_m"):
        assert figures[name] == pytest.approx(0, abs=1e-12), name
    for name in ("delta_1_percent", "within_5_cm_percent", "relief_gain_percent"):
        assert figures[name] == pytest.approx(100), name


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.25, 3.0])
def test_pointmap_metric__scale_is_an_error_of_scale_alone(factor):
    figures = _fed(factor * _scene(), _scene(), alignment="scale").compute()
    assert figures["scale_error"] == pytest.approx(abs(factor - 1))
    assert figures["relief_abs_rel"] == pytest.approx(0, abs=1e-12)
    assert figures["abs_rel_depth"] == pytest.approx(abs(factor - 1))
    assert figures["l2_mean_m"] == pytest.approx(abs(factor - 1) * np.linalg.norm(_scene(), axis=0).mean())


def test_pointmap_metric__shift_is_no_error_of_relief_after_scale_and_shift():
    moved = _scene() * np.array([[[1]], [[1]], [[0.5]]]) + np.array([[[0]], [[0]], [[7]]])
    assert _fed(moved, _scene(), alignment="scale_shift").compute()["relief_error_m"] == pytest.approx(0, abs=1e-12)
    assert _fed(moved, _scene(), alignment="scale").compute()["relief_error_m"] > 0.1


@pytest.mark.parametrize("alignment", ["scale", "scale_shift"])
@pytest.mark.parametrize("sign", [1, -1])
def test_pointmap_metric__alignment_is_least_squares(alignment, sign):
    target, prediction = _scene(1), _scene(2)
    prediction[2] = 10 + sign * target[2] + prediction[2]  # with -1 the relief is inside out
    depths, truths = prediction[2].ravel(), target[2].ravel()
    columns = [depths] if alignment == "scale" else [depths, np.ones_like(depths), -np.ones_like(depths)]
    matrix = np.stack(columns, axis=1)
    aligned = matrix @ nnls(matrix, truths)[0]  # factors >= 0; the shift has a column of each sign
    figures = _fed(prediction, target, alignment=alignment).compute()
    assert figures["relief_error_m"] == pytest.approx(np.abs(aligned - truths).mean())
    assert figures["relief_abs_rel"] == pytest.approx((np.abs(aligned - truths) / truths).mean())


def test_pointmap_metric__inverted_relief_is_no_better_than_a_plane():
    inverted = _scene()
    inverted[2] = 10 - inverted[2]
    figures = _fed(inverted, _scene()).compute()
    assert figures["relief_gain_percent"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("alignment", ["scale", "scale_shift"])
def test_pointmap_metric__constant_depth_gets_what_the_plane_gets(alignment):
    flat = _scene()
    flat[2] = 5.0
    figures = _fed(flat, _scene(), alignment=alignment).compute()
    assert figures["relief_abs_rel"] == pytest.approx(figures["plane_relief_abs_rel"], rel=0.02)
    plane = _fed(constant_plane(_scene()), _scene(), alignment="none").compute()
    assert plane["relief_abs_rel"] == pytest.approx(plane["plane_relief_abs_rel"], rel=1e-6)


def test_pointmap_metric__negative_depth_is_never_within_delta():
    figures = _fed(_on_axis(-1.0, 1.0), _on_axis(1.0, 1.0)).compute()
    assert figures["delta_3_percent"] == 50


@pytest.mark.parametrize("depth", [0.0, -2.0])
def test_pointmap_metric__no_positive_scale_is_infinite_and_noted(depth):
    metric = _fed(_on_axis(depth, depth), _on_axis(1.0, 2.0), alignment="scale")
    assert metric.compute()["scale_error"] == math.inf
    assert "in 1 images no positive factor fits" in metric.notes()[0]
    assert metric.report()["values"]["scale_error"] is None


def test_pointmap_metric__points_behind_the_camera_do_not_count():
    figures = _fed(_on_axis(1.0, 5.0, 5.0), _on_axis(1.0, 0.0, -1.0)).compute()
    assert figures["pixels"] == 1
    assert figures["l2_mean_m"] == 0


def test_pointmap_metric__flat_truth_has_no_gain():
    assert math.isnan(_fed(_on_axis(1.0, 1.0), _on_axis(2.0, 2.0)).compute()["relief_gain_percent"])


def test_pointmap_metric__rejects_other_alignments():
    with pytest.raises(InputError, match="none, scale, scale_shift; got 'affine'"):
        PointmapMetric(alignment="affine")
