"""Person boxes: validation, formats, and the crop window that a box asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.types import BoxesLike

__all__ = [
    "CROP_PADDING",
    "as_boxes",
    "as_boxes_per_image",
    "clip_boxes",
    "expand_to_aspect",
    "xywh_to_xyxy",
    "xyxy_to_xywh",
]

CROP_PADDING = 1.25
"""Factor by which a box grows before it is cropped (the published models were trained with it)."""

MAX_COORDINATE = 1e7
"""Largest magnitude of a box's numbers in pixels: beyond it float32 has less than a pixel, and products overflow."""

_FORMAT = "(x_min, y_min, width, height) in absolute pixels"


def as_boxes(boxes: BoxesLike, *, image_index: int | None = None) -> Tensor:
    """Turn the boxes of one image into a tensor, and refuse what is not a box.

    Convention: COCO ``(x_min, y_min, width, height)``, absolute pixels.

    Args:
        boxes: ``(N, 4)`` numbers as nested lists or tuples, a numpy array, a tensor, or a list of any of these.
            ``[]``, ``[[]]`` and arrays of shape ``(0,)`` or ``(0, 4)`` mean that nobody is there.
        image_index: Position of the image in its batch, named in error messages.

    Returns:
        Tensor ``(N, 4)``, float32; on the device of ``boxes`` if that was a tensor, else on the CPU.

    Raises:
        InputError: A box does not have 4 finite numbers of magnitude up to 1e7, its width or height is not above zero,
            or the tensor has no values to read (sparse, meta).
    """
    place = "" if image_index is None else f" of image {image_index}"
    if isinstance(boxes, str) or not isinstance(boxes, (Tensor, np.ndarray, Sequence)):
        raise InputError(f"Boxes{place} are {boxes!r}; expected a list or array of {_FORMAT}, or [] for nobody.")
    if isinstance(boxes, np.ndarray) and boxes.dtype != object:
        boxes = _from_numpy(boxes, place)
    tensor = boxes if isinstance(boxes, Tensor) else _stack_rows(boxes, place)
    if tensor.is_meta or tensor.layout != torch.strided:
        kind = "on the meta device" if tensor.is_meta else f"of layout {tensor.layout}"
        raise InputError(f"Boxes{place} are a tensor {kind}; expected a dense tensor with values: {_FORMAT}.")
    if tensor.numel() == 0 and tensor.shape[-1] in (0, 4):
        return tensor.new_zeros((0, 4), dtype=torch.float32)
    if tensor.ndim == 1:
        raise InputError(
            f"Boxes{place} are one flat box {tensor.tolist()}; expected a list of boxes. Wrap it: boxes=[[x, y, w, h]]."
        )
    if tensor.ndim != 2 or tensor.shape[1] != 4:
        raise InputError(f"Boxes{place} have shape {tuple(tensor.shape)}; expected (N, 4): {_FORMAT}.")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(f"Boxes{place} have dtype {tensor.dtype}; expected real numbers: {_FORMAT}.")
    tensor = tensor.detach().to(torch.float32)
    _require_valid(tensor, place)
    return tensor


def as_boxes_per_image(boxes: Any, num_images: int | None = None) -> list[Tensor]:
    """Turn the boxes of a batch into one tensor per image.

    Args:
        boxes: One entry per image, each as :func:`as_boxes` takes it; also an array or tensor of shape
            ``(images, persons, 4)``.
        num_images: Number of images that the boxes belong to; None takes as many as there are entries.

    Returns:
        One tensor per image ``(N_i, 4)``, float32, COCO ``(x_min, y_min, width, height)``.

    Raises:
        InputError: The number of entries is not the number of images, or a box is not valid.
    """
    listed = isinstance(boxes, (list, tuple)) or (isinstance(boxes, (Tensor, np.ndarray)) and boxes.ndim > 0)
    if not listed:
        raise InputError(f"Boxes are {type(boxes).__name__}; expected one list of boxes per image.")
    if num_images is not None and len(boxes) != num_images:
        raise InputError(
            f"Boxes for {len(boxes)} images were given with {num_images} images; expected one list of boxes per image, "
            "with [] for an image without people."
        )
    return [as_boxes(image_boxes, image_index=index) for index, image_boxes in enumerate(boxes)]


def xywh_to_xyxy(boxes: Tensor) -> Tensor:
    """Convert ``(x_min, y_min, width, height)`` to ``(x_min, y_min, x_max, y_max)``.

    Args:
        boxes: Tensor ``(..., 4)``, any floating dtype.

    Returns:
        Tensor ``(..., 4)`` of the same dtype; ``x_max = x_min + width``, without a minus one.
    """
    return torch.cat([boxes[..., :2], boxes[..., :2] + boxes[..., 2:]], dim=-1)


def xyxy_to_xywh(boxes: Tensor) -> Tensor:
    """Convert ``(x_min, y_min, x_max, y_max)`` to ``(x_min, y_min, width, height)``.

    Args:
        boxes: Tensor ``(..., 4)``, any floating dtype.

    Returns:
        Tensor ``(..., 4)`` of the same dtype.
    """
    return torch.cat([boxes[..., :2], boxes[..., 2:] - boxes[..., :2]], dim=-1)


