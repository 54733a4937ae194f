"""Accuracy of pointmaps in metres: where the points are, and the relief that they form."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.pointmap import valid_points
from sapiens2.metrics.dense_metric import DenseMetric
from sapiens2.metrics.inputs import check_finite, paired_maps
from sapiens2.types import ArrayLike

__all__ = ["Alignment", "PointmapMetric"]

Alignment: TypeAlias = Literal["none", "scale", "scale_shift"]
"""How predicted depth is fitted to true depth, per image by least squares, before the relief is measured."""

WITHIN_CM = (5, 10, 20)
DELTA_POWERS = (1, 2, 3)


class PointmapMetric(DenseMetric):
    """Distances between predicted and true points, pooled over the pixels of all images.

    Figures as predicted, without any alignment:

    * ``l2_mean_m``, ``l2_rms_m``: distance of points; ``within_<5|10|20>_cm_percent``: distances below it.
    * ``abs_rel_depth``: mean of |Z − Z*| / Z*; ``delta_<1|2|3>_percent``: pixels where the larger of Z / Z* and
      Z* / Z is below 1.25, 1.25², 1.25³ (a depth at or below 0 never is).
    * ``scale_error``: mean over images of |1 / s − 1|, where s is the factor that fits predicted to true depth best:
      0.1 says that people come out a tenth too near or too far. Infinite when a prediction has no positive depth.

    Figures of the relief, after ``alignment``:

    * ``relief_abs_rel``, ``relief_error_m``: mean of |Z − Z*| / Z* and of |Z − Z*|.
    * ``plane_relief_abs_rel``, ``plane_relief_error_m``: the same for a plane at the mean true depth of each image,
      which is where any alignment puts a constant depth: what knowing nothing about the shape achieves.
    * ``relief_gain_percent``: by how much ``relief_abs_rel`` is lower than that of the plane.

    A pixel counts when its target is a point in front of the camera (:func:`sapiens2.losses.valid_points`) and its
    mask is True.

    Args:
        alignment: ``"none"``; ``"scale"``: Z becomes s·Z; ``"scale_shift"``: s·Z + t with s >= 0, so that a relief
            turned inside out gains nothing.
        mask_description: What the masks select, in words.

    Raises:
        InputError: Another alignment.

    Convention: OpenCV camera, x right, y down, z forward, metres. The head's canonical points have to be divided by
        their scale first; thresholds in canonical units would not be centimetres.

    Source: Eigen et al., Depth Map Prediction from a Single Image, NIPS 2014, section 4.2 (abs-rel, delta).
    """

    def __init__(self, *, alignment: Alignment = "scale_shift", mask_description: str = "") -> None:
        super().__init__(mask_description=mask_description)
        if alignment not in get_args(Alignment):
            raise InputError(f"alignment must be one of {', '.join(get_args(Alignment))}; got {alignment!r}")
        self._alignment: Alignment = alignment

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {"alignment": self._alignment, **super().settings()}

    def update(self, prediction: ArrayLike, target: ArrayLike, mask: ArrayLike | None = None) -> None:
        """Add an image or a batch.

        Args:
            prediction: ``(3, H, W)`` or ``(B, 3, H, W)`` X, Y, Z in metres.
            target: The same shape.
            mask: ``(H, W)`` or ``(B, H, W)`` bool, True where a pixel counts.

        Raises:
            InputError: Shapes that do not fit, a mask that is not bool, or a prediction that is NaN where it counts.
        """
        predicted, true, masked = paired_maps(prediction, target, mask, channels=3)
        valid = valid_points(true, masked)
        check_finite(predicted, valid, "prediction")
        self._count_images(valid, masked=mask is not None)
        for points, truths, counted in zip(predicted, true, valid[:, 0], strict=True):
            if counted.any():
                self._add_points(points[:, counted], truths[:, counted])

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; NaN when no pixel counted."""
        totals = self._totals
        relief, plane = totals.mean("relief_abs_rel", "pixels"), totals.mean("plane_abs_rel", "pixels")
        return {
            "l2_mean_m": totals.mean("l2_m", "pixels"),
            "l2_rms_m": math.sqrt(totals.mean("squared_l2_m2", "pixels")),
            **{f"within_{limit}_cm_percent": 100 * totals.share(f"within_{limit}", "pixels") for limit in WITHIN_CM},
            "abs_rel_depth": totals.mean("abs_rel", "pixels"),
            **{f"delta_{power}_percent": 100 * totals.share(f"delta_{power}", "pixels") for power in DELTA_POWERS},
            "scale_error": math.inf if totals.count_of("unscalable") else totals.mean("scale_error", "scalable"),
            "relief_abs_rel": relief,
            "relief_error_m": totals.mean("relief_m", "pixels"),
            "plane_relief_abs_rel": plane,
            "plane_relief_error_m": totals.mean("plane_m", "pixels"),
            "relief_gain_percent": 100 * (1 - relief / plane) if plane else math.nan,
            **self._counts(),
        }

    def notes(self) -> tuple[str, ...]:
        """Sentences about images without a scale, and what all metrics of maps say."""
        found = super().notes()
        if unscalable := self._totals.count_of("unscalable"):
            found += (
                f"in {unscalable} images no positive factor fits predicted to true depth; scale_error is infinite",
            )
        return found

    def _add_points(self, points: Tensor, truths: Tensor) -> None:
        """Add one image from two ``(3, N)`` tensors, N >= 1."""
        totals = self._totals
        distances = torch.linalg.vector_norm(points - truths, dim=0)
        totals.add("l2_m", distances.sum().item())
        totals.add("squared_l2_m2", distances.square().sum().item())
        for limit in WITHIN_CM:
            totals.count(f"within_{limit}", int((distances < limit / 100).sum()))
        self._add_depths(points[2], truths[2])
        self._add_relief(points[2], truths[2])

    def _add_depths(self, depths: Tensor, truths: Tensor) -> None:
        totals = self._totals
        totals.add("abs_rel", ((depths - truths).abs() / truths).sum().item())
        ratios = torch.maximum(depths / truths, truths / depths)
        for power in DELTA_POWERS:
            totals.count(f"delta_{power}", int(((ratios < 1.25**power) & (depths > 0)).sum()))
        factor = _scale(depths, truths)
        if factor > 0:
            totals.add("scale_error", abs(1 / factor - 1))
            totals.count("scalable", 1)
        else:
            totals.count("unscalable", 1)

    def _add_relief(self, depths: Tensor, truths: Tensor) -> None:
        aligned = _aligned(depths, truths, self._alignment)
        for name, surface in (("relief", aligned), ("plane", truths.mean())):
            errors = (surface - truths).abs()
            self._totals.add(f"{name}_m", errors.sum().item())
            self._totals.add(f"{name}_abs_rel", (errors / truths).sum().item())


def _scale(depths: Tensor, truths: Tensor) -> float:
    """The s that minimises the sum of (s·Z − Z*)² over ``(N,)`` depths; 0 when all are 0."""
    energy = depths.square().sum().item()
    return (depths * truths).sum().item() / energy if energy else 0.0


def _aligned(depths: Tensor, truths: Tensor, alignment: Alignment) -> Tensor:
    if alignment == "none":
        return depths
    if alignment == "scale":
        return _scale(depths, truths) * depths
    centred = depths - depths.mean()
    return truths.mean() + max(_scale(centred, truths - truths.mean()), 0.0) * centred
