"""Checks that every loss makes on its tensors, and the precision that it computes in."""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.errors import InputError

__all__ = ["can_inspect_values", "check_feature_map", "check_unit_range", "paired_maps", "working_dtype"]

_UNIT_RANGE_SLACK = 1e-3  # rounding of half-precision labels


def working_dtype(predictions: Tensor) -> torch.dtype:
    """Return the dtype that a loss computes in: float64 for float64 predictions, otherwise float32.

    Half precision cannot hold the sum over an image, and squares of small errors vanish in it.
    """
    return torch.float64 if predictions.dtype == torch.float64 else torch.float32


def can_inspect_values() -> bool:
    """Tell whether values may decide an error: reading them would break a graph that is being captured."""
    return not torch.compiler.is_compiling()


def check_feature_map(tensor: Tensor, name: str, channels: int | None = None) -> None:
    """Check that a tensor is ``(batch, channels, height, width)``.

    Args:
        tensor: Any tensor.
        name: What the tensor is called in the error message.
        channels: The only number of channels that fits; None for any.

    Raises:
        InputError: The tensor has another number of dimensions or channels.
    """
    if tensor.ndim != 4 or (channels is not None and tensor.shape[1] != channels):
        expected = f"(batch, {'channels' if channels is None else channels}, height, width)"
        raise InputError(f"{name} must have shape {expected}, got {tuple(tensor.shape)}.")


def paired_maps(
    predictions: Tensor,
    targets: Tensor,
    *,
    channels: int | None = None,
    names: tuple[str, str] = ("predictions", "targets"),
) -> tuple[Tensor, Tensor]:
    """Check that two maps fit each other and bring both to the working dtype.

    Args:
        predictions: ``(B, C, H, W)``, any floating dtype.
        targets: ``(B, C, H, W)``, any dtype.
        channels: The only ``C`` that fits; None for any.
        names: What the two are called in error messages.

    Returns:
        Both maps in :func:`working_dtype` of the predictions.

    Raises:
        InputError: The shapes do not fit. Dense targets are never resized here: the right resampling depends on
            what they are, and only the caller knows it.
    """
    check_feature_map(predictions, names[0], channels)
    if predictions.shape != targets.shape:
        raise InputError(
            f"{names[0]} have shape {tuple(predictions.shape)} and {names[1]} have shape {tuple(targets.shape)}. "
            f"They must be equal: resize the {names[1]} before the loss."
        )
    dtype = working_dtype(predictions)
    return predictions.to(dtype), targets.to(dtype)


def check_unit_range(targets: Tensor, valid: Tensor, name: str) -> None:
    """Check that valid targets lie in [0, 1].

    Args:
        targets: ``(B, C, H, W)``.
        valid: ``(B, 1, H, W)`` bool; only these pixels are looked at.
        name: What the targets are called in the error message.

    Raises:
        InputError: A valid value lies outside, as it does in pictures that still range to 255.
    """
    if not can_inspect_values():
        return
    outside = ((targets < -_UNIT_RANGE_SLACK) | (targets > 1 + _UNIT_RANGE_SLACK)) & valid
    if outside.any():
        values = targets[outside]
        raise InputError(
            f"{name} must lie in [0, 1], got values from {values.min().item():g} to {values.max().item():g} outside "
            "of it. Divide 8-bit pictures by 255."
        )