def clip_boxes(boxes_xyxy: Tensor, size_hw: tuple[int, int]) -> Tensor:
    """Move the corners that lie outside an image onto its edge.

    Args:
        boxes_xyxy: Tensor ``(..., 4)``, ``(x_min, y_min, x_max, y_max)`` in pixels.
        size_hw: Height and width of the image.

    Returns:
        Tensor ``(..., 4)`` with x in [0, width] and y in [0, height]. A box wholly outside becomes empty.
    """
    height, width = size_hw
    limits = boxes_xyxy.new_tensor([width, height, width, height])
    return torch.minimum(boxes_xyxy.clamp(min=0), limits)


def expand_to_aspect(boxes_xywh: Tensor, aspect_wh: float, padding: float = CROP_PADDING) -> tuple[Tensor, Tensor]:
    """Give the crop window of each box: padded, then its short side enlarged to an aspect.

    Convention: pixel centres at integers; the centre of a box is ``x_min + width / 2`` (no half-pixel shift).

    Args:
        boxes_xywh: Tensor ``(..., 4)``, COCO ``(x_min, y_min, width, height)``.
        aspect_wh: Width divided by height of the window, 0.75 for the published models.
        padding: Factor on both sides before the aspect is applied.

    Returns:
        Centres ``(..., 2)`` as (x, y) and sizes ``(..., 2)`` as (width, height), in pixels.

    Raises:
        InputError: The aspect or the padding is not a finite number above zero.
    """
    for name, value in (("aspect_wh", aspect_wh), ("padding", padding)):
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value}; expected a finite number above zero.")
    centres = boxes_xywh[..., :2] + 0.5 * boxes_xywh[..., 2:]
    width, height = (padding * boxes_xywh[..., 2:]).unbind(-1)
    sizes = torch.stack([torch.maximum(width, height * aspect_wh), torch.maximum(height, width / aspect_wh)], dim=-1)
    return centres, sizes


def _from_numpy(boxes: np.ndarray[Any, Any], place: str) -> Tensor:
    if boxes.dtype.kind not in "fiu":
        raise InputError(f"Boxes{place} have dtype {boxes.dtype}; expected real numbers: {_FORMAT}.")
    return torch.from_numpy(np.array(boxes, dtype=np.float64))


def _stack_rows(boxes: Sequence[Any] | np.ndarray[Any, Any], place: str) -> Tensor:
    """Stack boxes given one by one; a single empty box stands for nobody."""
    if len(boxes) == 1 and isinstance(boxes[0], (Sequence, np.ndarray)) and len(boxes[0]) == 0:
        return torch.zeros((0, 4))
    if len(boxes) and all(isinstance(box, Tensor) and box.shape == (4,) for box in boxes):
        return torch.stack(list(boxes))
    rows = []
    for index, box in enumerate(boxes):
        try:
            rows.append(_numbers(box))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"Box {index}{place} is {box!r}; expected 4 numbers: {_FORMAT}.") from error
        if isinstance(rows[-1], list) and len(rows[-1]) != 4:
            raise InputError(f"Box {index}{place} has {len(rows[-1])} numbers; expected 4: {_FORMAT}.")
    if len({type(row) for row in rows}) > 1:
        raise InputError(f"Boxes{place} mix single numbers with boxes; expected a list of {_FORMAT}.")
    return torch.tensor(rows, dtype=torch.float64)


def _numbers(box: Any) -> list[float] | float:
    """Read a box, or a lone number where the caller forgot the outer list."""
    if isinstance(box, (str, bytes)):
        raise TypeError("text is not a box")
    if isinstance(box, (Tensor, np.ndarray)):
        box = box.tolist()
    if isinstance(box, Sequence):
        if any(isinstance(value, (str, bytes, bool, np.bool_)) or _is_bool_tensor(value) for value in box):
            raise TypeError("text and booleans are no numbers")
        return [float(value) for value in box]
    return float(box)


def _is_bool_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.bool


def _require_valid(boxes: Tensor, place: str) -> None:
    finite = boxes.isfinite().all(dim=1)
    near = boxes.abs().amax(dim=1) <= MAX_COORDINATE
    valid = finite & near & (boxes[:, 2:] > 0).all(dim=1)
    if bool(valid.all()):
        return
    index = int((~valid).nonzero()[0])
    numbers = [round(value, 3) for value in boxes[index].tolist()]
    if not bool(finite[index]):
        raise InputError(f"Box {index}{place} is {numbers}, which is not finite; expected {_FORMAT}.")
    if not bool(near[index]):
        raise InputError(f"Box {index}{place} is {numbers}, beyond {MAX_COORDINATE:.0e} pixels; expected {_FORMAT}.")
    raise InputError(
        f"Box {index}{place} is {numbers}, whose width or height is not above zero; expected {_FORMAT}. "
        "Convert corner boxes with sapiens2.geometry.xyxy_to_xywh."
    )
