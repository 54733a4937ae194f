"""Input, truth and prediction side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sapiens2.data import Sample, SampleSource
from sapiens2.inference.truth_pictures import truth_and_prediction
from sapiens2.models import Sapiens2PreTrainedModel
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.results import Result
from sapiens2.training.measure import collect
from sapiens2.types import Task

__all__ = ["comparison", "comparison_sheet"]

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
    drawn: list[NDArray[np.uint8]] = []

    def draw(_index: int, sample: Sample, result: Result) -> None:
        drawn.append(comparison(sample, result, height=height))

    collect(model, processor, samples, task, indices=indices, batch_size=1, on_sample=draw)
    width = max(row.shape[1] for row in drawn)
    padded = [np.pad(row, ((0, _GAP), (0, width - row.shape[1]), (0, 0)), constant_values=_WHITE) for row in drawn]
    return np.concatenate(padded)


def comparison(sample: Sample, result: Result, *, height: int = 256) -> NDArray[np.uint8]:
    """Input, truth and prediction of one sample in a row.

    Args:
        sample: The sample.
        result: What was predicted for it.
        height: Of the row, in pixels.
    """
    panels = [_scaled(panel, height) for panel in (sample.image, *truth_and_prediction(sample, result))]
    gap = np.full((height, _GAP, 3), _WHITE, np.uint8)
    return np.concatenate([panels[0], gap, panels[1], gap, panels[2]], axis=1)


def _scaled(picture: NDArray[np.uint8], height: int) -> NDArray[np.uint8]:
    width = max(1, round(picture.shape[1] * height / picture.shape[0]))
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))
