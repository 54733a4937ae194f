"""Figures of a model on samples with truth: what it predicts for whole pictures, at their own size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from sapiens2.assets import keypoint_table, part_table
from sapiens2.data import REQUIRED_TRUTH, Sample, SampleSource
from sapiens2.data.augment import flip_pairs_by_name
from sapiens2.errors import InputError
from sapiens2.inference.decoded_image import DecodedImage
from sapiens2.inference.result_fields import label_fields
from sapiens2.inference.task_model import TaskModel, batched
from sapiens2.metrics import (
    ImageMetric,
    MattingMetric,
    Metric,
    NormalMetric,
    OksMetric,
    PckMetric,
    PointmapMetric,
    SegmentationMetric,
    keypoint_groups,
)
from sapiens2.models import Sapiens2PreTrainedModel
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.results import Result
from sapiens2.types import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OnSample", "collect", "figures_of", "label_names", "measure", "report_of", "task_metrics", "update_metrics"]

OnSample: TypeAlias = Callable[[int, Sample, Result], None]
"""Called for each sample with its index, the sample, and what was predicted for it."""


def measure(
    model: Sapiens2PreTrainedModel,
    processor: Sapiens2ImageProcessor,
    samples: SampleSource,
    task: Task,
    *,
    batch_size: int = 8,
    on_sample: OnSample | None = None,
) -> dict[str, Any]:
    """Predict every sample and compare with its truth.

    The prediction is that of :func:`sapiens2.load`: padding is cut away and maps come back to the size of the picture.
    Poses are predicted in the true boxes, without a flip test.

    Args:
        model: A task model; it is put into evaluation mode meanwhile.
        processor: The one that belongs to it.
        samples: Samples with the truth of the task.
        task: The task.
        batch_size: Pictures (of poses: people) in one pass.
        on_sample: Called after each sample, for progress and pictures.

    Returns:
        ``task``, ``samples`` (how many), and ``metrics``: the reports of :meth:`sapiens2.metrics.Metric.report`, the
        main one first; strict JSON.

    Raises:
        InputError: A sample lacks the truth of the task, or cannot be read.
    """
    metrics = collect(
        model, processor, samples, task, indices=range(len(samples)), batch_size=batch_size, on_sample=on_sample
    )
    return report_of(metrics, task, len(samples))


def collect(
    model: Sapiens2PreTrainedModel,
    processor: Sapiens2ImageProcessor,
    samples: SampleSource,
    task: Task,
    *,
    indices: Sequence[int],
    batch_size: int = 8,
    on_sample: OnSample | None = None,
) -> list[Metric]:
    """The metrics behind :func:`measure`, of some of the samples, so that several processes can merge theirs."""
    predictor = TaskModel(task, model, processor, "")
    metrics = task_metrics(task, label_names(task, model))
    with evaluating(model), torch.inference_mode():
        for batch in batched(indices, batch_size):
            read = [samples[index] for index in batch]
            for sample in read:
                require_truth(sample, task)
            for index, sample, result in zip(batch, read, _predict(predictor, read, batch_size), strict=True):
                update_metrics(metrics, sample, result, index)
                if on_sample is not None:
                    on_sample(index, sample, result)
    return metrics


def report_of(metrics: Iterable[Metric], task: Task, count: int) -> dict[str, Any]:
    """What :func:`measure` returns, from metrics that have seen everything."""
    return {"task": task, "samples": count, "metrics": [metric.report() for metric in metrics]}


def figures_of(report: dict[str, Any], *, detailed: bool = False) -> dict[str, float]:
    """The numbers of a report by name; without those of single classes and keypoint groups unless detailed."""
    return {
        name.removeprefix("whole/"): value
        for metric in report["metrics"]
        for name, value in metric["values"].items()
        if value is not None and (detailed or "/" not in name.removeprefix("whole/"))
    }


def label_names(task: Task, model: Sapiens2PreTrainedModel) -> tuple[str, ...] | None:
    """Names of a model's keypoints or classes: its own, or the published ones; None for other tasks."""
    fields = label_fields(task, model.config)
    if fields:
        (names,) = fields.values()
        return tuple(names)
    if task == "seg":
        return part_table().names
    if task != "pose":
        return None
    published = keypoint_table().names
    count = int(model.config.num_labels)
    return published if count == len(published) else tuple(f"keypoint_{index}" for index in range(count))


