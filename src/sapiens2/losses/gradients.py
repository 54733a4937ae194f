"""Finite differences of maps, and the loss that compares them."""

from __future__ import annotations

from torch import Tensor

from sapiens2.losses.masking import masked_mean, zero_outside

__all__ = ["forward_differences", "pair_masks", "squared_gradient_errors"]


def forward_differences(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Subtract each pixel from its right and from its lower neighbour.

    Args:
        maps: ``(B, C, H, W)``.

    Returns:
        Horizontal ``(B, C, H, W - 1)`` and vertical ``(B, C, H - 1, W)`` differences.

    Convention: x right, y down; both differences are positive where the map grows along the axis.
    """
    return maps[..., :, 1:] - maps[..., :, :-1], maps[..., 1:, :] - maps[..., :-1, :]


def pair_masks(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Tell which of the :func:`forward_differences` have two pixels that count.

    Args:
        mask: ``(B, 1, H, W)`` bool.

    Returns:
        ``(B, 1, H, W - 1)`` and ``(B, 1, H - 1, W)`` bool.
    """
    return mask[..., :, 1:] & mask[..., :, :-1], mask[..., 1:, :] & mask[..., :-1, :]


def squared_gradient_errors(predictions: Tensor, targets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Compare the horizontal and the vertical finite differences of two maps, squared.

    Args:
        predictions: ``(B, C, H, W)``.
        targets: ``(B, C, H, W)``.
        mask: ``(B, 1, H, W)`` bool; a difference counts when both of its pixels do.

    Returns:
        Mean squared error of the horizontal differences, and of the vertical ones: two scalars, 0 for maps that are
        one pixel wide or high.
    """
    # The difference of gradients is the gradient of the difference; zeroing that first keeps NaN out.
    error_x, error_y = forward_differences(zero_outside(predictions - targets, mask))
    mask_x, mask_y = pair_masks(mask)
    return masked_mean(error_x.square(), mask_x), masked_mean(error_y.square(), mask_y)
