"""Evaluation of normals, pointmaps, mattes and albedo."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from sapiens2.data import Sample
from sapiens2.metrics import DenseMetric, ImageMetric, MattingMetric, Metric, NormalMetric, PointmapMetric
from sapiens2.metrics.baselines import camera_facing_normals, constant_plane, empty_matte, shaded_picture
from sapiens2.metrics.pointmap import Alignment
from sapiens2.services.evaluation.task_measure import TaskMeasure

__all__ = ["AlbedoMeasure", "MattingMeasure", "NormalMeasure", "PointmapMeasure"]

_COUNTED = "pixels that have a truth"


class _OneMetric(TaskMeasure):
    """Evaluation by one metric of maps, with a baseline that the same metric measures."""

    def __init__(self) -> None:
        self._metric, self._baseline = self._empty(), self._empty()

    @abstractmethod
    def _empty(self) -> Any:
        """A metric that has seen nothing."""

    @abstractmethod
    def _compared(self, sample: Sample, result: Any) -> tuple[Any, Any, Any]:
        """Prediction, truth, and what the baseline predicts."""

    def add(self, sample: Sample, result: Any) -> dict[str, float]:
        """Take in a sample, and give its own figures."""
        prediction, truth, trivial = self._compared(sample, result)
        self._baseline.update(trivial, truth, sample.mask)
        return _added(self._metric, self._empty(), prediction, truth, sample)

    def values(self) -> dict[str, float]:
        """The figures over all samples."""
        values: dict[str, float] = self._metric.compute()
        return values

    def baseline_values(self) -> dict[str, float]:
        """The same figures of the baseline."""
        values: dict[str, float] = self._baseline.compute()
        return values

    def metrics(self) -> Sequence[Metric]:
        """The metric."""
        return [self._metric]


class NormalMeasure(_OneMetric):
    """Angles between normals."""

    task = "normal"
    truth = ("normals",)
    ranked_by = "mean_angular_error_deg"
    protocol = (
        "Normals at the picture's own size, in the camera's frame, over all pixels that have a true normal (generated "
        "data: people)."
    )
    baseline = "normals that all face the camera"

    def _empty(self) -> Any:
        return NormalMetric(mask_description=_COUNTED)

    def _compared(self, sample: Sample, result: Any) -> tuple[Any, Any, Any]:
        return result.normals, sample.normals, camera_facing_normals(sample.size_hw)


class PointmapMeasure(TaskMeasure):
    """Points in metres, and their relief after alignment."""

    task = "pointmap"
    truth = ("pointmap",)
    ranked_by = "relief_abs_rel"
    protocol = (
        "Points in metres at the picture's own size, over all pixels that have a true point (generated data: people). "
        "Distances, relative depth, delta and the scale error are measured as predicted, without alignment; the relief "
        "after fitting scale and shift of depth to the truth of each picture, and scale_only/ after scale alone."
    )
    baseline = (
        "a plane facing the camera at the mean true depth of each picture; for the scale error, one depth for all "
        "pictures, the mean of their mean depths"
    )
    _ALIGNMENTS: ClassVar[dict[str, Alignment]] = {"": "scale_shift", "scale_only/": "scale"}
    _RELIEF = ("relief_abs_rel", "relief_error_m", "relief_gain_percent")

    def __init__(self) -> None:
        self._metrics = {prefix: self._empty(prefix) for prefix in self._ALIGNMENTS}
        self._plane = self._empty("")
        self._mean_depths: list[float] = []
        self._without_scale = 0

    def _empty(self, prefix: str) -> PointmapMetric:
        return PointmapMetric(alignment=self._ALIGNMENTS[prefix], mask_description=_COUNTED)

    def add(self, sample: Sample, result: Any) -> dict[str, float]:
        """Take in a sample, and give its own figures."""
        truth: Any = sample.pointmap
        known = _known(truth, sample)
        if known.any():
            self._mean_depths.append(float(truth[2][known].mean(dtype=np.float64)))
            self._plane.update(constant_plane(truth, known), truth, known)
        self._without_scale += not result.is_metric
        own = {
            prefix: _added(metric, self._empty(prefix), result.pointmap, truth, sample)
            for prefix, metric in self._metrics.items()
        }
        return own[""]

    def values(self) -> dict[str, float]:
        """The figures over all samples."""
        values = self._metrics[""].compute()
        scaled = self._metrics["scale_only/"].compute()
        shown = {name: value for name, value in values.items() if not name.startswith("plane_")}
        return {**shown, **{f"scale_only/{name}": scaled[name] for name in self._RELIEF}}

    def baseline_values(self) -> dict[str, float]:
        """The same figures of the baseline."""
        flat = self._metrics[""].compute()
        depths = np.array(self._mean_depths)
        relief = {
            f"{prefix}{name}": flat.get(f"plane_{name}", 0.0) for prefix in self._ALIGNMENTS for name in self._RELIEF
        }
        scale = float(np.abs(depths.mean() / depths - 1).mean()) if len(depths) else math.nan
        return {**self._plane.compute(), **relief, "scale_error": scale}

    def metrics(self) -> Sequence[Metric]:
        """The metrics behind the figures."""
        return list(self._metrics.values())

    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""
        found = super().notes()
        if not self._without_scale:
            return found
        note = (
            f"in {self._without_scale} pictures the model gave no usable scale: their points are canonical, not in "
            "metres, and only the relief after alignment means something"
        )
        return (*found, note)


class MattingMeasure(_OneMetric):
    """Opacity."""

    task = "matting"
    truth = ("alpha",)
    ranked_by = "mad"
    protocol = (
        "Alpha at the picture's own size, over the whole picture (of a trimap: where it is certain), measured for each "
        "picture and averaged over pictures."
    )
    baseline = "an empty matte"

    def _empty(self) -> Any:
        return MattingMetric(mask_description="all pixels, or those where a trimap is certain")

    def _compared(self, sample: Sample, result: Any) -> tuple[Any, Any, Any]:
        return result.alpha, sample.alpha, empty_matte(sample.size_hw)


class AlbedoMeasure(_OneMetric):
    """Colours without light."""

    task = "albedo"
    truth = ("albedo",)
    ranked_by = "mae"
    protocol = (
        "sRGB in [0, 1] at the picture's own size, over all pixels that have a true albedo (generated data: people)."
    )
    baseline = "the shaded picture itself"

    def _empty(self) -> Any:
        return ImageMetric(mask_description=_COUNTED)

    def _compared(self, sample: Sample, result: Any) -> tuple[Any, Any, Any]:
        return result.albedo, sample.albedo, shaded_picture(sample.image)


def _added(total: DenseMetric, own: Any, prediction: Any, truth: Any, sample: Sample) -> dict[str, float]:
    """Measure a sample alone, add it to the total, and give its figures."""
    own.update(prediction, truth, sample.mask)
    total.merge(own)
    figures: dict[str, float] = own.compute()
    return figures


def _known(values: Any, sample: Sample) -> Any:
    """``(H, W)`` bool, where a map has a truth that counts."""
    known = np.isfinite(values).all(axis=0)
    return known if sample.mask is None else known & sample.mask
