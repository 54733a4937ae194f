"""Accuracy of class maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.assets import part_table
from sapiens2.errors import InputError
from sapiens2.metrics.dense_metric import DenseMetric
from sapiens2.metrics.inputs import paired_labels
from sapiens2.types import ArrayLike

__all__ = ["SegmentationMetric"]


class SegmentationMetric(DenseMetric):
    """Intersection over union and accuracy of classes, from one confusion matrix over the pixels of all images.

    Figures, fractions in [0, 1]:

    * ``mean_iou``, ``mean_accuracy``: means over classes. A class that neither truth nor prediction holds has no IoU
      and is left out; one that the truth does not hold has no accuracy. :meth:`notes` lists them. A class that is
      predicted but never true has IoU 0.
    * ``mean_iou_above_<p>_percent``: over the classes that hold more than p percent of the true pixels that count.
    * ``mean_iou_sides_merged``, ``mean_iou_sides_merged_above_<p>_percent``: the same after left and right are made
      one class; only with ``flip_pairs``.
    * ``pixel_accuracy``: pixels with the true class.
    * ``foreground_class_agreement``: the same, of pixels whose true class is not the background; and
      ``foreground_iou``: IoU of "not background", which also sees foreground that is invented.
    * ``iou/<name>``, ``accuracy/<name>``: each class; NaN when absent.
    * ``images``, ``pixels``.

    Args:
        num_classes: Number of classes; ids are 0 to ``num_classes - 1``.
        class_names: Unique names of the classes; the ids when left out.
        flip_pairs: Pairs of ids that a mirror exchanges.
        ignore_index: Label of pixels without truth. A *prediction* of it at a pixel with truth is wrong.
        background: Id of the background.
        min_pixel_percent: p, in [0, 100).
        mask_description: What the masks select, in words.

    Raises:
        InputError: Arguments that do not fit each other.

    Source: Everingham et al., The Pascal Visual Object Classes Challenge, IJCV 88, 2010, section 4.5 (IoU); Long et
        al., Fully Convolutional Networks, CVPR 2015, section 5 (mean IoU and accuracies).
    """

    def __init__(
        self,
        num_classes: int,
        *,
        class_names: Sequence[str] | None = None,
        flip_pairs: Sequence[Sequence[int]] = (),
        ignore_index: int = 255,
        background: int = 0,
        min_pixel_percent: float = 0.1,
        mask_description: str = "",
    ) -> None:
        super().__init__(mask_description=mask_description)
        self._num_classes = num_classes
        self._names = tuple(class_names) if class_names is not None else tuple(map(str, range(num_classes)))
        self._flip_pairs = tuple((int(first), int(second)) for first, second in flip_pairs)
        self._ignore_index = ignore_index
        self._background = background
        self._min_pixel_percent = float(min_pixel_percent)
        self._check_settings()

    @classmethod
    def for_body_parts(cls, *, min_pixel_percent: float = 0.1, mask_description: str = "") -> Self:
        """A metric of the 29 published classes (:func:`sapiens2.assets.part_table`)."""
        table = part_table()
        return cls(
            len(table),
            class_names=table.names,
            flip_pairs=table.flip_pairs,
            ignore_index=table.ignore_index,
            min_pixel_percent=min_pixel_percent,
            mask_description=mask_description,
        )

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {
            "num_classes": self._num_classes,
            "class_names": list(self._names),
            "flip_pairs": [list(pair) for pair in self._flip_pairs],
            "ignore_index": self._ignore_index,
            "background": self._background,
            "min_pixel_percent": self._min_pixel_percent,
            **super().settings(),
        }

    def update(self, prediction: ArrayLike, target: ArrayLike, mask: ArrayLike | None = None) -> None:
        """Add an image or a batch.

        Args:
            prediction: ``(H, W)`` or ``(B, H, W)`` class ids of any integer dtype.
            target: The same shape.
            mask: The same shape, bool, True where a pixel counts.

        Raises:
            InputError: Shapes that do not fit, ids that are no class, or a mask that is not bool.
        """
        predicted, true, masked = paired_labels(prediction, target, mask)
        valid = (true != self._ignore_index) & masked
        self._check_ids(true[valid], "target")
        self._check_ids(predicted[valid], "prediction")
        self._count_images(valid, masked=mask is not None)
        # A prediction of the ignored label goes to an extra column: it is no class, and it is wrong.
        columns = self._num_classes + 1
        columns_of = torch.where(predicted == self._ignore_index, self._num_classes, predicted)
        cells = (true * columns + columns_of)[valid]
        counts = torch.bincount(cells, minlength=self._num_classes * columns)
        self._totals.count("confusion", counts.reshape(self._num_classes, columns).cpu().numpy())

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; NaN where there is nothing to measure."""
        confusion = self.confusion
        ious, accuracies = _ious(confusion), _accuracies(confusion)
        threshold = f"above_{self._min_pixel_percent:g}_percent"
        figures = {
            "mean_iou": _mean(ious),
            f"mean_iou_{threshold}": _mean(ious[self._frequent(confusion)]),
            "mean_accuracy": _mean(accuracies),
            "pixel_accuracy": _ratio(np.trace(confusion), confusion.sum()),
            **self._foreground_figures(confusion),
        }
        if self._flip_pairs:
            merged = self._sides_merged(confusion)
            figures["mean_iou_sides_merged"] = _mean(_ious(merged))
            figures[f"mean_iou_sides_merged_{threshold}"] = _mean(_ious(merged)[self._frequent(merged)])
        figures |= {f"iou/{name}": float(iou) for name, iou in zip(self._names, ious, strict=True)}
        figures |= {f"accuracy/{name}": float(value) for name, value in zip(self._names, accuracies, strict=True)}
        return figures | self._counts()

    def notes(self) -> tuple[str, ...]:
        """Sentences about classes that are left out of means, and what all metrics of maps say."""
        found = list(super().notes())
        if self._totals.count_of("pixels"):
            absent, never_true = self.absent_classes(), self.never_true_classes()
            if absent:
                found.append(f"classes in neither truth nor prediction, left out of all means: {', '.join(absent)}")
            if never_true:
                found.append(f"classes that were predicted but are never true, with IoU 0: {', '.join(never_true)}")
        return tuple(found)

    @property
    def confusion(self) -> NDArray[np.int64]:
        """``(C, C + 1)`` pixels by true class (row) and predicted class; the last column is "no class"."""
        return self._totals.counts_of("confusion", (self._num_classes, self._num_classes + 1)).copy()

    def absent_classes(self) -> tuple[str, ...]:
        """Names of the classes that neither truth nor prediction holds."""
        return tuple(name for name, iou in zip(self._names, _ious(self.confusion), strict=True) if math.isnan(iou))

    def never_true_classes(self) -> tuple[str, ...]:
        """Names of the classes that were predicted but that the truth does not hold."""
        confusion = self.confusion
        never = (confusion.sum(axis=1) == 0) & (confusion[:, :-1].sum(axis=0) > 0)
        return tuple(name for name, is_it in zip(self._names, never, strict=True) if is_it)

    def _foreground_figures(self, confusion: NDArray[np.int64]) -> dict[str, float]:
        is_background = np.arange(self._num_classes) == self._background
        true_foreground = confusion[~is_background]
        right = np.trace(confusion) - confusion[self._background, self._background]
        both = true_foreground[:, :-1][:, ~is_background].sum()
        invented = confusion[self._background, :-1][~is_background].sum()
        return {
            "foreground_class_agreement": _ratio(right, true_foreground.sum()),
            "foreground_iou": _ratio(both, true_foreground.sum() + invented),
        }

    def _sides_merged(self, confusion: NDArray[np.int64]) -> NDArray[np.int64]:
        """The confusion matrix after the second class of each pair became the first."""
        merged = confusion.copy()
        for kept, gone in self._flip_pairs:
            merged[kept] += merged[gone]
            merged[:, kept] += merged[:, gone]
            merged[gone], merged[:, gone] = 0, 0
        return merged

    def _frequent(self, confusion: NDArray[np.int64]) -> NDArray[np.bool_]:
        # Integers on the left, so that a class of exactly p percent is not decided by rounding.
        pixels: NDArray[np.int64] = confusion.sum(axis=1)
        return 100 * pixels > self._min_pixel_percent * pixels.sum()

    def _check_ids(self, ids: Tensor, name: str) -> None:
        wrong = ids[((ids < 0) | (ids >= self._num_classes)) & (ids != self._ignore_index)]
        if len(wrong):
            raise InputError(
                f"{name} holds {wrong.unique().tolist()[:5]}, which are neither classes 0 to {self._num_classes - 1} "
                f"nor the ignored label {self._ignore_index}"
            )

    def _check_settings(self) -> None:
        if self._num_classes < 1:
            raise InputError(f"num_classes must be at least 1, got {self._num_classes}")
        if len(self._names) != self._num_classes or len(set(self._names)) != self._num_classes:
            raise InputError(f"class_names must be {self._num_classes} unique names, got {list(self._names)}")
        paired = [side for pair in self._flip_pairs for side in pair]
        if len(set(paired)) != len(paired) or not all(0 <= side < self._num_classes for side in paired):
            raise InputError(f"flip_pairs must name classes, each at most once, got {list(self._flip_pairs)}")
        if not 0 <= self._background < self._num_classes:
            raise InputError(f"background must be a class 0 to {self._num_classes - 1}, got {self._background}")
        if 0 <= self._ignore_index < self._num_classes:
            raise InputError(f"ignore_index {self._ignore_index} is the id of a class")
        if not 0 <= self._min_pixel_percent < 100:
            raise InputError(f"min_pixel_percent must lie in [0, 100), got {self._min_pixel_percent}")


def _ious(confusion: NDArray[np.int64]) -> NDArray[np.float64]:
    right = np.diagonal(confusion)
    unions = confusion.sum(axis=1) + confusion[:, :-1].sum(axis=0) - right
    return np.array([_ratio(one, union) for one, union in zip(right, unions, strict=True)])


def _accuracies(confusion: NDArray[np.int64]) -> NDArray[np.float64]:
    pixels = confusion.sum(axis=1)
    return np.array([_ratio(one, count) for one, count in zip(np.diagonal(confusion), pixels, strict=True)])


def _ratio(part: int | np.int64, whole: int | np.int64) -> float:
    return int(part) / int(whole) if whole else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
