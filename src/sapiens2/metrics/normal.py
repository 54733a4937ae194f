"""Accuracy of surface normals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.normal import valid_normals
from sapiens2.metrics.dense_metric import DenseMetric
from sapiens2.metrics.inputs import check_finite, paired_maps
from sapiens2.types import ArrayLike

__all__ = ["NormalMetric"]

BIN_DEG = 0.01
"""Width of the bins in which angles are counted for the median."""

_NUM_BINS = round(180 / BIN_DEG) + 1


class NormalMetric(DenseMetric):
    """Angles between predicted and true normals, pooled over the pixels of all images.

    Figures: ``mean_angular_error_deg``, ``median_angular_error_deg`` (to within 0.005°, half a bin of the histogram
    that stands for the angles), ``rms_angular_error_deg``, ``within_<t>_deg_percent`` (angles below t), ``images``,
    ``pixels``.

    A pixel counts when its target is a direction (:func:`sapiens2.losses.valid_normals`) and its mask is True. Both
    sides may have any length. A predicted zero vector has no direction and counts as 90°.

    Args:
        thresholds_deg: Limits t of ``within_<t>_deg_percent``, above 0.
        mask_description: What the masks select, in words.

    Raises:
        InputError: A threshold is not above 0.

    Convention: prediction and target in one and the same camera frame.

    Source: Eigen and Fergus, Predicting Depth, Surface Normals and Semantic Labels, ICCV 2015, section 5.2.
    """

    def __init__(self, *, thresholds_deg: Sequence[float] = (5, 11.25, 22.5, 30), mask_description: str = "") -> None:
        super().__init__(mask_description=mask_description)
        self._thresholds_deg = tuple(float(limit) for limit in thresholds_deg)
        if not all(limit > 0 for limit in self._thresholds_deg):
            raise InputError(f"thresholds_deg must be above 0, got {self._thresholds_deg}")

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {"thresholds_deg": list(self._thresholds_deg), **super().settings()}

    def update(self, prediction: ArrayLike, target: ArrayLike, mask: ArrayLike | None = None) -> None:
        """Add an image or a batch.

        Args:
            prediction: ``(3, H, W)`` or ``(B, 3, H, W)`` vectors of any length.
            target: The same shape.
            mask: ``(H, W)`` or ``(B, H, W)`` bool, True where a pixel counts.

        Raises:
            InputError: Shapes that do not fit, a mask that is not bool, or a prediction that is NaN where it counts.
        """
        predicted, true, masked = paired_maps(prediction, target, mask, channels=3)
        valid = valid_normals(true, masked)
        check_finite(predicted, valid, "prediction")
        self._count_images(valid, masked=mask is not None)
        for vectors, truths, counted in zip(predicted, true, valid, strict=True):
            self._add_angles(_angles_deg(vectors[:, counted[0]], truths[:, counted[0]]))

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; NaN when no pixel counted."""
        totals = self._totals
        shares = {
            f"within_{limit:g}_deg_percent": 100 * totals.share(_within(limit), "pixels")
            for limit in self._thresholds_deg
        }
        return {
            "mean_angular_error_deg": totals.mean("angle_deg", "pixels"),
            "median_angular_error_deg": _median_deg(totals.counts_of("histogram", (_NUM_BINS,))),
            "rms_angular_error_deg": math.sqrt(totals.mean("squared_angle_deg2", "pixels")),
            **shares,
            **self._counts(),
        }

    def _add_angles(self, angles_deg: Tensor) -> None:
        self._totals.add("angle_deg", angles_deg.sum().item())
        self._totals.add("squared_angle_deg2", angles_deg.square().sum().item())
        bins = (angles_deg / BIN_DEG).round().long()
        self._totals.count("histogram", torch.bincount(bins, minlength=_NUM_BINS).cpu().numpy())
        for limit in self._thresholds_deg:
            self._totals.count(_within(limit), int((angles_deg < limit).sum()))


def _angles_deg(first: Tensor, second: Tensor) -> Tensor:
    """Angles between the columns of two ``(3, N)`` tensors, ``(N,)`` in degrees; 90 where a vector is zero."""
    # The arc cosine of a dot product loses half of the digits near 0 and 180 degrees; this does not.
    sine = torch.linalg.vector_norm(torch.linalg.cross(first, second, dim=0), dim=0)
    cosine = (first * second).sum(dim=0)
    angles = torch.rad2deg(torch.atan2(sine, cosine))
    return torch.where((sine == 0) & (cosine == 0), torch.full_like(angles, 90.0), angles)


def _median_deg(histogram: NDArray[np.int64]) -> float:
    count = int(histogram.sum())
    if not count:
        return math.nan
    cumulated = np.cumsum(histogram)
    low, high = np.searchsorted(cumulated, [(count - 1) // 2, count // 2], side="right")
    return float(low + high) / 2 * BIN_DEG


def _within(limit: float) -> str:
    return f"within_{limit:g}"
