"""Checks of the arrays that metrics are fed with."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.masking import pixel_mask
from sapiens2.types import ArrayLike

__all__ = [
    "as_tensor",
    "batch_mask",
    "check_finite",
    "check_range",
    "label_batch",
    "paired_labels",
    "paired_maps",
    "real_batch",
]


def as_tensor(value: ArrayLike, name: str) -> Tensor:
    """A numpy array, tensor or nested sequence as a tensor without gradient.

    Args:
        value: A tensor stays on its device; everything else is copied to the CPU.
        name: What it is called in the error message.

    Raises:
        InputError: It does not hold numbers.
    """
    if isinstance(value, Tensor):
        tensor = value.detach()
        # MPS has no float64, in which all metrics sum.
        return tensor.cpu() if tensor.device.type == "mps" else tensor
    array = _numeric_array(value, name)
    # A copy: arrays may be read-only, byte-swapped or run backwards, none of which torch takes.
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def real_batch(value: ArrayLike, channels: int, name: str) -> Tensor:
    """A map or a batch of maps as ``(B, channels, H, W)`` float64.

    Args:
        value: ``(channels, H, W)`` or ``(B, channels, H, W)``; for one channel also ``(H, W)`` or ``(B, H, W)``.
        channels: Number of channels.
        name: What it is called in the error message.

    Raises:
        InputError: It does not hold numbers, or has another shape.
    """
    tensor = as_tensor(value, name)
    batch = _with_channel(tensor) if channels == 1 else tensor[None] if tensor.ndim == 3 else tensor
    if batch.ndim != 4 or batch.shape[1] != channels:
        single = "(H, W)" if channels == 1 else f"({channels}, H, W)"
        raise InputError(f"{name} must be {single} or (B, {channels}, H, W), got {tuple(tensor.shape)}")
    return batch.to(torch.float64)


def label_batch(value: ArrayLike, name: str) -> Tensor:
    """A map or a batch of class ids as ``(B, 1, H, W)`` int64.

    Args:
        value: ``(H, W)``, ``(B, H, W)`` or ``(B, 1, H, W)`` of any integer dtype.
        name: What it is called in the error message.

    Raises:
        InputError: It holds other than integers, or has another shape.
    """
    tensor = as_tensor(value, name)
    if tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex():
        raise InputError(f"{name} must hold class ids of an integer dtype, got {tensor.dtype}")
    batch = _with_channel(tensor)
    if batch.ndim != 4 or batch.shape[1] != 1:
        raise InputError(f"{name} must be (H, W), (B, H, W) or (B, 1, H, W), got {tuple(tensor.shape)}")
    return batch.to(torch.int64)


def batch_mask(mask: ArrayLike | None, like: Tensor, name: str = "mask") -> Tensor:
    """A mask as ``(B, 1, H, W)`` bool on the device of ``like``; all True when it is None.

    Args:
        mask: ``(H, W)`` for a batch of one, ``(B, H, W)`` or ``(B, 1, H, W)`` bool.
        like: The ``(B, C, H, W)`` map that it belongs to.
        name: What it is called in the error message.

    Raises:
        InputError: It is not bool, or does not fit.
    """
    if mask is None:
        return pixel_mask(None, like)
    tensor = as_tensor(mask, name).to(like.device)
    try:
        return pixel_mask(tensor[None] if tensor.ndim == 2 else tensor, like)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def paired_maps(
    prediction: ArrayLike, target: ArrayLike, mask: ArrayLike | None, channels: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Prediction and target as ``(B, channels, H, W)`` float64 and the mask as ``(B, 1, H, W)`` bool.

    All on the device of the prediction.

    Raises:
        InputError: Shapes that do not fit. Nothing is ever resized here: a letterboxed prediction that is stretched
            to its target would be measured at the wrong pixels.
    """
    predicted = real_batch(prediction, channels, "prediction")
    return _paired(predicted, real_batch(target, channels, "target"), mask)


def paired_labels(prediction: ArrayLike, target: ArrayLike, mask: ArrayLike | None) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted and true class ids as ``(B, 1, H, W)`` int64 and the mask as ``(B, 1, H, W)`` bool.

    Raises:
        InputError: Shapes that do not fit, or ids that are no integers.
    """
    return _paired(label_batch(prediction, "prediction"), label_batch(target, "target"), mask)


def check_finite(values: Tensor, valid: Tensor, name: str) -> None:
    """Refuse NaN and infinity at pixels that count.

    Args:
        values: ``(B, C, H, W)``.
        valid: ``(B, 1, H, W)`` bool.
        name: What the values are called in the error message.

    Raises:
        InputError: There are such values. They have no error that could be averaged, and leaving them out would
            reward them.
    """
    bad = ~torch.isfinite(values).all(dim=1, keepdim=True) & valid
    if number := int(bad.sum()):
        raise InputError(f"{name} is NaN or infinite at {number} of {int(valid.sum())} pixels that count")


def check_range(values: Tensor, valid: Tensor, name: str, low: float, high: float) -> None:
    """Refuse values out of ``[low, high]`` at pixels that count.

    Raises:
        InputError: There are such values, as in pictures that still range to 255.
    """
    outside = ((values < low) | (values > high)) & valid
    if outside.any():
        found = values[outside]
        raise InputError(
            f"{name} must lie in [{low:g}, {high:g}], got values from {found.min().item():g} to "
            f"{found.max().item():g}; divide 8-bit pictures by 255"
        )


def _numeric_array(value: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers, got dtype {array.dtype}")
    return array


def _with_channel(tensor: Tensor) -> Tensor:
    if tensor.ndim == 2:
        return tensor[None, None]
    return tensor[:, None] if tensor.ndim == 3 else tensor


def _paired(prediction: Tensor, target: Tensor, mask: ArrayLike | None) -> tuple[Tensor, Tensor, Tensor]:
    if prediction.shape != target.shape:
        raise InputError(
            f"prediction has shape {tuple(prediction.shape)} and target {tuple(target.shape)}; bring the prediction "
            "to the size of the target first, its padding removed"
        )
    return prediction, target.to(prediction.device), batch_mask(mask, prediction)
