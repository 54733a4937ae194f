"""Heatmaps of people to keypoints in their pictures."""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.codecs import average_flipped, decode_heatmaps
from sapiens2.errors import InputError
from sapiens2.geometry import CROP_PADDING, as_boxes_per_image, crop_to_image, xywh_to_xyxy
from sapiens2.processing.sizes import SizesLike, as_sizes
from sapiens2.types import ArrayLike

__all__ = ["post_process_pose_estimation"]


def post_process_pose_estimation(
    heatmaps: Tensor,
    boxes: ArrayLike,
    *,
    heatmaps_flipped: Tensor | None = None,
    kernel_size: int = 11,
    threshold: float | None = None,
    source_sizes: SizesLike | None = None,
    target_sizes: SizesLike | None = None,
    padding: float = CROP_PADDING,
) -> list[list[dict[str, Tensor]]]:
    """Decode the heatmaps of a batch and map the keypoints to the pictures that the people were cut from.

    The window of a crop follows from its box, the padding and the aspect of the heatmap, so the result depends on
    nothing but the arguments.

    Convention: pixel centres at integers, (x, y) order, UDP ``size - 1`` scaling; boxes in are COCO
    ``(x_min, y_min, width, height)``, boxes out ``(x_min, y_min, x_max, y_max)``.

    Args:
        heatmaps: Tensor ``(people, K, h, w)``, the people of all images one after another.
        boxes: For each image its boxes ``(N_i, 4)``, the same that the crops were made with; lists, arrays or tensors.
        heatmaps_flipped: Tensor of the shape of ``heatmaps``, from the mirrored crops and flipped back; averaged with
            ``heatmaps`` before they are decoded.
        kernel_size: Odd width of the blur that :func:`~sapiens2.codecs.decode_heatmaps` applies.
        threshold: Keypoints with a score not above it are left out; None keeps all.
        source_sizes: ``(height, width)`` of each image, or the images.
        target_sizes: ``(height, width)`` of each image that keypoints and boxes shall refer to instead. Needs
            ``source_sizes``.
        padding: Factor by which boxes grew before they were cropped.

    Returns:
        For each image a list with a dict for each person, on the device of ``heatmaps``:

        - ``keypoints``: ``(K, 2)`` float32, (x, y) in pixels of the image; NaN where a heatmap has no peak.
        - ``scores``: ``(K,)`` float32, height of the peak, 0 where there is none.
        - ``labels``: ``(K,)`` int64, index of the keypoint.
        - ``bbox``: ``(4,)`` float32, the box as it was given, without padding.

        With a threshold, K is what passed it.

    Raises:
        InputError: There are not as many boxes as heatmaps, or not as many sizes as images; ``target_sizes`` come
            without ``source_sizes``; a box or the kernel size is not valid.
    """
    if heatmaps_flipped is not None:
        heatmaps = average_flipped(heatmaps, heatmaps_flipped)
    boxes_per_image = as_boxes_per_image(boxes)
    people_per_image = [len(image_boxes) for image_boxes in boxes_per_image]
    people = sum(people_per_image)
    if heatmaps.ndim != 4 or len(heatmaps) != people:
        raise InputError(
            f"Heatmaps have shape {tuple(heatmaps.shape)} and there are {people} boxes; expected one "
            "(keypoints, height, width) heatmap per box, so pass the boxes that the crops were made with."
        )
    ratios = _size_ratios(source_sizes, target_sizes, len(boxes_per_image))  # (images, 2) as (x, y)
    if not people:
        return [[] for _ in boxes_per_image]
    points, scores = decode_heatmaps(heatmaps, kernel_size)
    all_boxes = torch.cat([image_boxes.to(points.device) for image_boxes in boxes_per_image])  # (people, 4)
    height, width = heatmaps.shape[-2:]
    person_ratios = ratios.repeat_interleave(torch.tensor(people_per_image), dim=0).to(points)  # (people, 2)
    points = crop_to_image(points, all_boxes, (height, width), padding) * person_ratios[:, None]
    corners = xywh_to_xyxy(all_boxes) * person_ratios.repeat(1, 2)
    persons = [_person(*columns, threshold=threshold) for columns in zip(points, scores, corners, strict=True)]
    remaining = iter(persons)
    return [[next(remaining) for _ in range(count)] for count in people_per_image]


def _person(points: Tensor, scores: Tensor, bbox: Tensor, *, threshold: float | None) -> dict[str, Tensor]:
    labels = torch.arange(len(scores), device=scores.device)
    if threshold is not None:
        kept = scores > threshold
        points, scores, labels = points[kept], scores[kept], labels[kept]
    return {"keypoints": points, "scores": scores, "labels": labels, "bbox": bbox}


def _size_ratios(source_sizes: SizesLike | None, target_sizes: SizesLike | None, num_images: int) -> Tensor:
    """Give the factors ``(images, 2)`` for (x, y) from source to target sizes, 1 where nothing is asked for."""
    sources = as_sizes(source_sizes, num_images, "source_sizes")
    targets = as_sizes(target_sizes, num_images, "target_sizes")
    if targets is not None and sources is None:
        raise InputError("target_sizes need source_sizes: pass the (height, width) of each image as well.")
    if sources is None or targets is None:
        return torch.ones((num_images, 2))
    return torch.tensor([(to[1] / of[1], to[0] / of[0]) for of, to in zip(sources, targets, strict=True)]).view(-1, 2)
