"""Models and processors behind one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sapiens2.errors import ConfigurationError, InputError
from sapiens2.geometry import as_boxes, as_boxes_per_image
from sapiens2.inference.decoded_image import DecodedImage
from sapiens2.inference.task_model import TaskModel, batched
from sapiens2.models import Sapiens2PreTrainedModel
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.processing.image_input import list_images
from sapiens2.results import Prediction, Result
from sapiens2.types import TASKS, BoxesLike, ImageLike, Task

__all__ = ["Predictor"]


class Predictor:
    """Predicts one task or several for pictures, as a function: ``predict("photo.jpg")``.

    :func:`sapiens2.inference.load` makes one from checkpoints; the constructor takes models that are in memory. Nothing
    is kept between calls.

    Args:
        models: Task -> model, all on one device; they are put in evaluation mode.
        processors: Task -> processor, for the same tasks.
        names: Task -> what results call the model; left out, its class.
        bundled: Whether a call answers with a :class:`~sapiens2.results.Prediction` (several tasks always do) or with
            the result of the only task.

    Raises:
        ConfigurationError: No model, tasks that differ, models on several devices, or a model of another task.
    """

    def __init__(
        self,
        models: Mapping[Task, Sapiens2PreTrainedModel],
        processors: Mapping[Task, Sapiens2ImageProcessor],
        *,
        names: Mapping[Task, str] | None = None,
        bundled: bool | None = None,
    ) -> None:
        if not models or models.keys() != processors.keys():
            raise ConfigurationError(
                f"there are models for {sorted(models)} and processors for {sorted(processors)}; "
                "give one of each for at least one task"
            )
        devices = {str(model.device) for model in models.values()}
        if len(devices) > 1:
            raise ConfigurationError(f"the models are on {', '.join(sorted(devices))}; put them on one device")
        given = dict(names or {})
        self._parts = {
            task: TaskModel(task, models[task].eval(), processors[task], given.get(task, type(models[task]).__name__))
            for task in sorted(models, key=_order)
        }
        self._bundled = len(models) > 1 if bundled is None else bundled or len(models) > 1

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What is predicted."""
        return tuple(self._parts)

    @property
    def models(self) -> Mapping[Task, Sapiens2PreTrainedModel]:
        """Task -> model."""
        return MappingProxyType({task: part.model for task, part in self._parts.items()})

    @property
    def processors(self) -> Mapping[Task, Sapiens2ImageProcessor]:
        """Task -> processor."""
        return MappingProxyType({task: part.processor for task, part in self._parts.items()})

    @property
    def model(self) -> Sapiens2PreTrainedModel:
        """The model of the only task.

        Raises:
            ConfigurationError: There are several; see :attr:`models`.
        """
        return self._only("model").model

    @property
    def processor(self) -> Sapiens2ImageProcessor:
        """The processor of the only task.

        Raises:
            ConfigurationError: There are several; see :attr:`processors`.
        """
        return self._only("processor").processor

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        device: torch.device = next(iter(self._parts.values())).model.device
        return device

    def __repr__(self) -> str:
        return f"Predictor(tasks={list(self.tasks)}, device={str(self.device)!r})"

    @torch.inference_mode()
    def forward(self, pixel_values: Tensor, *, task: Task | None = None, **kwargs: Any) -> Any:
        """A model's own output, without gradients.

        Args:
            pixel_values: ``(batch, 3, height, width)``, normalised, as the processor returns them; on any device.
            task: Which model; may be left out when there is only one.
            **kwargs: Passed to the model.

        Returns:
            The task's output class, such as :class:`~sapiens2.models.Sapiens2PoseEstimatorOutput`, on :attr:`device`.

        Raises:
            ConfigurationError: The task is not loaded, or left out while there are several.
        """
        if task is not None and task not in self._parts:
            raise ConfigurationError(f"{task!r} is not loaded; the tasks are {', '.join(self.tasks)}")
        part = self._only("forward(pixel_values, task=...)") if task is None else self._parts[task]
        return part.forward(pixel_values, **kwargs)

    @torch.inference_mode()
    def __call__(
        self,
        images: ImageLike | Sequence[Any],
        boxes: BoxesLike | Sequence[BoxesLike] | None = None,
        *,
        batch_size: int = 1,
        flip_test: bool = False,
    ) -> Any:
        """Predict every task for a picture, or for each of a list.

        Each picture is decoded once, and results have its size as displayed. Pictures of a list do not influence each
        other; a batch larger than 1 may change the last digits.

        Convention: boxes are COCO ``(x_min, y_min, width, height)`` in absolute pixels of the displayed picture.

        Args:
            images: One picture (path, PIL image, array or tensor), or a list of pictures of any kinds and sizes; a
                batch array counts as a list.
            boxes: Where the people are, for the pose: ``(N, 4)`` for one picture, a list of these for a list. ``[]``
                means that nobody is there; None takes the whole picture as one person.
            batch_size: Pictures, or people, in one pass through a model.
            flip_test: Whether poses are averaged with those of the mirrored crops (twice the time).

        Returns:
            For one picture the task's result, or a :class:`~sapiens2.results.Prediction` if the predictor was loaded
            for a list of tasks; a list of these for a list.

        Raises:
            InputError: A picture or a box cannot be used; the message names it. Boxes or ``flip_test`` without pose.
        """
        self._check_options(boxes, batch_size, flip_test)
        entries = list_images(images)
        own: Sequence[Tensor | None] = [None] * len(entries)
        if boxes is not None:
            own = as_boxes_per_image(boxes, len(entries)) if _is_batch(images) else [as_boxes(boxes)]
        answers: list[Result | Prediction] = []
        for indices in batched(range(len(entries)), batch_size):
            decoded = [
                DecodedImage.read(entries[index], index=index if len(entries) > 1 else None) for index in indices
            ]
            answers += self._predict(decoded, [own[index] for index in indices], batch_size, flip_test)
        return answers if _is_batch(images) else answers[0]

    def _predict(
        self, images: Sequence[DecodedImage], boxes: Sequence[Tensor | None], batch_size: int, flip_test: bool
    ) -> list[Result | Prediction]:
        results: dict[Task, Sequence[Result]] = {}
        for task, part in self._parts.items():
            if task == "pose":
                people = [_whole(image) if own is None else own for image, own in zip(images, boxes, strict=True)]
                results[task] = part.predict_people(images, people, batch_size=batch_size, flip_test=flip_test)
            else:
                results[task] = part.predict_whole(images)
        if not self._bundled:
            return list(results[self.tasks[0]])
        per_image = [dict(zip(results, row, strict=True)) for row in zip(*results.values(), strict=True)]
        return [Prediction(**row) for row in per_image]

    def _only(self, what: str) -> TaskModel:
        if len(self._parts) > 1:
            raise ConfigurationError(
                f"this predictor has {len(self._parts)} tasks ({', '.join(self.tasks)}), so {what} is not one thing; "
                "use .models[task], .processors[task] or .forward(pixel_values, task=task)"
            )
        return next(iter(self._parts.values()))

    def _check_options(self, boxes: Any, batch_size: int, flip_test: bool) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size is {batch_size!r}; expected a whole number of at least 1")
        if "pose" not in self._parts and (boxes is not None or flip_test):
            raise InputError(
                f"{'boxes' if boxes is not None else 'flip_test'} concern the pose, and the tasks are "
                f"{', '.join(self.tasks)}; leave them out or load 'pose' too"
            )


def _order(task: Task) -> int:
    if task not in TASKS:
        raise ConfigurationError(f"task={task!r} is not known; choose from {', '.join(TASKS)}")
    return TASKS.index(task)


def _is_batch(images: Any) -> bool:
    return isinstance(images, list | tuple) or (isinstance(images, np.ndarray | Tensor) and images.ndim == 4)


def _whole(image: DecodedImage) -> Tensor:
    """The box of a whole picture, ``(1, 4)``."""
    height, width = image.size_hw
    return torch.tensor([[0.0, 0.0, float(width), float(height)]])
