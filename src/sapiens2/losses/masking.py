"""Means over the pixels that count.

A pixel that does not count must have no influence at all: not on the value, not on the gradient, not through a NaN.
A product with a 0/1 mask fails there (0 × NaN is NaN), so values are selected, never multiplied; and they are
selected *before* any formula whose derivative may be infinite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.errors import InputError

__all__ = ["masked_mean", "masked_mean_per_sample", "mean_over_present", "pixel_mask", "zero_outside"]


def pixel_mask(mask: Tensor | None, like: Tensor) -> Tensor:
    """Bring a mask of pixels to ``(B, 1, H, W)``.

    Args:
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts; None when all do.
        like: The ``(B, C, H, W)`` map that it belongs to.

    Returns:
        ``(B, 1, H, W)`` bool on the device of ``like``.

    Raises:
        InputError: The mask is not bool (0/1 and 0/255 pictures, or soft masks, would be ambiguous) or does not fit.
    """
    batch, _, height, width = like.shape
    if mask is None:
        return torch.ones((batch, 1, height, width), dtype=torch.bool, device=like.device)
    if mask.dtype != torch.bool:
        raise InputError(f"mask must be a bool tensor, got {mask.dtype}. Pass a comparison, such as mask > 0.")
    if mask.shape not in {(batch, height, width), (batch, 1, height, width)}:
        raise InputError(
            f"mask has shape {tuple(mask.shape)}, which does not fit predictions of shape {tuple(like.shape)}. "
            f"Expected {(batch, height, width)} or {(batch, 1, height, width)}."
        )
    return mask.reshape(batch, 1, height, width)


def zero_outside(values: Tensor, mask: Tensor) -> Tensor:
    """Replace what the mask excludes by zeros that carry no gradient.

    Args:
        values: ``(B, C, H, W)``, possibly NaN or infinite where the mask is False.
        mask: ``(B, 1, H, W)`` bool.

    Returns:
        ``(B, C, H, W)``.
    """
    return torch.where(mask, values, torch.zeros_like(values))


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Average over the channels of all pixels that count, pooled over the batch.

    Args:
        values: ``(B, C, H, W)``.
        mask: ``(B, 1, H, W)`` bool.

    Returns:
        Scalar. When no pixel counts it is 0, and still differentiable, so that a batch without labels can go
        through ``backward``.
    """
    count = mask.sum() * values.shape[1]
    return zero_outside(values, mask).sum() / count.clamp(min=1)


def masked_mean_per_sample(values: Tensor, mask: Tensor) -> Tensor:
    """Average each channel of each sample over the pixels that count.

    Args:
        values: ``(B, C, H, W)``.
        mask: ``(B, 1, H, W)`` bool.

    Returns:
        ``(B, C, 1, 1)``; 0 in samples where no pixel counts.
    """
    count = mask.sum(dim=(2, 3), keepdim=True)
    return zero_outside(values, mask).sum(dim=(2, 3), keepdim=True) / count.clamp(min=1)


def mean_over_present(values: Tensor, present: Tensor) -> Tensor:
    """Average one value per sample over the samples that have one.

    Args:
        values: ``(B,)``.
        present: ``(B,)`` bool.

    Returns:
        Scalar; 0 and differentiable when no sample has a value.
    """
    return torch.where(present, values, torch.zeros_like(values)).sum() / present.sum().clamp(min=1)
