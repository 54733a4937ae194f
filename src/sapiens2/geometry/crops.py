"""Crops of people: the UDP affine between an image and the input of the network, and its sampling.

Convention: pixel centres at integers. Crop column ``i`` of ``w`` lies at image ``x = left + i * width / (w - 1)``,
where ``left`` and ``width`` describe the window that :func:`~sapiens2.geometry.boxes.expand_to_aspect` gives.
Rows alike. The first and the last column lie on the two edges of the window: that is the unbiased ``size - 1`` scaling.

Source: Huang et al., "The Devil is in the Details: Delving into Unbiased Data Processing for Human Pose Estimation",
CVPR 2020, section 3.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.geometry.boxes import CROP_PADDING, as_boxes, expand_to_aspect
from sapiens2.types import SizeHW

__all__ = ["CropMode", "crop_people", "crop_to_image", "image_to_crop"]

CropMode: TypeAlias = Literal["auto", "nearest", "bilinear", "bicubic"]

_MODES: tuple[CropMode, ...] = ("auto", "nearest", "bilinear", "bicubic")

_CUBIC_REACH = 2  # pixels on each side of a sample that the widest filter reads


def crop_people(
    image: Tensor,
    boxes_xywh: Tensor,
    size_hw: SizeHW,
    *,
    padding: float = CROP_PADDING,
    mode: CropMode = "auto",
    fill: float = 0.0,
) -> Tensor:
    """Cut the padded window of each box out of an image and bring it to one size.

    Convention: see the module; outside the image lies ``fill``, which interpolation mixes in at the edge.

    Args:
        image: Tensor ``(C, H, W)``, uint8 or any other real dtype.
        boxes_xywh: Tensor ``(N, 4)``, COCO boxes in pixels of ``image``; they may reach out of it.
        size_hw: Height and width of the crops, each at least 2.
        padding: Factor by which boxes grow before the aspect of ``size_hw`` is applied.
        mode: ``"auto"`` takes, for each crop, bilinear if the window shrinks along either axis and bicubic
            (a = -0.75) otherwise. ``"nearest"`` is for label maps: halves round up, no new values appear.
        fill: Value of everything outside the image.

    Returns:
        Tensor ``(N, C, h, w)`` on the device of ``image``: float32 in the value range of ``image`` (bicubic may
        overshoot it), or the dtype of ``image`` for ``mode="nearest"``.

    Raises:
        InputError: The image is not ``(C, H, W)`` or is empty, a box is not valid, the size is below 2, or the mode is
            unknown.
    """
    if image.ndim != 3 or 0 in image.shape:
        raise InputError(
            f"The image has shape {tuple(image.shape)}; expected (channels, height, width), none of them 0."
        )
    if mode not in _MODES:
        raise InputError(f"The crop mode is {mode!r}; expected one of {', '.join(_MODES)}.")
    _require_two_pixels(size_hw)
    # Four numbers per box: exact on the CPU in double precision, whatever the device of the image.
    centres, sizes = expand_to_aspect(as_boxes(boxes_xywh).cpu().double(), size_hw[1] / size_hw[0], padding)
    windows = torch.cat([centres - 0.5 * sizes, sizes], dim=-1).tolist()  # (N, 4) left, top, width, height
    dtype = image.dtype if mode == "nearest" else torch.float32
    crops = torch.empty((len(windows), image.shape[0], *size_hw), dtype=dtype, device=image.device)
    for crop, (left, top, width, height) in zip(crops, windows, strict=True):
        columns = _sample_positions(left, width, size_hw[1])  # (w,)
        rows = _sample_positions(top, height, size_hw[0])  # (h,)
        if mode == "nearest":
            crop.copy_(_sample_nearest(image, rows, columns, fill))
        else:
            chosen = _filter_for(width, height, size_hw) if mode == "auto" else mode
            crop.copy_(_sample_smooth(image, rows, columns, chosen, fill))
    return crops


def crop_to_image(points: Tensor, boxes_xywh: Tensor, size_hw: SizeHW, padding: float = CROP_PADDING) -> Tensor:
    """Map points from crops to the image that the crops were cut from.

    Convention: see the module; (x, y) order.

    Args:
        points: Tensor ``(N, K, 2)`` in pixels of each crop.
        boxes_xywh: Tensor ``(N, 4)``, the boxes of the crops.
        size_hw: Height and width of the crops, each at least 2. A heatmap's own size works too: then ``points`` are
            in pixels of the heatmap.
        padding: Factor that the crops were made with.

    Returns:
        Tensor ``(N, K, 2)`` in pixels of the image, in the dtype of ``points``. NaN stays NaN.

    Raises:
        InputError: The number of boxes is not N, or the size is below 2.
    """
    origins, steps = _window_affine(points, boxes_xywh, size_hw, padding)
    return origins + points * steps


def image_to_crop(points: Tensor, boxes_xywh: Tensor, size_hw: SizeHW, padding: float = CROP_PADDING) -> Tensor:
    """Map points from an image to crops of it: the inverse of :func:`crop_to_image`.

    Args:
        points: Tensor ``(N, K, 2)`` in pixels of the image, one row of points for each box.
        boxes_xywh: Tensor ``(N, 4)``, the boxes of the crops.
        size_hw: Height and width of the crops, each at least 2.
        padding: Factor that the crops are made with.

    Returns:
        Tensor ``(N, K, 2)`` in pixels of each crop; outside ``[0, w - 1] × [0, h - 1]`` for points outside the crop.

    Raises:
        InputError: The number of boxes is not N, or the size is below 2.
    """
    origins, steps = _window_affine(points, boxes_xywh, size_hw, padding)
    return (points - origins) / steps


def _window_affine(points: Tensor, boxes_xywh: Tensor, size_hw: SizeHW, padding: float) -> tuple[Tensor, Tensor]:
    """Give the image position of each crop's first pixel and its pixel pitch, both ``(N, 1, 2)``."""
    _require_two_pixels(size_hw)
    if points.ndim != 3 or points.shape[-1] != 2 or len(points) != len(boxes_xywh):
        raise InputError(
            f"Points have shape {tuple(points.shape)} with {len(boxes_xywh)} boxes; expected (boxes, points, 2)."
        )
    height, width = size_hw
    centres, sizes = expand_to_aspect(boxes_xywh.to(points), width / height, padding)
    steps = sizes / sizes.new_tensor([width - 1, height - 1])
    return (centres - 0.5 * sizes)[:, None], steps[:, None]