def task_metrics(task: Task, names: Sequence[str] | None = None) -> list[Metric]:
    """The metrics of a task, not yet fed.

    Args:
        task: The task.
        names: Of the keypoints or classes; None for the published ones.
    """
    if task == "pose":
        return _pose_metrics(keypoint_table().names if names is None else tuple(names))
    if task == "seg":
        classes = part_table().names if names is None else tuple(names)
        if classes == part_table().names:
            return [SegmentationMetric.for_body_parts()]
        return [SegmentationMetric(len(classes), class_names=classes, flip_pairs=flip_pairs_by_name(classes))]
    metrics: dict[Task, Metric] = {
        "normal": NormalMetric(),
        "pointmap": PointmapMetric(),
        "matting": MattingMetric(),
        "albedo": ImageMetric(),
    }
    return [metrics[task]]


def _pose_metrics(names: tuple[str, ...]) -> list[Metric]:
    table = keypoint_table()
    if names == table.names:
        return [PckMetric(len(names), groups=keypoint_groups()), OksMetric.for_published_keypoints()]
    metrics: list[Metric] = [PckMetric(len(names))]
    if set(names) <= set(table.names):  # the falloff of other keypoints is not known
        metrics.append(OksMetric([table.sigmas[table.names.index(name)] for name in names]))
    return metrics


def update_metrics(metrics: Sequence[Metric], sample: Sample, result: Any, index: int) -> None:
    """Feed one sample and what was predicted for it.

    Args:
        metrics: Those of :func:`task_metrics`.
        sample: The sample.
        result: The task's result for its picture.
        index: Tells pictures apart.
    """
    truth: Any = sample
    for metric in metrics:
        match metric:
            case PckMetric():
                metric.update(result.keypoints, *_true_points(sample), boxes=truth.boxes_xywh)
            case OksMetric():
                metric.update(
                    result.keypoints,
                    *_true_points(sample),
                    image_id=index,
                    scores=result.person_scores,
                    boxes=truth.boxes_xywh,
                )
            case SegmentationMetric():
                metric.update(result.segmentation, truth.parts, truth.mask)
            case NormalMetric():
                metric.update(result.normals, truth.normals, truth.mask)
            case PointmapMetric():
                metric.update(result.pointmap, truth.pointmap, truth.mask)
            case MattingMetric():
                metric.update(result.alpha, truth.alpha, truth.mask)
            case ImageMetric():
                metric.update(result.albedo, truth.albedo, truth.mask)


def require_truth(sample: Sample, task: Task) -> None:
    """Refuse a sample that the task cannot be measured on.

    Raises:
        InputError: It lacks the truth of the task.
    """
    needed = REQUIRED_TRUTH[task][:1]  # of mattes alpha is compared, of points the map
    if missing := [name for name in needed if getattr(sample, name) is None]:
        raise InputError(
            f"{sample.label(missing[0])} is not known, and {task} is measured against it. "
            f"Known: {', '.join(sample.truths) or 'nothing'}."
        )


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and every module back into its own mode afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _true_points(sample: Sample) -> tuple[Any, Any]:
    assert sample.keypoints is not None
    visible = sample.keypoints[..., 2] > 0
    return np.where(visible[..., None], sample.keypoints[..., :2], np.float32(np.nan)), visible


def _predict(predictor: TaskModel, samples: Sequence[Sample], batch_size: int) -> Sequence[Any]:
    images = [_decoded(sample) for sample in samples]
    if predictor.task != "pose":
        return predictor.predict_whole(images)
    boxes: list[Tensor] = [torch.as_tensor(sample.boxes_xywh) for sample in samples]
    return predictor.predict_people(images, boxes, batch_size=batch_size, flip_test=False)


def _decoded(sample: Sample) -> DecodedImage:
    image = np.ascontiguousarray(sample.image)
    pixels = torch.from_numpy(image.copy()).permute(2, 0, 1)
    return DecodedImage(pixels, image, sample.name or None)
