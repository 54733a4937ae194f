"""From annotated keypoints to heatmap targets and visibility weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sapiens2.codecs.udp_heatmap import encode_heatmaps
from sapiens2.errors import InputError
from sapiens2.geometry.crops import image_to_crop
from sapiens2.processing.array_formats import as_tensor
from sapiens2.processing.options import PreprocessOptions

__all__ = ["as_keypoints", "encode_keypoints"]

_FORMAT = "(persons, keypoints, 3) with (x, y, visibility), one for each image"


def as_keypoints(keypoints: Any, person_counts: Sequence[int]) -> list[torch.Tensor]:
    """Check the keypoints of a batch against its boxes.

    Args:
        keypoints: Per image ``(N_i, K, 3)`` with x and y in image pixels and the visibility, 0 for unlabelled: nested
            lists, arrays or tensors.
        person_counts: Boxes of each image.

    Returns:
        Per image ``(N_i, K, 3)``, float32, on the CPU; ``K`` is the same for all.

    Raises:
        InputError: Counts differ, something is no real number, or a visible keypoint is not finite.
    """
    is_listed = isinstance(keypoints, list | tuple) or (
        isinstance(keypoints, np.ndarray | torch.Tensor) and keypoints.ndim > 0
    )
    if not is_listed:
        raise InputError(f"keypoints are {type(keypoints).__name__}; expected {_FORMAT}.")
    if len(keypoints) != len(person_counts):
        raise InputError(f"There are keypoints for {len(keypoints)} images, but {len(person_counts)} images.")
    per_image = [_as_image_keypoints(entry, index) for index, entry in enumerate(keypoints)]
    for index, (points, persons) in enumerate(zip(per_image, person_counts, strict=True)):
        if points.shape[0] != persons:
            raise InputError(
                f"Image {index} has {persons} boxes and keypoints for {points.shape[0]} persons; these have to agree."
            )
    counts = {points.shape[1] for points in per_image if points.shape[0] > 0}
    if len(counts) > 1:
        raise InputError(f"Persons have different numbers of keypoints: {sorted(counts)}.")
    count = counts.pop() if counts else max((points.shape[1] for points in per_image), default=0)
    return [points if points.shape[0] > 0 else points.new_zeros((0, count, 3)) for points in per_image]


def encode_keypoints(
    keypoints: torch.Tensor, boxes_xywh: torch.Tensor, options: PreprocessOptions
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the keypoints of one image as heatmaps of its person crops.

    Convention: UDP ``size - 1`` scaling from the image to the crop and from the crop to the heatmap.

    Args:
        keypoints: ``(N, K, 3)``, x and y in image pixels, visibility above 0 if labelled.
        boxes_xywh: ``(N, 4)``.
        options: Crop size, stride and sigma of the heatmaps.

    Returns:
        Heatmaps ``(N, K, h, w)`` with peaks of 1 and weights ``(N, K)`` of 0 or 1, float32.
    """
    size_hw = options.person_hw()
    heatmap_hw = (size_hw[0] // options.heatmap_stride, size_hw[1] // options.heatmap_stride)
    if min(heatmap_hw) < 2:
        raise InputError(
            f"Heatmaps of {size_hw} crops with keypoint_heatmap_downscale_factor={options.heatmap_stride} would be "
            f"{heatmap_hw}; expected at least 2 x 2 pixels."
        )
    in_crop = image_to_crop(keypoints[..., :2], boxes_xywh, size_hw)
    return encode_heatmaps(in_crop, keypoints[..., 2], size_hw, heatmap_hw, options.heatmap_sigma)


def _as_image_keypoints(entry: Any, index: int) -> torch.Tensor:
    if not isinstance(entry, torch.Tensor):
        try:
            entry = np.array(_without_tensors(entry))
            entry = entry.astype(np.float64) if entry.dtype == object else entry
        except (TypeError, ValueError) as error:
            raise InputError(f"keypoints[{index}] is not a regular array of numbers; expected {_FORMAT}.") from error
    points = as_tensor(entry, f"keypoints[{index}]").to("cpu", torch.float32)
    if points.numel() == 0 and points.ndim < 3:
        return points.new_zeros((0, 0, 3))
    if points.ndim != 3 or points.shape[2] != 3:
        raise InputError(f"keypoints[{index}] has shape {tuple(points.shape)}; expected {_FORMAT}.")
    if not bool(torch.isfinite(points[points[..., 2] != 0]).all()):
        raise InputError(f"keypoints[{index}] has a visible keypoint that is not finite.")
    return points


def _without_tensors(entry: Any) -> Any:
    """Nested lists in which tensors (on any device, with a graph or not) became lists."""
    if isinstance(entry, torch.Tensor):
        return as_tensor(entry, "keypoints").tolist()
    return [_without_tensors(part) for part in entry] if isinstance(entry, list | tuple) else entry
