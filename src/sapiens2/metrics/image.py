"""Accuracy of pictures: albedo, or any other colours."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.metrics.dense_metric import DenseMetric
from sapiens2.metrics.inputs import check_finite, check_range, paired_maps
from sapiens2.metrics.separable_filter import separable_filter
from sapiens2.types import ArrayLike

__all__ = ["ImageMetric"]

WINDOW, SIGMA = 11, 1.5
K1, K2 = 0.01, 0.03
MIN_WINDOW_WEIGHT = 0.5
_SLACK = 1e-3  # rounding of half-precision pictures


class ImageMetric(DenseMetric):
    """Differences of RGB pictures, pooled over the pixels of all images.

    Figures: ``mae``, ``rmse`` (in units of the data, averaged over channels), ``psnr_db`` (from the pooled mean
    squared error; infinite when all pictures are equal), ``ssim``, ``images``, ``pixels``.

    SSIM is that of an 11×11 Gaussian window with sigma 1.5, K1 = 0.01, K2 = 0.03, averaged over channels. Its moments
    are taken over the pixels of a window that count, and it is measured wherever these hold more than half of the
    window's weight; what lies beyond the border of a picture does not count.

    A pixel counts when its mask is True and its target is finite.

    Args:
        data_range: Largest value a picture can have: fixed here, never guessed from what was seen.
        clip_predictions: Whether predictions are limited to ``[0, data_range]`` first, as when a picture is saved.
        mask_description: What the masks select, in words.

    Raises:
        InputError: ``data_range`` is not above 0.

    Source: Wang et al., Image Quality Assessment: From Error Visibility to Structural Similarity, IEEE TIP 13, 2004.
    """

    def __init__(self, *, data_range: float = 1.0, clip_predictions: bool = True, mask_description: str = "") -> None:
        super().__init__(mask_description=mask_description)
        self._data_range = float(data_range)
        self._clip_predictions = clip_predictions
        if not 0 < self._data_range < math.inf:
            raise InputError(f"data_range must be above 0 and finite, got {data_range}")

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {
            "data_range": self._data_range,
            "clip_predictions": self._clip_predictions,
            **super().settings(),
        }

    def update(self, prediction: ArrayLike, target: ArrayLike, mask: ArrayLike | None = None) -> None:
        """Add an image or a batch.

        Args:
            prediction: ``(3, H, W)`` or ``(B, 3, H, W)`` RGB, at most one data range below 0 or above the range:
                more than that is a picture of another range.
            target: The same shape, in ``[0, data_range]``.
            mask: ``(H, W)`` or ``(B, H, W)`` bool, True where a pixel counts.

        Raises:
            InputError: Shapes that do not fit, a mask that is not bool, NaN in a prediction that counts, or values
                out of range.
        """
        predicted, true, masked = paired_maps(prediction, target, mask, channels=3)
        valid = torch.isfinite(true).all(dim=1, keepdim=True) & masked
        limit = self._data_range
        check_finite(predicted, valid, "prediction")
        check_range(true, valid, "target", -_SLACK * limit, (1 + _SLACK) * limit)
        check_range(predicted, valid, "prediction", -limit, 2 * limit)
        if self._clip_predictions:
            predicted = predicted.clamp(0, limit)
        self._count_images(valid, masked=mask is not None)
        for picture, truth, counted in zip(predicted, true, valid, strict=True):
            self._add_picture(picture, truth, counted)

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; NaN when no pixel counted."""
        totals = self._totals
        mse = totals.mean("squared_error", "pixels")
        return {
            "mae": totals.mean("absolute_error", "pixels"),
            "rmse": math.sqrt(mse),
            "psnr_db": 10 * math.log10(self._data_range**2 / mse) if mse != 0 else math.inf,
            "ssim": totals.mean("ssim", "windows"),
            **self._counts(),
        }

    def notes(self) -> tuple[str, ...]:
        """Sentences about equal pictures and windows that are too small, and what all metrics of maps say."""
        found, totals = super().notes(), self._totals
        if totals.count_of("pixels"):
            if totals.sum_of("squared_error") == 0:
                found += ("all pictures equal their truth, so psnr_db is infinite",)
            if not totals.count_of("windows"):
                found += ("no window had more than half of its weight on pixels that count, so there is no ssim",)
        return found

    def _add_picture(self, picture: Tensor, truth: Tensor, counted: Tensor) -> None:
        """Add one image: ``(3, H, W)`` twice, and ``(1, H, W)`` bool."""
        errors = (picture - truth)[:, counted[0]]
        self._totals.add("absolute_error", errors.abs().mean(dim=0).sum().item())
        self._totals.add("squared_error", errors.square().mean(dim=0).sum().item())
        similarity, enough = _masked_ssim(picture, truth, counted, self._data_range)
        self._totals.add("ssim", similarity[enough].sum().item())
        self._totals.count("windows", int(enough.sum()))


def _masked_ssim(first: Tensor, second: Tensor, counted: Tensor, data_range: float) -> tuple[Tensor, Tensor]:
    """SSIM around each pixel.

    Args:
        first: ``(C, H, W)`` float64.
        second: ``(C, H, W)`` float64.
        counted: ``(1, H, W)`` bool.
        data_range: Largest value a picture can have.

    Returns:
        ``(H, W)`` similarity, averaged over channels, and ``(H, W)`` bool where enough of the window counts.
    """
    weights = _blurred(counted.to(first.dtype))  # (1, H, W)
    enough = weights > MIN_WINDOW_WEIGHT

    def window_mean(values: Tensor) -> Tensor:
        return _blurred(torch.where(counted, values, torch.zeros_like(values))) / weights.clamp_min(MIN_WINDOW_WEIGHT)

    mean1, mean2 = window_mean(first), window_mean(second)
    variance1 = window_mean(first.square()) - mean1.square()
    variance2 = window_mean(second.square()) - mean2.square()
    covariance = window_mean(first * second) - mean1 * mean2
    c1, c2 = (K1 * data_range) ** 2, (K2 * data_range) ** 2
    luminance = (2 * mean1 * mean2 + c1) / (mean1.square() + mean2.square() + c1)
    structure = (2 * covariance + c2) / (variance1 + variance2 + c2)
    return (luminance * structure).mean(dim=0), enough[0]


def _blurred(maps: Tensor) -> Tensor:
    """Gaussian average of ``(C, H, W)`` maps; beyond the border there are zeros."""
    offsets = torch.arange(WINDOW, dtype=maps.dtype, device=maps.device) - WINDOW // 2
    kernel = torch.exp(-offsets.square() / (2 * SIGMA**2))
    kernel = kernel / kernel.sum()
    reach = WINDOW // 2
    return separable_filter(F.pad(maps, (reach, reach, reach, reach)), kernel, kernel)
