import math

import numpy as np
import pytest
from scipy import ndimage

from sapiens2.errors import InputError
from sapiens2.metrics import MattingMetric
from sapiens2.metrics.components import largest_component


def _fed(prediction, target, mask=None, **options):
    metric = MattingMetric()
    metric.update(prediction, target, mask, **options)
    return metric


def _soft_matte(seed, size_hw=(40, 30)):
    blurred = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=size_hw), 3)
    return np.clip(0.5 + 4 * blurred, 0, 1)


def _benchmark_gradient(alpha):
    """The benchmark's gradient: two-dimensional kernels of unit norm, borders repeated."""
    reach = 4
    x = np.arange(-reach, reach + 1)
    gaussian = np.exp(-(x**2) / (2 * 1.4**2)) / (1.4 * math.sqrt(2 * math.pi))
    derivative = -x * gaussian / 1.4**2
    kernel = np.outer(gaussian, derivative)
    kernel /= np.sqrt((kernel**2).sum())
    return np.hypot(*(ndimage.convolve(alpha, side, mode="nearest") for side in (kernel, kernel.T)))


def _benchmark_connectivity(alpha, truth, step=0.1):
    """The benchmark's connectivity errors, one per pixel."""
    levels = np.full(alpha.shape, -1.0)
    for number in range(1, 11):
        labels, count = ndimage.label((alpha >= number / 10) & (truth >= number / 10))
        if count:
            sizes = ndimage.sum_labels(np.ones_like(alpha), labels, np.arange(1, count + 1))
            largest = labels == 1 + np.argmax(sizes)
        else:
            largest = np.zeros(alpha.shape, bool)
        levels[(levels == -1) & ~largest] = (number - 1) / 10
    levels[levels == -1] = 1
    degrees = []
    for matte in (alpha, truth):
        distance = matte - levels
        degrees.append(1 - distance * (distance >= 0.15))
    return np.abs(degrees[0] - degrees[1])


def test_matting_metric__hand_computed():
    figures = _fed([[0.0, 0.5], [1.0, 1.0]], [[0.0, 1.0], [0.6, 0.0]]).compute()
    assert figures["mad"] == pytest.approx(1.9 / 4)
    assert figures["mse"] == pytest.approx((0.25 + 0.16 + 1) / 4)
    assert figures["sad_per_1000"] == pytest.approx(1.9e-3)
    assert figures["mask_iou"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_matting_metric__equals_the_benchmarks_formulas(seed):
    alpha, truth = _soft_matte(seed), _soft_matte(seed + 10)
    unknown = (truth > 0.05) & (truth < 0.95)
    for region in (None, unknown):
        counted = np.ones_like(unknown) if region is None else region
        figures = _fed(alpha, truth, unknown_region=region).compute()
        slopes = (_benchmark_gradient(alpha) - _benchmark_gradient(truth))[counted] ** 2
        assert figures["grad_per_1000"] == pytest.approx(slopes.sum() / 1000)
        connectivity = _benchmark_connectivity(alpha, truth)[counted]
        assert figures["conn_per_1000"] == pytest.approx(connectivity.sum() / 1000)
        assert figures["sad_per_1000"] == pytest.approx(np.abs(alpha - truth)[counted].sum() / 1000)
        assert figures["pixels"] == counted.sum()


def test_matting_metric__perfect():
    figures = _fed(_soft_matte(1), _soft_matte(1)).compute()
    for name in ("mad", "mse", "sad_per_1000", "grad_per_1000", "conn_per_1000"):
        assert figures[name] == 0, name
    assert figures["mask_iou"] == 1


def test_matting_metric__a_far_island_costs_connectivity():
    truth = np.zeros((20, 20))
    truth[2:12, 2:12] = 1
    island, halo = truth.copy(), truth.copy()
    island[16:18, 16:18] = 1
    halo[12, 2:6] = 1
    assert _fed(island, truth).compute()["conn_per_1000"] == pytest.approx(4e-3)
    assert _fed(halo, truth).compute()["conn_per_1000"] == pytest.approx(4e-3)
    weak = truth + 0.1 * (truth == 0)  # below the tolerance of 0.15
    assert _fed(weak, truth).compute()["conn_per_1000"] == 0


def test_matting_metric__averages_images_not_pixels():
    metric = _fed(np.zeros((1, 1)), np.ones((1, 1)))
    metric.update(np.ones((10, 10)), np.ones((10, 10)))
    assert metric.compute()["mad"] == 0.5
    assert metric.compute()["mask_iou"] == 0.5


def test_matting_metric__pictures_with_nobody():
    metric = MattingMetric(empty_alpha_limit=0.02)
    metric.update(np.full((3, 5, 5), [[[0.01]], [[0.03]], [[0.0]]]), np.zeros((3, 5, 5)))
    metric.update(_soft_matte(1), _soft_matte(1))
    figures = metric.compute()
    assert figures["empty_images"] == 3
    assert figures["empty_images_below_0.02_percent"] == pytest.approx(200 / 3)
    assert figures["mask_iou"] == 1
    assert "3 of 4 images have no alpha >= 0.5 on either side" in metric.notes()[-1]


def test_matting_metric__invented_person_has_no_iou():
    assert _fed(np.ones((4, 4)), np.zeros((4, 4))).compute()["mask_iou"] == 0


def test_matting_metric__unknown_truth_does_not_count_without_a_mask():
    figures = _fed([[0.5, 1.0, 0.9]], [[0.0, np.nan, np.inf]]).compute()
    assert (figures["mad"], figures["pixels"]) == (0.5, 1)


def test_matting_metric__notes_trimaps():
    metric = _fed(np.ones((2, 2)), np.ones((2, 2)), unknown_region=np.eye(2) > 0)
    assert "in 1 of 1 images only the unknown region of a trimap counts" in metric.notes()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("density", [0.3, 0.6, 0.9])
def test_largest_component__equals_scipy(seed, density):
    rng = np.random.default_rng(seed)
    mask = rng.random(rng.integers(1, 40, 2)) < density
    labels, count = ndimage.label(mask)
    expected = labels == 1 + np.argmax(np.bincount(labels.ravel())[1:]) if count else np.zeros_like(mask)
    np.testing.assert_array_equal(largest_component(mask), expected)


def test_largest_component__spirals_and_empties():
    spiral = np.zeros((9, 9), bool)
    spiral[0, :], spiral[:, 8], spiral[8, :], spiral[2:, 0], spiral[2, :7], spiral[2:7, 6] = [True] * 6
    assert largest_component(spiral).sum() == spiral.sum()
    diagonal = np.eye(4, dtype=bool)
    assert largest_component(diagonal).sum() == 1
    assert largest_component(diagonal)[0, 0]
    for size in ((0, 0), (0, 3), (3, 0), (3, 3)):
        assert not largest_component(np.zeros(size, bool)).any()


def test_matting_metric__rejects_alpha_out_of_range():
    with pytest.raises(InputError, match=r"target must lie in .* divide 8-bit pictures by 255"):
        _fed(np.ones((2, 2)), np.full((2, 2), 255))
    with pytest.raises(InputError, match="prediction must lie in"):
        _fed(np.full((2, 2), -0.5), np.ones((2, 2)))
    with pytest.raises(InputError, match="unknown_region: mask must be a bool"):
        _fed(np.ones((2, 2)), np.ones((2, 2)), unknown_region=np.full((2, 2), 128))
    with pytest.raises(InputError, match="empty_alpha_limit"):
        MattingMetric(empty_alpha_limit=0)
