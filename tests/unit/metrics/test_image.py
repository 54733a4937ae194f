import math

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.metrics import ImageMetric


def _fed(prediction, target, mask=None, **settings):
    metric = ImageMetric(**settings)
    metric.update(prediction, target, mask)
    return metric


def _picture(seed, size_hw=(14, 17)):
    return np.random.default_rng(seed).random((3, *size_hw))


def _ssim_by_loops(first, second, mask):
    """Each window by itself: its pixels that count, their weights scaled to 1."""
    offsets = np.arange(-5, 6)
    gaussian = np.exp(-(offsets**2) / (2 * 1.5**2))
    kernel = np.outer(gaussian, gaussian) / gaussian.sum() ** 2
    values = []
    for row, column in np.ndindex(mask.shape):
        window = [(y, x) for y in row + offsets for x in column + offsets]
        inside = [0 <= y < mask.shape[0] and 0 <= x < mask.shape[1] and mask[y, x] for y, x in window]
        weights = kernel.ravel()[inside]
        if weights.sum() <= 0.5:
            continue
        weights = weights / weights.sum()
        rows, columns = np.array(window)[inside].T
        for channel in range(3):
            x, y = first[channel, rows, columns], second[channel, rows, columns]
            mx, my = (weights * x).sum(), (weights * y).sum()
            vx, vy = (weights * (x - mx) ** 2).sum(), (weights * (y - my) ** 2).sum()
            cov = (weights * (x - mx) * (y - my)).sum()
            similarity = (2 * mx * my + 1e-4) * (2 * cov + 9e-4)
            values.append(similarity / ((mx**2 + my**2 + 1e-4) * (vx + vy + 9e-4)))
    return np.mean(values)


def test_image_metric__hand_computed():
    target = np.zeros((3, 1, 2))
    prediction = np.array([[[0.3, 0.0]], [[0.0, 0.0]], [[0.0, 0.3]]])
    figures = _fed(prediction, target).compute()
    assert figures["mae"] == pytest.approx(0.1)
    assert figures["rmse"] == pytest.approx(math.sqrt(0.03))
    assert figures["psnr_db"] == pytest.approx(10 * math.log10(1 / 0.03))


@pytest.mark.parametrize("masked", [False, True])
def test_image_metric__ssim_equals_windows_one_by_one(masked):
    first, second = _picture(1), 0.5 * _picture(1) + 0.5 * _picture(2)
    mask = np.ones((14, 17), bool)
    if masked:
        mask[3:9, 4:8], mask[:, 12:] = False, False
    ssim = _fed(first, second, mask).compute()["ssim"]
    assert ssim == pytest.approx(_ssim_by_loops(first, second, mask), abs=1e-9)


def test_image_metric__perfect_is_infinite_psnr_and_noted():
    metric = _fed(_picture(1), _picture(1))
    figures = metric.compute()
    assert figures["mae"] == figures["rmse"] == 0
    assert figures["psnr_db"] == math.inf
    assert figures["ssim"] == pytest.approx(1)
    assert "psnr_db is infinite" in metric.notes()[0]
    assert metric.report()["values"]["psnr_db"] is None


def test_image_metric__psnr_is_of_the_pooled_error():
    metric = _fed(np.full((3, 1, 1), 0.1), np.zeros((3, 1, 1)))
    metric.update(np.zeros((3, 1, 3)), np.zeros((3, 1, 3)))
    assert metric.compute()["psnr_db"] == pytest.approx(10 * math.log10(4 / 0.01))


def test_image_metric__range_scales():
    small = _fed(_picture(1), _picture(2)).compute()
    large = _fed(255 * _picture(1), 255 * _picture(2), data_range=255).compute()
    assert large["mae"] == pytest.approx(255 * small["mae"])
    assert large["psnr_db"] == pytest.approx(small["psnr_db"])
    assert large["ssim"] == pytest.approx(small["ssim"])


def test_image_metric__clipping_is_a_setting():
    over, white = np.full((3, 2, 2), 1.5), np.ones((3, 2, 2))
    assert _fed(over, white).compute()["mae"] == 0
    assert _fed(over, white, clip_predictions=False).compute()["mae"] == 0.5


def test_image_metric__thin_masks_have_no_ssim_and_a_note():
    mask = np.zeros((14, 17), bool)
    mask[3] = True
    metric = _fed(_picture(1), _picture(2), mask)
    assert math.isnan(metric.compute()["ssim"])
    assert "so there is no ssim" in metric.notes()[-1]


def test_image_metric__rejects_other_ranges():
    with pytest.raises(InputError, match="target must lie in"):
        _fed(_picture(1), 255 * _picture(1))
    with pytest.raises(InputError, match="prediction must lie in"):
        _fed(255 * _picture(1), _picture(1))
    with pytest.raises(InputError, match="data_range must be above 0"):
        ImageMetric(data_range=0)
