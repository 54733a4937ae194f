"""Input, truth and prediction side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sapiens2.assets import part_table
from sapiens2.data import IGNORE_LABEL, Sample, SampleSource
from sapiens2.models import Sapiens2PreTrainedModel
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.results import Result
from sapiens2.training.measure import collect, label_names
from sapiens2.types import Task
from sapiens2.visualization import (
    depth_range,
    distinct_palette,
    draw_albedo,
    draw_matte,
    draw_normals,
    draw_pointmap,
    draw_pose,
    draw_segmentation,
)

__all__ = ["comparison", "comparison_sheet"]

Pair: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.uint8]]

_GAP = 4
_WHITE = 255


def comparison_sheet(
    model: Sapiens2PreTrainedModel,
    processor: Sapiens2ImageProcessor,
    samples: SampleSource,
    task: Task,
    *,
    rows: int = 4,
    height: int = 256,
) -> NDArray[np.uint8]:
    """Rows of input, truth and prediction, of samples spread over the data.

    Args:
        model: A task model.
        processor: The one that belongs to it.
        samples: Samples with the truth of the task.
        task: The task.
        rows: How many samples, at most.
        height: Of each row, in pixels.

    Returns:
        ``(H, W, 3)`` uint8.
    """
    count = min(rows, len(samples))
    indices = [round(position) for position in np.linspace(0, len(samples) - 1, count)]
    names = label_names(task, model)
    drawn: list[NDArray[np.uint8]] = []

    def draw(_index: int, sample: Sample, result: Result) -> None:
        drawn.append(comparison(sample, result, names, height=height))

    collect(model, processor, samples, task, indices=indices, batch_size=1, on_sample=draw)
    width = max(row.shape[1] for row in drawn)
    padded = [np.pad(row, ((0, _GAP), (0, width - row.shape[1]), (0, 0)), constant_values=_WHITE) for row in drawn]
    return np.concatenate(padded)


def comparison(
    sample: Sample, result: Result, names: Sequence[str] | None = None, *, height: int = 256
) -> NDArray[np.uint8]:
    """Input, truth and prediction of one sample in a row.

    Normals, points and albedo are shown where their truth is known, points on the scale of depths of the truth.

    Args:
        sample: The sample.
        result: What was predicted for it.
        names: Of the classes.
        height: Of the row, in pixels.
    """
    panels = [_scaled(panel, height) for panel in (sample.image, *_truth_and_prediction(sample, result, names))]
    gap = np.full((height, _GAP, 3), _WHITE, np.uint8)
    return np.concatenate([panels[0], gap, panels[1], gap, panels[2]], axis=1)


def _truth_and_prediction(sample: Sample, result: Any, names: Sequence[str] | None) -> Pair:
    truth: Any = sample
    match result.task:
        case "pose":
            points = truth.keypoints
            return draw_pose(sample.image, points[..., :2], (points[..., 2] > 0).astype(np.float32)), result.draw()
        case "seg":
            return _draw_parts(sample, names), result.draw()
        case "matting":
            colour = sample.image.transpose(2, 0, 1) / np.float32(255) * truth.alpha
            return draw_matte(truth.alpha, colour if sample.foreground is None else sample.foreground), result.draw()
        case "normal":
            known = _known(sample, truth.normals)
            return draw_normals(truth.normals, mask=known), draw_normals(result.normals, mask=known)
        case "albedo":
            known = _known(sample, truth.albedo)
            filled = np.where(known, truth.albedo, np.float32(0))
            return draw_albedo(filled, mask=known), draw_albedo(result.albedo, mask=known)
        case _:
            known = _known(sample, truth.pointmap)
            limits = depth_range(truth.pointmap[2][known]) if known.any() else None
            return (
                draw_pointmap(truth.pointmap, mask=known, depth_limits=limits),
                draw_pointmap(result.pointmap, mask=known, depth_limits=limits),
            )


def _known(sample: Sample, values: NDArray[np.float32]) -> NDArray[np.bool_]:
    known = np.asarray(np.isfinite(values).all(axis=0))
    return known if sample.mask is None else known & sample.mask


def _draw_parts(sample: Sample, names: Sequence[str] | None) -> NDArray[np.uint8]:
    table = part_table()
    classes = table.names if names is None else tuple(names)
    palette = table.palette_rgb if len(classes) == len(table) else distinct_palette(len(classes))
    return draw_segmentation(
        sample.image,
        sample.parts,
        palette_rgb=palette,
        class_names=classes,
        ignore_index=IGNORE_LABEL,
        legend=False,
    )


def _scaled(picture: NDArray[np.uint8], height: int) -> NDArray[np.uint8]:
    width = max(1, round(picture.shape[1] * height / picture.shape[0]))
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))
