"""Evaluation of body parts, or of any other classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from sapiens2.assets import part_table
from sapiens2.data import IGNORE_LABEL, Sample
from sapiens2.data.augment import flip_pairs_by_name
from sapiens2.errors import InputError
from sapiens2.metrics import Metric, SegmentationMetric
from sapiens2.services.evaluation.task_measure import TaskMeasure

__all__ = ["PartMeasure"]


class PartMeasure(TaskMeasure):
    """Classes of pixels.

    Args:
        class_names: Classes of the data in order; None takes those of the model for granted.
    """

    task = "seg"
    truth = ("parts",)
    ranked_by = "foreground_class_agreement"
    better = "higher"
    protocol = (
        "Class ids at the picture's own size, over all labelled pixels, pooled over pictures; classes in neither truth "
        "nor prediction are left out of means. Pictures without foreground have no figure to be ranked by."
    )
    baseline = "one class everywhere: for each figure the class that does best, chosen with the truth"

    def __init__(self, class_names: Sequence[str] | None = None) -> None:
        self._names = None if class_names is None else tuple(class_names)
        self._metric: SegmentationMetric | None = None

    def add(self, sample: Sample, result: Any) -> dict[str, float]:
        """Take in a sample, and give its own figures."""
        if self._metric is None:
            self._metric = _metric_of(_agreed(result.names, self._names))
        own = SegmentationMetric(**self._metric.settings())
        truth = self._checked_truth(sample, own.settings()["num_classes"])
        predicted = result.segmentation.astype(np.int64)
        own.update(np.where(predicted == result.ignore_index, IGNORE_LABEL, predicted), truth, sample.mask)
        self._metric.merge(own)
        return own.compute()

    def values(self) -> dict[str, float]:
        """The figures over all samples."""
        return {} if self._metric is None else self._metric.compute()

    def baseline_values(self) -> dict[str, float]:
        """The same figures of the baseline."""
        if self._metric is None:
            return {}
        rows = self._metric.confusion.sum(axis=1)
        best: dict[str, float] = {}
        for class_id in np.flatnonzero(rows).tolist():
            for name, value in _everywhere(self._metric, class_id).items():
                best[name] = max(best.get(name, value), value)
        # One class everywhere finds all pixels of that class: no baseline for the accuracies of single classes.
        return {name: value for name, value in best.items() if not name.startswith("accuracy/")}

    def metrics(self) -> Sequence[Metric]:
        """The metrics behind the figures."""
        return [] if self._metric is None else [self._metric]

    def _checked_truth(self, sample: Sample, num_classes: int) -> Any:
        parts: Any = sample.parts
        stray = parts[(parts >= num_classes) & (parts != IGNORE_LABEL)]
        if stray.size:
            raise InputError(
                f"the truth has class {int(stray.max())}, and the model has {num_classes} classes, 0 to "
                f"{num_classes - 1}: they are of different lists"
            )
        return parts


def _agreed(model: Sequence[str], data: Sequence[str] | None) -> tuple[str, ...]:
    """The class names, after a look whether model and data mean the same list."""
    if data is None:
        return tuple(model)
    if len(model) != len(data):
        raise InputError(
            f"the model has {len(model)} classes ({_shown(model)}), and the data have {len(data)} ({_shown(data)}); "
            "fine-tune the model to these classes, or give data with the classes of the model"
        )
    numbered = all(re.fullmatch(r"class_\d+", name) for name in model)
    differing = [(i, a, b) for i, (a, b) in enumerate(zip(model, data, strict=True)) if _plain(a) != _plain(b)]
    if differing and not numbered:
        index, own, other = differing[0]
        raise InputError(
            f"class {index} is {own!r} to the model and {other!r} in the data, one of {len(differing)} that differ: "
            "give the data's list of classes in the model's order"
        )
    return tuple(data)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def _metric_of(names: tuple[str, ...]) -> SegmentationMetric:
    if names == part_table().names:
        return SegmentationMetric.for_body_parts(mask_description="labelled pixels")
    pairs = flip_pairs_by_name(names)
    return SegmentationMetric(
        len(names), class_names=names, flip_pairs=pairs, ignore_index=IGNORE_LABEL, mask_description="labelled pixels"
    )


def _everywhere(metric: SegmentationMetric, class_id: int) -> dict[str, float]:
    """Figures of predicting one class everywhere."""
    state = metric.state()
    confusion = np.zeros_like(metric.confusion)
    confusion[:, class_id] = metric.confusion.sum(axis=1)
    state["totals"]["counts"]["confusion"] = confusion.tolist()
    return SegmentationMetric.from_state(state).compute()
