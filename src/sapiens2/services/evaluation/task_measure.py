"""What the evaluations of all tasks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.data import Sample
from sapiens2.inference.truth_pictures import truth_and_prediction
from sapiens2.metrics import Metric
from sapiens2.services.evaluation.figures import Better
from sapiens2.types import Task

__all__ = ["TaskMeasure"]


class TaskMeasure(ABC):
    """Takes in samples with what was predicted for them, and gives figures with their baselines.

    Attributes:
        task: The task.
        truth: Fields of a sample that are compared with; all have to be known.
        ranked_by: Figure of single samples by which the worst are found.
        better: Which values of it are better.
        protocol: How it is measured, in words.
        baseline: What the baselines are, in words.
    """

    task: ClassVar[Task]
    truth: ClassVar[tuple[str, ...]]
    ranked_by: ClassVar[str]
    better: ClassVar[Better] = "lower"
    protocol: ClassVar[str]
    baseline: ClassVar[str]

    @abstractmethod
    def add(self, sample: Sample, result: Any) -> dict[str, float]:
        """Take in a sample.

        Args:
            sample: A sample with the truth of the task.
            result: The task's result for its picture.

        Returns:
            Figures of this sample alone; NaN where it has none.

        Raises:
            InputError: Prediction and truth do not fit each other.
        """

    @abstractmethod
    def values(self) -> dict[str, float]:
        """The figures over all samples."""

    @abstractmethod
    def baseline_values(self) -> dict[str, float]:
        """The same figures for predictions that know nothing, as far as there are any."""

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """The metrics behind the figures."""

    def pictures(self, sample: Sample, result: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Truth and prediction as pictures ``(H, W, 3)``."""
        return truth_and_prediction(sample, result)

    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""
        return tuple(dict.fromkeys(note for metric in self.metrics() for note in metric.notes()))

    def settings(self) -> list[dict[str, Any]]:
        """The metrics' names and arguments, the masks and alignments among them."""
        return [{"metric": type(metric).__name__, **metric.settings()} for metric in self.metrics()]
