"""The samples on which a model does worst, kept while samples go by."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.data import Sample
from sapiens2.services.evaluation.evaluation_report import WorstCase
from sapiens2.services.evaluation.task_measure import TaskMeasure
from sapiens2.visualization import draw_contact_sheet

__all__ = ["WorstCases"]

LEGIBLE_SIDE = 512
"""Longest side that smaller pictures are enlarged towards, in pixels."""


class WorstCases:
    """Keeps the worst samples of a task; only what may be among them is drawn.

    Args:
        measure: Says how samples are ranked, and draws them.
        count: How many to keep.
    """

    def __init__(self, measure: TaskMeasure, count: int) -> None:
        self._measure, self._count = measure, count
        self._kept: list[tuple[float, int, WorstCase]] = []  # a heap, the best of them on top

    def consider(self, index: int, sample: Sample, result: Any, figures: dict[str, float]) -> None:
        """Keep a sample if it is among the worst; of equals the first."""
        value = figures[self._measure.ranked_by]
        badness = value if self._measure.better == "lower" else -value
        if math.isnan(value) or not self._count:
            return
        if len(self._kept) == self._count and (badness, -index) <= self._kept[0][:2]:
            return
        case = WorstCase(sample.name, value, self._drawn(sample, result, value))
        entry = (badness, -index, case)
        if len(self._kept) < self._count:
            heapq.heappush(self._kept, entry)
        else:
            heapq.heapreplace(self._kept, entry)

    def cases(self) -> tuple[WorstCase, ...]:
        """The worst first."""
        return tuple(case for _, _, case in sorted(self._kept, key=lambda entry: entry[:2], reverse=True))

    def _drawn(self, sample: Sample, result: Any, value: float) -> NDArray[np.uint8]:
        truth, prediction = self._measure.pictures(sample, result)
        figure = f"{self._measure.ranked_by.replace('_', ' ')} {value:.3g}"
        panels = [("input", sample.image), ("truth", truth), (f"prediction: {figure}", prediction)]
        return draw_contact_sheet([(name, _enlarged(picture)) for name, picture in panels], columns=len(panels))


def _enlarged(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A small picture at a whole multiple of its size, pixel by pixel, so that there is something to see."""
    factor = max(1, LEGIBLE_SIDE // max(picture.shape[:2]))
    return picture.repeat(factor, axis=0).repeat(factor, axis=1)
