"""Losses of albedo, the colour of surfaces without light and shade.

Which pixels count: those where the target is finite, and where ``mask`` (if given) is True.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.losses.gradients import squared_gradient_errors
from sapiens2.losses.inputs import check_unit_range, paired_maps
from sapiens2.losses.masking import masked_mean, pixel_mask, zero_outside
from sapiens2.losses.terms import LossTerms

__all__ = ["albedo_recipe_loss", "chromaticity_loss", "l1_albedo_loss", "squared_gradient_albedo_loss"]

_BLACK = 1e-3  # R + G + B below this has no chromaticity: less than one step of an 8-bit picture


def l1_albedo_loss(albedos: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean absolute error per colour component.

    Args:
        albedos: ``(B, 3, H, W)``, the head's output, not clamped.
        targets: ``(B, 3, H, W)``, sRGB in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a target that counts lies outside [0, 1].
    """
    albedos, targets, valid = _prepared(albedos, targets, mask)
    return masked_mean((albedos - targets).abs(), valid)


def squared_gradient_albedo_loss(albedos: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean squared error of finite differences: half the horizontal plus half the vertical one.

    Args:
        albedos: ``(B, 3, H, W)``, the head's output, not clamped.
        targets: ``(B, 3, H, W)``, sRGB in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool. A difference counts when both of its pixels do.

    Returns:
        Scalar; 0, and differentiable, when no difference counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a target that counts lies outside [0, 1].
    """
    horizontal, vertical = squared_gradient_errors(*_prepared(albedos, targets, mask))
    return (horizontal + vertical) / 2


def chromaticity_loss(albedos: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean absolute error of the chromaticity ``RGB / (R + G + B)``, which brightness does not change.

    Predictions are clamped to [0, 1] first. Alone, that would leave those outside without a gradient, as in the
    published loss; so their distance from the range is added to the error. Black has no chromaticity, so pixels with
    a black target do not count.

    Args:
        albedos: ``(B, 3, H, W)``, the head's output, not clamped.
        targets: ``(B, 3, H, W)``, sRGB in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a target that counts lies outside [0, 1].
    """
    albedos, targets, valid = _prepared(albedos, targets, mask)
    coloured = valid & (targets.sum(dim=1, keepdim=True) >= _BLACK)
    outside = (albedos < 0) | (albedos > 1)
    in_range = torch.where(outside, albedos.detach().clamp(0, 1), albedos)  # black keeps the gradient clamp takes
    errors = (_chromaticities(in_range) - _chromaticities(targets)).abs()
    return masked_mean(errors + (albedos - in_range).abs(), coloured)


def albedo_recipe_loss(
    albedos: Tensor,
    targets: Tensor,
    mask: Tensor | None = None,
    *,
    l1_weight: float = 2.0,
    squared_gradient_weight: float = 2.0,
    chromaticity_weight: float = 1.0,
) -> LossTerms:
    """The terms that the published albedo models were trained with, under their published weights.

    The published training divided sums over the three components by the number of pixels, so that all its terms are
    three times as large as these means; their balance is the same.

    Args:
        albedos: ``(B, 3, H, W)``, the head's output, not clamped.
        targets: ``(B, 3, H, W)``, sRGB in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        l1_weight: Weight of the term ``"l1"``; 0 leaves it out, here and below.
        squared_gradient_weight: Weight of the term ``"squared_gradient"``.
        chromaticity_weight: Weight of the term ``"chromaticity"``.

    Returns:
        The terms ``"l1"``, ``"squared_gradient"`` and ``"chromaticity"``.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, a target that counts lies outside [0, 1], or a weight
            is negative.
    """
    return LossTerms.collect(
        {
            "l1": (l1_weight, lambda: l1_albedo_loss(albedos, targets, mask)),
            "squared_gradient": (
                squared_gradient_weight,
                lambda: squared_gradient_albedo_loss(albedos, targets, mask),
            ),
            "chromaticity": (chromaticity_weight, lambda: chromaticity_loss(albedos, targets, mask)),
        }
    )


def _prepared(albedos: Tensor, targets: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return both maps, 0 where a pixel does not count, and the pixels that do."""
    albedos, targets = paired_maps(albedos, targets, channels=3, names=("albedos", "targets"))
    valid = torch.isfinite(targets).all(dim=1, keepdim=True) & pixel_mask(mask, targets)
    check_unit_range(targets, valid, "albedo targets")
    return zero_outside(albedos, valid), zero_outside(targets, valid), valid


def _chromaticities(colours: Tensor) -> Tensor:
    # The floor bounds the gradient of dark predictions; it passes through the numerator, so it is never lost.
    return colours / colours.sum(dim=1, keepdim=True).clamp_min(_BLACK)
