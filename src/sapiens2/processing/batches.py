"""The tensors of one preprocessing call: pixel values, labels and label weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sapiens2.errors import InputError
from sapiens2.geometry.crops import crop_people
from sapiens2.processing.keypoint_targets import as_keypoints, encode_keypoints
from sapiens2.processing.label_maps import (
    IGNORE_INDEX,
    crop_label_map,
    fit_label_map,
    list_label_maps,
    read_label_map,
    reduce_labels,
)
from sapiens2.processing.options import PreprocessOptions
from sapiens2.processing.pixels import center_crop, fit_image, normalize_pixels, pad_to_common_size
from sapiens2.types import ImageLike

__all__ = ["Entries", "as_requested", "check_targets", "keypoint_batch", "label_batch", "pixel_batch"]

Entries = torch.Tensor | list[torch.Tensor]
"""One batch tensor, or a list where the entries differ in size."""


def check_targets(segmentation_maps: Any, boxes: Any, keypoints: Any, options: PreprocessOptions) -> None:
    """Refuse combinations of arguments that have no meaning.

    Args:
        segmentation_maps: As given to the image processor.
        boxes: As given to the image processor.
        keypoints: As given to the image processor.
        options: Options of the call.

    Raises:
        InputError: Keypoints come without boxes, with segmentation maps (both would be ``labels``), or with a centre
            crop (which would shift them).
    """
    if keypoints is None:
        return
    if boxes is None:
        raise InputError("keypoints need boxes: one for each annotated person.")
    if segmentation_maps is not None:
        raise InputError("segmentation_maps and keypoints both make labels; pass only one of them.")
    if options.crop_hw is not None:
        raise InputError("keypoints with do_center_crop=True: the crop would shift them. Set do_center_crop=False.")


def pixel_batch(
    pixels: Sequence[torch.Tensor], people: Sequence[torch.Tensor] | None, options: PreprocessOptions
) -> Entries:
    """Fit whole images, or crop people, and normalise.

    Args:
        pixels: Images ``(3, H, W)``, uint8 or float32.
        people: Boxes ``(N_i, 4)`` of each image, or ``None`` for whole images.
        options: Options of the call.

    Returns:
        ``(N, 3, h, w)``, or a list of ``(3, h, w)`` if the sizes differ.
    """
    if people is not None:
        return _person_batch(pixels, people, options)
    fitted = [fit_image(single, options) for single in pixels]
    if options.pad and options.size is None:
        fitted = pad_to_common_size(fitted, options.pad_hw)
    if not fitted:
        return torch.empty((0, 3, *(options.crop_hw or options.model_hw or (0, 0))))
    if len({single.shape for single in fitted}) > 1:
        return [normalize_pixels(single, options) for single in fitted]
    if options.rescale is None and options.mean is None:
        return torch.stack(fitted)
    batch = torch.empty((len(fitted), *fitted[0].shape), dtype=torch.float32, device=fitted[0].device)
    for single, out in zip(fitted, batch, strict=True):
        normalize_pixels(single, options, out=out)
    return batch


def label_batch(
    segmentation_maps: ImageLike | Sequence[Any],
    pixels: Sequence[torch.Tensor],
    people: Sequence[torch.Tensor] | None,
    options: PreprocessOptions,
) -> Entries:
    """Bring segmentation maps to labels that lie exactly on the pixel values.

    Args:
        segmentation_maps: One map for each image.
        pixels: The images, for their sizes and device.
        people: Boxes of each image, or ``None`` for whole images.
        options: Options of the call.

    Returns:
        ``(N, h, w)`` int64, or a list of ``(h, w)`` if the sizes differ.
    """
    labels = []
    for index, label_map in enumerate(list_label_maps(segmentation_maps, len(pixels))):
        image_hw = (pixels[index].shape[-2], pixels[index].shape[-1])
        single = read_label_map(label_map, image_hw, index).to(pixels[index].device)
        single = reduce_labels(single) if options.reduce_labels else single
        if people is None:
            labels.append(fit_label_map(single, options))
        else:
            labels.extend(crop_label_map(single, people[index], options))
    if options.pad and options.size is None and people is None:
        labels = pad_to_common_size(labels, options.pad_hw, fill=IGNORE_INDEX)
    if not labels:
        return torch.empty((0, *(options.crop_hw or options.model_hw or (0, 0))), dtype=torch.int64)
    return _stacked(labels)


def keypoint_batch(
    keypoints: Any, pixels: Sequence[torch.Tensor], people: Sequence[torch.Tensor], options: PreprocessOptions
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw annotated keypoints as heatmaps.

    Args:
        keypoints: For each image ``(N_i, K, 3)``.
        pixels: The images, for their device.
        people: Boxes ``(N_i, 4)`` of each image.
        options: Options of the call.

    Returns:
        Heatmaps ``(N, K, h, w)`` and weights ``(N, K)``, float32.
    """
    points = as_keypoints(keypoints, [boxes.shape[0] for boxes in people])
    if not points:
        raise InputError("keypoints need at least one image.")
    device = pixels[0].device
    boxes = torch.cat([single.to(device) for single in people])
    return encode_keypoints(torch.cat(points).to(device), boxes, options)


def as_requested(entries: Entries, name: str, options: PreprocessOptions) -> Any:
    """Convert a batch to the kind of tensors that was asked for.

    Args:
        entries: The batch.
        name: Its name, for messages.
        options: Options of the call.

    Returns:
        A tensor for ``"pt"``, an array for ``"np"``, a list of tensors for ``None``.

    Raises:
        InputError: Entries of different sizes are to be stacked.
    """
    if options.return_tensors is None:
        return list(entries)
    if isinstance(entries, list):
        shapes = sorted({tuple(entry.shape) for entry in entries})
        raise InputError(
            f"{name} have different shapes {shapes} and cannot be stacked. Use do_resize=True with a fixed size, "
            "do_pad=True, or return_tensors=None for a list."
        )
    return entries if options.return_tensors == "pt" else np.asarray(entries.cpu())


def _person_batch(
    pixels: Sequence[torch.Tensor], people: Sequence[torch.Tensor], options: PreprocessOptions
) -> torch.Tensor:
    size_hw = options.person_hw()
    crops = [crop_people(single, boxes, size_hw) for single, boxes in zip(pixels, people, strict=True)]
    batch = torch.cat(crops) if crops else torch.empty((0, 3, *size_hw), device=options.device)
    if options.crop_hw is not None:
        batch = center_crop(batch, options.crop_hw)
    return normalize_pixels(batch, options, out=batch)


def _stacked(labels: list[torch.Tensor]) -> Entries:
    return torch.stack(labels) if len({label.shape for label in labels}) == 1 else labels