def _require_two_pixels(size_hw: SizeHW) -> None:
    if min(size_hw) < 2:
        raise InputError(
            f"The crop size is {tuple(size_hw)}; height and width must be at least 2 for size - 1 scaling."
        )


def _filter_for(width: float, height: float, size_hw: SizeHW) -> CropMode:
    # Boxes are float32: a window meant to be cut 1:1 may come out larger by that much, which is no shrinking.
    rounding = 1e-6
    shrinks = min((size_hw[1] - 1) / width, (size_hw[0] - 1) / height) < 1 - rounding
    return "bilinear" if shrinks else "bicubic"


def _sample_positions(start: float, extent: float, count: int) -> Tensor:
    return start + torch.arange(count, dtype=torch.float64) * (extent / (count - 1))


def _source_range(positions: Tensor, length: int) -> tuple[int, int]:
    """Give the range of source pixels that the samples read; empty when the window misses the image."""
    first = math.floor(positions[0].item()) - _CUBIC_REACH
    last = math.floor(positions[-1].item()) + _CUBIC_REACH
    return max(first, 0), min(last + 1, length)


def _sample_smooth(image: Tensor, rows: Tensor, columns: Tensor, mode: CropMode, fill: float) -> Tensor:
    top, bottom = _source_range(rows, image.shape[1])
    left, right = _source_range(columns, image.shape[2])
    if top >= bottom or left >= right:
        return torch.full((image.shape[0], len(rows), len(columns)), fill, device=image.device)
    # Only the source region turns into floats. What lies outside is 0 for the sampler, hence the shift by `fill`.
    region = image[:, top:bottom, left:right].to(torch.float32, copy=True)
    if fill:
        region -= fill
    # Half-pixel form of the sampler's coordinates: it has no division by (size - 1), so 1-pixel images work.
    x = (2 * (columns - left) + 1) / (right - left) - 1
    y = (2 * (rows - top) + 1) / (bottom - top) - 1
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).to(region)  # (h, w, 2)
    crop = F.grid_sample(region[None], grid[None], mode=mode, padding_mode="zeros", align_corners=False)[0]
    return crop + fill if fill else crop


def _sample_nearest(image: Tensor, rows: Tensor, columns: Tensor, fill: float) -> Tensor:
    row = torch.floor(rows + 0.5).long().to(image.device)
    column = torch.floor(columns + 0.5).long().to(image.device)
    height, width = image.shape[1:]
    crop = image[:, row.clamp(0, height - 1)][:, :, column.clamp(0, width - 1)]
    outside = ((row < 0) | (row >= height))[:, None] | ((column < 0) | (column >= width))[None]  # (h, w)
    return crop.masked_fill(outside, fill)
