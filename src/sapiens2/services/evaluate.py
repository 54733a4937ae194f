"""Evaluation of a model on samples with truth: ``sapiens2 eval``."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sapiens2._numbers import whole_number
from sapiens2._versions import package_versions
from sapiens2.data import Sample, SampleRange, SampleSource, SampleSpec, open_samples, read_sample_spec
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.inference import Predictor, load
from sapiens2.inference.sources import checkpoint_sources
from sapiens2.results import Prediction
from sapiens2.services.evaluation.evaluation_report import EvaluationReport, TaskReport
from sapiens2.services.evaluation.figures import figures_beside, finite
from sapiens2.services.evaluation.map_measures import AlbedoMeasure, MattingMeasure, NormalMeasure, PointmapMeasure
from sapiens2.services.evaluation.part_measure import PartMeasure
from sapiens2.services.evaluation.pose_measure import PoseMeasure
from sapiens2.services.evaluation.task_measure import TaskMeasure
from sapiens2.services.evaluation.worst_cases import WorstCases
from sapiens2.types import TASKS, PathLike, Task

if TYPE_CHECKING:
    import torch

__all__ = ["EvaluationReport", "ModelLike", "TaskReport", "evaluate"]

ModelLike: TypeAlias = Predictor | PathLike | Mapping[Task, PathLike]
"""A predictor; or a size such as ``nano``, a checkpoint, a folder of checkpoints, a hub id, a mapping from task."""

MEASURES: dict[Task, type[TaskMeasure]] = {
    measure.task: measure
    for measure in (PoseMeasure, PartMeasure, NormalMeasure, PointmapMeasure, MattingMeasure, AlbedoMeasure)
}


def evaluate(
    model: ModelLike,
    data: SampleSpec | SampleSource,
    task: Task | Sequence[Task] | Literal["all"] = "all",
    *,
    limit: int | None = None,
    batch_size: int = 1,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
    flip_test: bool = False,
    worst: int = 8,
    on_sample: Callable[[int, int], None] | None = None,
) -> EvaluationReport:
    """Predict samples as :class:`~sapiens2.inference.Predictor` does, and compare with their truth at their own size.

    Args:
        model: What to evaluate.
        data: A path or description for :func:`sapiens2.data.open_samples`, or samples.
        task: One task, several, or all that model and data both have.
        limit: Only the first samples.
        batch_size: Pictures, or people, in one pass through the model.
        device: As for :func:`sapiens2.load`; a predictor stays where it is.
        dtype: As for :func:`sapiens2.load`.
        flip_test: Whether poses are averaged with those of the mirrored crops.
        worst: How many of the worst samples to draw for each task.
        on_sample: Called with the samples done and all samples.

    Returns:
        The report; nothing is written before ``report.save(folder)``.

    Raises:
        InputError: There are no samples, a sample lacks the truth of a task or cannot be read, or its truth does not
            fit the model: other classes or keypoints.
        ConfigurationError: Arguments out of range, tasks that are not there.
        CheckpointError: The model cannot be loaded.
    """
    limit = None if limit is None else whole_number("limit", limit, 1, error=ConfigurationError)
    batch_size = whole_number("batch_size", batch_size, 1, error=ConfigurationError)
    worst = whole_number("worst", worst, 0, error=ConfigurationError)
    start = time.perf_counter()
    tasks, samples, left_out = _agree(model, data, task, limit)
    predictor = model if isinstance(model, Predictor) else load(list(tasks), model=model, device=device, dtype=dtype)
    run = _Run(predictor, samples, _boards(tasks, samples, worst))
    for first in range(0, len(samples), batch_size):
        indices = range(first, min(first + batch_size, len(samples)))
        run.take(indices, batch_size, flip_test)
        if on_sample is not None:
            on_sample(indices[-1] + 1, len(samples))
    about = {
        **_about(model, data, predictor, batch_size, flip_test),
        "samples": len(samples),
        "seconds": round(time.perf_counter() - start, 3),
        "seconds_predicting": round(run.seconds_predicting, 3),
    }
    reports = {board.measure.task: board.report() for board in run.boards}
    return EvaluationReport(reports, tuple(run.rows), about, left_out)


@dataclass(eq=False)
class _Board:
    """One task: what measures it, its worst cases, and the name of its model."""

    measure: TaskMeasure
    worst: WorstCases
    model: str = ""

    def take(self, index: int, sample: Sample, result: Any) -> dict[str, float]:
        """Measure a sample, and give its own figures."""
        self.model = result.model or ""
        try:
            figures = self.measure.add(sample, result)
        except InputError as error:
            place = sample.name or f"sample {index}"
            raise error if place in str(error) else InputError(f"{place}, {self.measure.task}: {error}") from error
        self.worst.consider(index, sample, result, figures)
        return figures

    def report(self) -> TaskReport:
        """What was found."""
        values = self.measure.values()
        return TaskReport(
            task=self.measure.task,
            model=self.model,
            protocol=self.measure.protocol,
            baseline=self.measure.baseline,
            figures=figures_beside(values, self.measure.baseline_values()),
            notes=self.measure.notes(),
            settings=tuple(self.measure.settings()),
            ranked_by=self.measure.ranked_by,
            worst=self.worst.cases(),
        )


@dataclass(eq=False)
class _Run:
    """Samples on their way through the model."""

    predictor: Predictor
    samples: SampleSource
    boards: Sequence[_Board]
    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds_predicting: float = 0.0

    def take(self, indices: Sequence[int], batch_size: int, flip_test: bool) -> None:
        """Read, predict and measure some samples."""
        read = [_sample(self.samples, index) for index in indices]
        for sample in read:
            for board in self.boards:
                _require_truth(sample, board.measure)
        poses = any(board.measure.task == "pose" for board in self.boards)
        boxes = [sample.boxes_xywh for sample in read] if poses else None
        start = time.perf_counter()
        with warnings.catch_warnings():
            # One for each picture, where the report has a note that counts them.
            warnings.filterwarnings("ignore", "Predicted scales that are not positive", UserWarning)
            answers = self.predictor(
                [sample.image for sample in read], boxes, batch_size=batch_size, flip_test=flip_test and poses
            )
        self.seconds_predicting += time.perf_counter() - start
        for index, sample, answer in zip(indices, read, answers, strict=True):
            figures = {}
            for board in self.boards:
                task = board.measure.task
                result = answer[task] if isinstance(answer, Prediction) else answer
                own = board.take(index, sample, result)
                figures[task] = {name: finite(value) for name, value in own.items()}
            self.rows.append({"index": index, "name": sample.name, "figures": figures})


def _boards(tasks: Sequence[Task], samples: SampleSource, worst: int) -> list[_Board]:
    names: dict[Task, Any] = {
        "pose": getattr(samples, "keypoint_names", None),
        "seg": getattr(samples, "class_names", None),
    }
    boards = []
    for task in tasks:
        measure = MEASURES[task](*([names[task]] if task in names else []))
        boards.append(_Board(measure, WorstCases(measure, worst)))
    return boards


def _agree(
    model: ModelLike, data: SampleSpec | SampleSource, task: Any, limit: int | None
) -> tuple[tuple[Task, ...], SampleSource, tuple[str, ...]]:
    """The tasks to evaluate, the samples, and a note on tasks that only one side has."""
    wanted = None if task == "all" else _wanted(task)
    offered = _tasks_of(model, wanted)
    if wanted is not None and (missing := [name for name in wanted if name not in offered]):
        raise ConfigurationError(f"the model has no {', '.join(missing)}; it has {', '.join(offered)}")
    if isinstance(data, str | os.PathLike | Mapping):
        samples = open_samples(data, task=wanted, per_person=False)
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        samples = data
    else:
        raise ConfigurationError(
            f"data is {data!r}; expected a path or description as open_samples takes it, or samples: an object with a "
            "length and a sapiens2.data.Sample at each index"
        )
    if len(samples) == 0:
        raise InputError(f"there are no samples in {data if isinstance(data, str | os.PathLike) else 'these data'}")
    samples = samples if limit is None else SampleRange(samples, 0, min(limit, len(samples)))
    if wanted is not None:
        return wanted, samples, ()
    first = _sample(samples, 0)
    there = [name for name in TASKS if all(getattr(first, own) is not None for own in MEASURES[name].truth)]
    tasks = tuple(name for name in there if name in offered)
    if not tasks:
        raise ConfigurationError(
            f"the model has {', '.join(offered)}, and {first.name or 'the first sample'} has the truth of "
            f"{', '.join(there) or 'no task'}: there is no task to evaluate"
        )
    left_out = [name for name in TASKS if (name in offered) != (name in there)]
    note = f"not evaluated, since model or data lack it: {', '.join(left_out)}"
    return tasks, samples, (note,) if left_out else ()


def _wanted(task: Any) -> tuple[Task, ...]:
    """The tasks that were asked for, in their usual order."""
    names = [task] if isinstance(task, str) else list(task) if isinstance(task, Iterable) else []
    if not names or any(name not in TASKS for name in names):
        raise ConfigurationError(f"task is {task!r}; expected some of {', '.join(TASKS)}, or all")
    return tuple(name for name in TASKS if name in names)


def _tasks_of(model: ModelLike, wanted: tuple[Task, ...] | None) -> tuple[Task, ...]:
    if isinstance(model, Predictor):
        return model.tasks
    return tuple(checkpoint_sources("all" if wanted is None else list(wanted), model=model))


def _require_truth(sample: Sample, measure: TaskMeasure) -> None:
    missing = [name for name in measure.truth if getattr(sample, name) is None]
    if missing:
        raise InputError(
            f"{sample.label(missing[0])} is not known, and {measure.task} is compared with it; known: "
            f"{', '.join(sample.truths) or 'nothing'}"
        )


def _sample(samples: SampleSource, index: int) -> Sample:
    sample: Any = samples[index]
    if not isinstance(sample, Sample):
        raise InputError(f"data have {type(sample).__name__} at {index}; expected a sapiens2.data.Sample")
    return sample


def _about(model: Any, data: Any, predictor: Predictor, batch_size: int, flip_test: bool) -> dict[str, Any]:
    dtypes = {str(own.dtype).removeprefix("torch.") for own in predictor.models.values()}
    return {
        "model": _described(model),
        "data": _described_data(data),
        "device": str(predictor.device),
        "dtype": ", ".join(sorted(dtypes)),
        "batch_size": batch_size,
        "flip_test": flip_test,
        "versions": package_versions("torch", "transformers", "numpy"),
    }


def _described(value: Any) -> Any:
    """What was given, as JSON can hold it."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _described(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_described(own) for own in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return repr(value) if isinstance(value, Predictor) else type(value).__name__


def _described_data(data: Any) -> Any:
    """The description, and of a file that holds one also what it says."""
    described = _described(data)
    if isinstance(described, str) and described.lower().endswith((".yaml", ".yml")):
        return {"file": described, **_described(read_sample_spec(described))}
    return described
