"""Figures with the baseline that they have to beat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sapiens2.types import Task

__all__ = ["HEADLINES", "Better", "Figure", "figures_beside", "finite"]

Better: TypeAlias = Literal["higher", "lower"]

_COUNTS = frozenset({"images", "pixels", "people", "detections", "keypoints", "empty_images"})
"""Last parts of the names of figures that say how much was seen: neither good nor bad."""

_LOWER = frozenset({"error", "mad", "mse", "mae", "rmse", "rel", "l2", "sad", "grad", "conn"})
"""Words in the names of figures that are better when they are lower."""

HEADLINES: dict[Task, tuple[tuple[str, str], ...]] = {
    "pose": (
        ("body/pck_0.05_percent", "PCK@.05 of the box, COCO's 17 points, %"),
        ("body/pck_0.1_percent", "PCK@.1 of the box, COCO's 17 points, %"),
        ("full_figures/body/pck_0.1_percent", "PCK@.1, COCO's 17 points, full figures, %"),
        ("whole/pck_0.05_percent", "PCK@.05 of the box, all points, %"),
        ("whole/pck_0.1_percent", "PCK@.1 of the box, all points, %"),
        ("body/oks_ap", "OKS-AP, COCO's 17 points"),
        ("whole/oks_ap", "OKS-AP, all points"),
        ("whole/oks_ar", "OKS-AR, all points"),
    ),
    "seg": (
        ("foreground_class_agreement", "exact class on foreground"),
        ("mean_iou_sides_merged_above_0.1_percent", "mIoU, left and right merged, classes above 0.1 % of pixels"),
        ("mean_iou", "mIoU"),
        ("foreground_iou", "IoU of foreground"),
        ("pixel_accuracy", "pixel accuracy"),
    ),
    "normal": (
        ("mean_angular_error_deg", "mean angle, degrees"),
        ("median_angular_error_deg", "median angle, degrees"),
        ("within_11.25_deg_percent", "within 11.25 degrees, %"),
        ("within_22.5_deg_percent", "within 22.5 degrees, %"),
        ("within_30_deg_percent", "within 30 degrees, %"),
    ),
    "pointmap": (
        ("l2_mean_m", "distance of points, m"),
        ("abs_rel_depth", "relative error of depth"),
        ("delta_1_percent", "depth within a factor of 1.25, %"),
        ("scale_error", "scale error"),
        ("relief_abs_rel", "relief, relative error after scale and shift"),
        ("relief_gain_percent", "relief error below that of a plane, %"),
    ),
    "matting": (
        ("mad", "MAD"),
        ("mse", "MSE"),
        ("sad_per_1000", "SAD / 1000"),
        ("grad_per_1000", "Grad / 1000"),
        ("conn_per_1000", "Conn / 1000"),
        ("mask_iou", "IoU of alpha >= 0.5"),
        ("empty_images_below_0.02_percent", "pictures with nobody whose mean alpha is below 0.02, %"),
    ),
    "albedo": (
        ("mae", "MAE"),
        ("psnr_db", "PSNR, dB"),
        ("ssim", "SSIM"),
    ),
}
"""Figures that the readable report shows first, where they were measured, and what it calls them."""


@dataclass(frozen=True)
class Figure:
    """A measured value.

    Attributes:
        name: As the metric calls it.
        value: The value; NaN when nothing was measured, infinite where the metric says so.
        baseline: What knowing nothing achieves; None where there is no such thing.
        better: Which values are better; None for counts.
    """

    name: str
    value: float
    baseline: float | None = None
    better: Better | None = None

    @property
    def beats_baseline(self) -> bool | None:
        """Whether the value is better than the baseline; None when one of them is not known."""
        if self.better is None or self.baseline is None or math.isnan(self.value) or math.isnan(self.baseline):
            return None
        return self.value > self.baseline if self.better == "higher" else self.value < self.baseline


def figures_beside(values: Mapping[str, float], baselines: Mapping[str, float]) -> tuple[Figure, ...]:
    """Put each figure beside its baseline."""
    return tuple(
        Figure(name, value, baselines.get(name) if _better(name) else None, _better(name))
        for name, value in values.items()
    )


def finite(value: float | None) -> float | None:
    """The number as strict JSON can hold it: NaN and infinity become None."""
    return value if value is not None and math.isfinite(value) else None


def _better(name: str) -> Better | None:
    if name.startswith(("iou/", "accuracy/")):  # what follows is the name of a class
        return "higher"
    last = name.rpartition("/")[2]
    if last in _COUNTS:
        return None
    return "lower" if _LOWER & set(last.split("_")) else "higher"
