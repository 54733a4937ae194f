"""From a model's output to the fields of a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.assets.tables import part_table
from sapiens2.models import Sapiens2Config
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.types import SizeHW, Task

__all__ = ["Person", "dense_fields", "label_fields", "pose_fields"]

Fields: TypeAlias = dict[str, Any]
Person: TypeAlias = dict[str, Tensor]
"""One person as :meth:`Sapiens2ImageProcessor.post_process_pose_estimation` gives it."""

_NAMED: dict[Task, tuple[str, str]] = {"pose": ("keypoint_names", "keypoint"), "seg": ("class_names", "class")}
"""Task -> field of the names, and what is named."""

_PLACEHOLDER = re.compile(r"LABEL_\d+")


def dense_fields(
    task: Task, outputs: Any, sizes_hw: Sequence[SizeHW], processor: Sapiens2ImageProcessor
) -> list[Fields]:
    """Maps at the pictures' sizes.

    Args:
        task: Any but ``"pose"``.
        outputs: Of the task's model, one entry for each picture.
        sizes_hw: ``(height, width)`` of each picture.
        processor: The one that prepared the pictures; its padding is cut away.

    Returns:
        For each picture the fields that the result of ``task`` adds to those of every result, as read-only arrays.
    """
    sizes: dict[str, Any] = {"source_sizes": list(sizes_hw), "do_remove_padding": bool(processor.do_pad)}
    return _READERS[task](outputs, sizes, processor)


def pose_fields(people: Sequence[Person], num_keypoints: int) -> Fields:
    """Keypoints ``(N, K, 2)``, scores ``(N, K)`` and boxes ``(N, 4)`` of the people of one picture; N may be 0."""
    if not people:
        return {
            "keypoints": np.zeros((0, num_keypoints, 2), np.float32),
            "scores": np.zeros((0, num_keypoints), np.float32),
            "boxes_xyxy": np.zeros((0, 4), np.float32),
        }
    columns = {"keypoints": "keypoints", "scores": "scores", "boxes_xyxy": "bbox"}
    return {field: _array(torch.stack([person[key] for person in people])) for field, key in columns.items()}


def label_fields(task: Task, config: Sapiens2Config) -> Fields:
    """Names of the keypoints or classes.

    Labels that the configuration lacks are numbered. Where it has placeholders only, the names are left to the result
    if they can be the published ones; classes of another number are numbered, too.
    """
    if task not in _NAMED:
        return {}
    field, noun = _NAMED[task]
    labels = [config.id2label.get(index) for index in range(config.num_labels)]
    is_named = any(label is not None and not _PLACEHOLDER.fullmatch(str(label)) for label in labels)
    if task == "seg" and not is_named and len(labels) != len(part_table()):
        labels = [None] * len(labels)
    elif not is_named or (task == "pose" and len(set(labels)) < len(labels)):
        return {}
    return {field: tuple(f"{noun}_{index}" if label is None else str(label) for index, label in enumerate(labels))}


def _segmentation(outputs: Any, sizes: dict[str, Any], processor: Sapiens2ImageProcessor) -> list[Fields]:
    maps = processor.post_process_semantic_segmentation(outputs, **sizes)
    return [{"segmentation": _array(ids)} for ids in maps]


def _normals(outputs: Any, sizes: dict[str, Any], processor: Sapiens2ImageProcessor) -> list[Fields]:
    found = processor.post_process_normal_estimation(outputs, **sizes)
    return [{"normals": _array(own["normals"])} for own in found]


def _pointmaps(outputs: Any, sizes: dict[str, Any], processor: Sapiens2ImageProcessor) -> list[Fields]:
    found = processor.post_process_pointmap_estimation(outputs, **sizes)
    scales = [None] * len(found) if outputs.scales is None else outputs.scales.float().flatten().tolist()
    return [
        {"pointmap": _array(own["pointmap"]), "is_metric": own["is_metric"], "scale": scale}
        for own, scale in zip(found, scales, strict=True)
    ]


def _mattes(outputs: Any, sizes: dict[str, Any], processor: Sapiens2ImageProcessor) -> list[Fields]:
    found = processor.post_process_image_matting(outputs, **sizes)
    return [{"alpha": _array(own["alpha"])[0], "foreground": _array(own["foreground"])} for own in found]


def _albedos(outputs: Any, sizes: dict[str, Any], processor: Sapiens2ImageProcessor) -> list[Fields]:
    found = processor.post_process_albedo_estimation(outputs, **sizes)
    return [{"albedo": _array(own["albedo"])} for own in found]


_READERS: dict[Task, Callable[[Any, dict[str, Any], Sapiens2ImageProcessor], list[Fields]]] = {
    "seg": _segmentation,
    "normal": _normals,
    "pointmap": _pointmaps,
    "matting": _mattes,
    "albedo": _albedos,
}


def _array(tensor: Any) -> NDArray[Any]:
    """A tensor as a read-only array, so that the result need not copy it."""
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    array.flags.writeable = False
    return array
