"""One task: a model, the processor that belongs to it, and how both make a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import torch
from torch import Tensor

from sapiens2.assets import keypoint_table
from sapiens2.errors import ConfigurationError
from sapiens2.inference.decoded_image import DecodedImage
from sapiens2.inference.result_fields import Person, dense_fields, label_fields, pose_fields
from sapiens2.models import Sapiens2PreTrainedModel
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.results import (
    AlbedoResult,
    MattingResult,
    NormalResult,
    PointmapResult,
    PoseResult,
    Result,
    SegmentationResult,
)
from sapiens2.types import Task

__all__ = ["TaskModel", "batched"]

Item = TypeVar("Item")

RESULT_CLASSES: dict[Task, type[Result]] = {
    result.task: result
    for result in (PoseResult, SegmentationResult, NormalResult, PointmapResult, MattingResult, AlbedoResult)
}


@dataclass(frozen=True, eq=False)
class TaskModel:
    """A model and its processor.

    Attributes:
        task: What the model predicts.
        model: A task model, in evaluation mode.
        processor: Prepares pictures for it; it has to resize whole pictures, since results go back to their size.
        name: What results call the model.

    Raises:
        ConfigurationError: The model has another task, or the processor crops or does not resize.
    """

    task: Task
    model: Sapiens2PreTrainedModel
    processor: Sapiens2ImageProcessor
    name: str

    def __post_init__(self) -> None:
        if self.model.task != self.task:
            raise ConfigurationError(
                f"the model for {self.task} is a {type(self.model).__name__}; give a {self.task} model"
            )
        if self.processor.do_center_crop or not self.processor.do_resize:
            raise ConfigurationError(
                f"the processor for {self.task} has do_resize={self.processor.do_resize} and do_center_crop="
                f"{self.processor.do_center_crop}; a predictor needs do_resize=True and do_center_crop=False, so that "
                "results can be brought back to the picture's size"
            )

    @property
    def provenance(self) -> str:
        """The model's name, and whether its weights are random."""
        is_random = getattr(self.model.config, "sapiens2_weights", None) == "random"
        return f"{self.name} (random weights, not trained)" if is_random else self.name

    @property
    def flip_pairs(self) -> list[list[int]]:
        """Keypoints that a mirror exchanges.

        Raises:
            ConfigurationError: They are not known.
        """
        config = self.model.config
        if config.flip_pairs is not None:
            return [list(pair) for pair in config.flip_pairs]
        if config.num_labels == len(keypoint_table()):
            return [list(pair) for pair in keypoint_table().flip_pairs]
        raise ConfigurationError(
            f"flip_test needs to know which of the {config.num_labels} keypoints mirror each other; "
            "set config.flip_pairs"
        )

    def forward(self, pixel_values: Tensor, **kwargs: Any) -> Any:
        """The model's own output for pixel values on any device."""
        return self.model(pixel_values.to(self.model.device), **kwargs)

    def predict_whole(self, images: Sequence[DecodedImage]) -> list[Result]:
        """Results of whole pictures, in one pass through the model."""
        inputs = self.processor(
            [image.pixels for image in images], return_tensors="pt", input_data_format="channels_first"
        )
        outputs = self.forward(inputs.pixel_values)
        fields = dense_fields(self.task, outputs, [image.size_hw for image in images], self.processor)
        return [
            RESULT_CLASSES[self.task](
                image=image.image,
                source=image.source,
                model=self.provenance,
                **own,
                **label_fields(self.task, self.model.config),
            )
            for image, own in zip(images, fields, strict=True)
        ]

    def predict_people(
        self, images: Sequence[DecodedImage], boxes: Sequence[Tensor], *, batch_size: int, flip_test: bool
    ) -> list[PoseResult]:
        """Results of people, ``batch_size`` crops in one pass through the model.

        Args:
            images: The pictures.
            boxes: ``(N_i, 4)`` of each, COCO ``(x_min, y_min, width, height)``.
            batch_size: Crops in one pass; it may take people of several pictures.
            flip_test: Average the heatmaps with those of the mirrored crops.

        Raises:
            ConfigurationError: ``flip_test`` for keypoints whose mirror partners are not known.
        """
        flip_pairs = self.flip_pairs if flip_test else None
        people: list[list[Person]] = [[] for _ in images]
        for batch in batched([(index, box) for index, own in enumerate(boxes) for box in own], batch_size):
            for (index, _), person in zip(batch, self._decode_crops(images, batch, flip_pairs), strict=True):
                people[index].append(person)
        return [
            PoseResult(
                image=image.image,
                source=image.source,
                model=self.provenance,
                **pose_fields(found, self.model.config.num_labels),
                **label_fields(self.task, self.model.config),
            )
            for image, found in zip(images, people, strict=True)
        ]

    def _decode_crops(
        self, images: Sequence[DecodedImage], crops: Sequence[tuple[int, Tensor]], flip_pairs: list[list[int]] | None
    ) -> list[Person]:
        """People from (index of the picture, box) in one pass; crops of one picture follow each other."""
        by_image = [(index, [box for _, box in group]) for index, group in groupby(crops, key=lambda crop: crop[0])]
        pixel_values = self.processor(
            [images[index].pixels for index, _ in by_image],
            boxes=[torch.stack(own) for _, own in by_image],
            return_tensors="pt",
            input_data_format="channels_first",
        ).pixel_values
        outputs = self.forward(pixel_values)
        flipped = None if flip_pairs is None else self.forward(pixel_values.flip(-1), flip_pairs=flip_pairs)
        decoded = self.processor.post_process_pose_estimation(
            outputs, boxes=[box[None] for _, box in crops], outputs_flipped=flipped
        )
        return [person for (person,) in decoded]


def batched(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Slices of ``size`` items; the last may be shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))
