"""Looking at a model while it is trained: figures and pictures of the evaluation data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from accelerate.utils import gather_object
from numpy.typing import NDArray
from transformers import TrainingArguments

from sapiens2.metrics import Metric
from sapiens2.training.averaging import WeightAverage
from sapiens2.training.measure import collect, figures_of, report_of
from sapiens2.training.monitoring import RunLog
from sapiens2.training.parts import TrainingParts
from sapiens2.training.pictures import comparison_sheet
from sapiens2.training.recipe import Recipe

__all__ = ["Observer"]

T = TypeVar("T")


class Observer:
    """Measures and draws the model of a training.

    Args:
        recipe: The recipe.
        parts: What it names.
        arguments: Of the processes.
        average: The weights to look at, where an average is kept.
        log: For what is found; only the first process has one.
    """

    def __init__(
        self,
        recipe: Recipe,
        parts: TrainingParts,
        arguments: TrainingArguments,
        *,
        average: WeightAverage | None = None,
        log: RunLog | None = None,
    ) -> None:
        self.recipe, self.parts, self.arguments = recipe, parts, arguments
        self.average, self.log = average, log

    def measure(self, step: int) -> dict[str, Any] | None:
        """Figures as of a step, which are logged; None without evaluation data. All processes share the work."""
        samples = self.parts.evaluation
        if samples is None:
            return None
        rank, world = self.arguments.process_index, self.arguments.world_size

        def share() -> list[Metric]:
            return collect(
                self.parts.start.model,
                self.parts.start.processor,
                samples,
                self.recipe.task,
                indices=range(rank, len(samples), world),
                batch_size=self.recipe.training.batch_size,
            )

        metrics = self._with_average(share)
        report = report_of(_merged(metrics) if world > 1 else metrics, self.recipe.task, len(samples))
        if self.log is not None:
            self.log.add(step, {f"eval_{name}": value for name, value in figures_of(report).items()})
        return report

    def draw(self, step: int, name: str = "") -> None:
        """Keep a sheet of input, truth and prediction; of the training data where there is no other."""
        if self.log is not None and self.recipe.log.pictures:
            self.log.add_picture(step, self._with_average(self._sheet), name)

    def _sheet(self) -> NDArray[np.uint8]:
        samples = self.parts.evaluation if self.parts.evaluation is not None else self.parts.samples.augmented.samples
        start = self.parts.start
        return comparison_sheet(start.model, start.processor, samples, self.recipe.task, rows=self.recipe.log.pictures)

    def _with_average(self, action: Callable[[], T]) -> T:
        if self.average is None:
            return action()
        with self.average.applied(self.parts.trained):
            return action()


def _merged(own: Sequence[Metric]) -> list[Metric]:
    """The metrics of all processes in one."""
    first, *others = gather_object([[metric.state() for metric in own]])
    merged = [type(metric).from_state(state) for metric, state in zip(own, first, strict=True)]
    for states in others:
        for metric, state in zip(merged, states, strict=True):
            metric.merge(type(metric).from_state(state))
    return merged
