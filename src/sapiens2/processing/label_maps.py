"""From segmentation maps to label tensors: nearest neighbours only, padding is ignored by the loss."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from sapiens2.errors import InputError
from sapiens2.geometry.crops import crop_people
from sapiens2.geometry.resize import letterbox_geometry, resize_labels
from sapiens2.processing.array_formats import as_tensor
from sapiens2.processing.image_input import decode_pil, displayed_pil, is_image, open_image
from sapiens2.processing.options import PreprocessOptions, scaled_size_hw
from sapiens2.processing.pixels import center_crop
from sapiens2.types import ImageLike, SizeHW

__all__ = ["IGNORE_INDEX", "crop_label_map", "fit_label_map", "list_label_maps", "read_label_map", "reduce_labels"]

IGNORE_INDEX = 255
"""Label of pixels that the loss leaves out: padding, what lies outside the image, and reduced background."""


def list_label_maps(maps: ImageLike | Sequence[Any], count: int) -> list[ImageLike]:
    """List the single maps, one for each image.

    Args:
        maps: One map, a list of maps, or a batch array ``(B, H, W)`` or ``(B, 1, H, W)``.
        count: Number of images.

    Returns:
        ``count`` maps.

    Raises:
        InputError: Their number differs from ``count``.
    """
    entries: list[Any]
    if isinstance(maps, list | tuple):
        entries = [entry for item in maps for entry in (item if isinstance(item, list | tuple) else [item])]
    elif isinstance(maps, np.ndarray | torch.Tensor) and (
        maps.ndim == 4 or (maps.ndim == 3 and maps.shape[0] == count > 1)
    ):
        entries = list(maps)
    else:
        entries = [maps]
    if len(entries) != count:
        raise InputError(f"There are {len(entries)} segmentation maps for {count} images; give one for each image.")
    return entries


def read_label_map(label_map: ImageLike, image_hw: SizeHW, index: int) -> torch.Tensor:
    """Read one map of class ids.

    Args:
        label_map: PIL image of one channel (in a palette image the indices count, not the colours), array or tensor
            ``(H, W)``, ``(H, W, 1)`` or ``(1, H, W)`` of whole numbers, or path of a file.
        image_hw: ``(height, width)`` of the image that it belongs to, as displayed.
        index: Position in the batch, for messages.

    Returns:
        ``(H, W)``, int64.

    Raises:
        InputError: The map has colours, fractions, another size than its image, or does not hold real numbers.
    """
    if not is_image(label_map):
        raise InputError(f"segmentation_maps[{index}] is a {type(label_map).__name__}; expected an image or an array.")
    if isinstance(label_map, str | os.PathLike):
        with open_image(label_map) as opened:
            values = _pil_values(opened, index)
    elif isinstance(label_map, Image.Image):
        values = _pil_values(label_map, index)
    else:
        values = as_tensor(label_map, f"segmentation_maps[{index}]")
    labels = _whole_numbers(_single_channel(values, index), index)
    if tuple(labels.shape) != image_hw:
        raise InputError(
            f"segmentation_maps[{index}] is {tuple(labels.shape)} (height, width), its image is {image_hw}; they "
            "have to be equal. If they are transposed, the image has an EXIF orientation that the map lacks."
        )
    return labels


def reduce_labels(labels: torch.Tensor) -> torch.Tensor:
    """Move every class down by one and ignore class 0.

    Args:
        labels: Class ids, any shape.

    Returns:
        Same shape: 0 and 255 become 255, every other id is one less.
    """
    ignored = (labels == 0) | (labels == IGNORE_INDEX)
    return torch.where(ignored, IGNORE_INDEX, labels - 1)


def fit_label_map(labels: torch.Tensor, options: PreprocessOptions) -> torch.Tensor:
    """Resize, pad and crop a map as its image is, with the nearest label.

    Args:
        labels: ``(H, W)``, int64.
        options: The same as for the image.

    Returns:
        ``(h, w)``, int64, with labels of the input and 255 only.
    """
    source_hw = (labels.shape[0], labels.shape[1])
    if options.size is not None:
        if options.pad and options.model_hw is not None:
            box = letterbox_geometry(source_hw, options.model_hw)
            labels = box.pad(resize_labels(labels[None], box.scaled_hw)[0], IGNORE_INDEX)
        else:
            labels = resize_labels(labels[None], scaled_size_hw(options.size, source_hw))[0]
    return labels if options.crop_hw is None else center_crop(labels, options.crop_hw, fill=IGNORE_INDEX)


def crop_label_map(labels: torch.Tensor, boxes_xywh: torch.Tensor, options: PreprocessOptions) -> torch.Tensor:
    """Cut people out of a map as they are cut out of the image, with the nearest label.

    Args:
        labels: ``(H, W)``, int64.
        boxes_xywh: ``(N, 4)``.
        options: The same as for the image.

    Returns:
        ``(N, h, w)``, int64; 255 outside the map.
    """
    crops = crop_people(labels[None], boxes_xywh, options.person_hw(), mode="nearest", fill=IGNORE_INDEX)[:, 0]
    return crops if options.crop_hw is None else center_crop(crops, options.crop_hw, fill=IGNORE_INDEX)


def _pil_values(label_map: Image.Image, index: int) -> torch.Tensor:
    if len(label_map.getbands()) != 1:
        raise InputError(
            f"segmentation_maps[{index}] is a PIL image of mode {label_map.mode}; expected one channel of class ids."
        )
    decode_pil(label_map)
    values = np.array(displayed_pil(label_map))
    return torch.from_numpy(values.astype(values.dtype.newbyteorder("="), copy=False))


def _single_channel(values: torch.Tensor, index: int) -> torch.Tensor:
    if values.ndim == 3 and 1 in (values.shape[0], values.shape[-1]):
        return values.squeeze(0 if values.shape[0] == 1 else -1)
    if values.ndim != 2:
        raise InputError(f"segmentation_maps[{index}] has shape {tuple(values.shape)}; expected (height, width).")
    return values


def _whole_numbers(values: torch.Tensor, index: int) -> torch.Tensor:
    labels = values.to(torch.int64)
    if values.is_floating_point() and not torch.equal(labels.to(values.dtype), values):
        raise InputError(f"segmentation_maps[{index}] has fractions or values that are not finite; expected class ids.")
    return labels
