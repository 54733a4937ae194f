"""Losses of surface normals.

Which pixels count: those where the target is a direction, and where ``mask`` (if given) is True. A target is no
direction when a component is NaN or infinite, when all three are 0, or when one is at or below -1000, the mark that
the published data preparation leaves outside of people.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.losses.directions import cosine_distances, unit_vectors
from sapiens2.losses.gradients import squared_gradient_errors
from sapiens2.losses.inputs import paired_maps
from sapiens2.losses.masking import masked_mean, pixel_mask, zero_outside
from sapiens2.losses.terms import LossTerms

__all__ = [
    "cosine_normal_loss",
    "l1_normal_loss",
    "normal_recipe_loss",
    "squared_gradient_normal_loss",
    "valid_normals",
]

_INVALID_MARK = -1000.0
_MIN_TARGET_LENGTH = 1e-12


def valid_normals(targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Tell which target normals are directions.

    Args:
        targets: ``(B, 3, H, W)``.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool; the result is False where it is.

    Returns:
        ``(B, 1, H, W)`` bool, by the rule of this module.

    Raises:
        InputError: The mask is not bool or does not fit.
    """
    usable = torch.isfinite(targets) & (targets > _INVALID_MARK)
    directed = usable.all(dim=1, keepdim=True) & (targets != 0).any(dim=1, keepdim=True)
    return directed & pixel_mask(mask, targets)


def cosine_normal_loss(normals: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean of 1 − cos of the angle between predicted and target normals.

    Args:
        normals: ``(B, 3, H, W)``, the head's output, of any length.
        targets: ``(B, 3, H, W)``, of any length.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar in [0, 2]; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, or the mask is not bool.
    """
    normals, targets, valid = _prepared(normals, targets, mask)
    distances = cosine_distances(unit_vectors(normals), unit_vectors(targets, min_length=_MIN_TARGET_LENGTH))
    return masked_mean(distances, valid)


def l1_normal_loss(normals: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean absolute error per component, of the normals as they are: it teaches the head their length.

    Args:
        normals: ``(B, 3, H, W)``, the head's output.
        targets: ``(B, 3, H, W)``, unit length.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, or the mask is not bool.
    """
    normals, targets, valid = _prepared(normals, targets, mask)
    return masked_mean((normals - targets).abs(), valid)


def squared_gradient_normal_loss(normals: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean squared error per component of the horizontal finite differences, plus that of the vertical ones.

    Args:
        normals: ``(B, 3, H, W)``, the head's output.
        targets: ``(B, 3, H, W)``, unit length.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool. A difference counts when both of its pixels do.

    Returns:
        Scalar; 0, and differentiable, when no difference counts.

    Raises:
        InputError: The shapes do not fit, or the mask is not bool.
    """
    horizontal, vertical = squared_gradient_errors(*_prepared(normals, targets, mask))
    return horizontal + vertical


def normal_recipe_loss(
    normals: Tensor,
    targets: Tensor,
    mask: Tensor | None = None,
    *,
    cosine_weight: float = 10.0,
    l1_weight: float = 1.0,
    squared_gradient_weight: float = 10.0,
) -> LossTerms:
    """The terms that the published normal models were trained with, under their published weights.

    The published training divided sums over the three components by the number of pixels; the terms here are means.
    Weights 10, 3 and 30 restore its balance.

    Args:
        normals: ``(B, 3, H, W)``, the head's output.
        targets: ``(B, 3, H, W)``, unit length.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        cosine_weight: Weight of the term ``"cosine"``; 0 leaves it out, here and below.
        l1_weight: Weight of the term ``"l1"``.
        squared_gradient_weight: Weight of the term ``"squared_gradient"``.

    Returns:
        The terms ``"cosine"``, ``"l1"`` and ``"squared_gradient"``.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a weight is negative.
    """
    return LossTerms.collect(
        {
            "cosine": (cosine_weight, lambda: cosine_normal_loss(normals, targets, mask)),
            "l1": (l1_weight, lambda: l1_normal_loss(normals, targets, mask)),
            "squared_gradient": (
                squared_gradient_weight,
                lambda: squared_gradient_normal_loss(normals, targets, mask),
            ),
        }
    )


def _prepared(normals: Tensor, targets: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return both maps, 0 where a pixel does not count, and the pixels that do."""
    normals, targets = paired_maps(normals, targets, channels=3, names=("normals", "targets"))
    valid = valid_normals(targets, mask)
    return zero_outside(normals, valid), zero_outside(targets, valid), valid
