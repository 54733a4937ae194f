"""Losses of mattes: the opacity of the person, and the colours of the person premultiplied by it.

Convention: ``image = foreground + (1 − alpha) · background``, with a premultiplied foreground. Labels are one tensor
of four channels in the order of the head's output: premultiplied R, G, B, then alpha.

Which pixels count: those where the labels are finite, and where ``mask`` (if given) is True.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.inputs import check_feature_map, check_unit_range, paired_maps
from sapiens2.losses.masking import masked_mean, pixel_mask, zero_outside
from sapiens2.losses.terms import LossTerms

__all__ = [
    "alpha_l1_loss",
    "composition_loss",
    "foreground_l1_loss",
    "laplacian_pyramid_loss",
    "matting_recipe_loss",
]


def alpha_l1_loss(alphas: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean absolute error of the opacity.

    Args:
        alphas: ``(B, 1, H, W)`` in [0, 1].
        targets: ``(B, 1, H, W)`` in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a target that counts lies outside [0, 1].

    Source: Xu et al., Deep Image Matting, CVPR 2017 (the alpha-prediction loss, without its smoothing at 0).
    """
    errors, valid = _errors(alphas, targets, mask, channels=1, names=("alphas", "alpha targets"))
    return masked_mean(errors.abs(), valid)


def foreground_l1_loss(foregrounds: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean absolute error per component of the premultiplied foreground, which is 0 outside of people.

    Args:
        foregrounds: ``(B, 3, H, W)`` in [0, 1], premultiplied.
        targets: ``(B, 3, H, W)`` in [0, 1], premultiplied.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a target that counts lies outside [0, 1].
    """
    errors, valid = _errors(foregrounds, targets, mask, channels=3, names=("foregrounds", "foreground targets"))
    return masked_mean(errors.abs(), valid)


def laplacian_pyramid_loss(
    alphas: Tensor, targets: Tensor, mask: Tensor | None = None, *, num_levels: int = 5
) -> Tensor:
    """Mean absolute error of the bands of a Laplacian pyramid, coarse bands weighing more.

    ``Σ_s 2^s · mean|L_s(α̂ − α)| / num_levels`` over the bands s = 0 (finest), 1, ... Each band is a map minus its
    reduced and expanded self, with the 5-tap binomial filter and repeated borders; the last low-pass map is left
    out, so the loss does not see a constant offset. A pixel that does not count has error 0, and a coarse pixel
    counts when one below it does.

    Args:
        alphas: ``(B, C, H, W)``, of any size.
        targets: ``(B, C, H, W)`` in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        num_levels: How many bands, >= 1.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, a target that counts lies outside [0, 1], or
            ``num_levels`` is below 1.

    Source: Hou and Liu, Context-Aware Image Matting for Simultaneous Foreground and Alpha Estimation, ICCV 2019
        (bands and factors); Lin et al., Robust High-Resolution Video Matting with Temporal Guidance, WACV 2022 (the
        division by their number); Burt and Adelson, The Laplacian Pyramid as a Compact Image Code, 1983 (filter).
    """
    if num_levels < 1:
        raise InputError(f"num_levels must be at least 1, got {num_levels}.")
    # The pyramid is linear: that of the error is the error of the pyramids.
    maps, valid = _errors(alphas, targets, mask, channels=None, names=("alphas", "alpha targets"))
    losses = []
    for level in range(num_levels):
        reduced = _reduced(maps)  # (B, C, ⌈H / 2⌉, ⌈W / 2⌉)
        bands = maps - _expanded(reduced, maps.shape[-2:])
        losses.append(2**level * masked_mean(bands.abs(), valid))
        maps = reduced
        valid = F.max_pool2d(valid.to(maps.dtype), kernel_size=2, ceil_mode=True) > 0
    return torch.stack(losses).mean()


def composition_loss(
    alphas: Tensor, foregrounds: Tensor, labels: Tensor, backgrounds: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Mean absolute error per component of the person placed on a background.

    The predicted and the labelled ``foreground + (1 − alpha) · background`` are compared, so any background serves:
    the one of the photograph, or a random one.

    Args:
        alphas: ``(B, 1, H, W)`` in [0, 1].
        foregrounds: ``(B, 3, H, W)`` in [0, 1], premultiplied.
        labels: ``(B, 4, H, W)`` in [0, 1]: premultiplied RGB, then alpha.
        backgrounds: ``(B, 3, H, W)`` in [0, 1].
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a label or background that counts lies outside
            [0, 1].

    Source: Xu et al., Deep Image Matting, CVPR 2017 (the compositional loss; there, with unpremultiplied colours).
    """
    target_foregrounds, target_alphas = _split_labels(labels)
    alpha_errors, alpha_valid = _errors(alphas, target_alphas, mask, channels=1, names=("alphas", "alpha targets"))
    names = ("foregrounds", "foreground targets")
    colour_errors, valid = _errors(foregrounds, target_foregrounds, alpha_valid, channels=3, names=names)
    _, backgrounds = paired_maps(foregrounds, backgrounds, channels=3, names=("foregrounds", "backgrounds"))
    valid = valid & torch.isfinite(backgrounds).all(dim=1, keepdim=True)
    check_unit_range(backgrounds, valid, "backgrounds")
    # What the two composites share cancels: F̂ − F + (1 − α̂) B − (1 − α) B.
    errors = colour_errors - alpha_errors * zero_outside(backgrounds, valid)
    return masked_mean(errors.abs(), valid)


def matting_recipe_loss(
    alphas: Tensor,
    foregrounds: Tensor,
    labels: Tensor,
    *,
    backgrounds: Tensor | None = None,
    mask: Tensor | None = None,
    alpha_l1_weight: float = 1.0,
    laplacian_pyramid_weight: float = 1.0,
    foreground_l1_weight: float = 1.0,
    composition_weight: float = 1.0,
) -> LossTerms:
    """The sum of the matting losses.

    No recipe of the published matting model is known; these terms and weights are this project's choice.

    Args:
        alphas: ``(B, 1, H, W)`` in [0, 1].
        foregrounds: ``(B, 3, H, W)`` in [0, 1], premultiplied.
        labels: ``(B, 4, H, W)`` in [0, 1]: premultiplied RGB, then alpha.
        backgrounds: ``(B, 3, H, W)`` in [0, 1]. Without them the term ``"composition"`` is left out.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        alpha_l1_weight: Weight of the term ``"alpha_l1"``; 0 leaves it out, here and below.
        laplacian_pyramid_weight: Weight of the term ``"laplacian_pyramid"``.
        foreground_l1_weight: Weight of the term ``"foreground_l1"``.
        composition_weight: Weight of the term ``"composition"``.

    Returns:
        The terms above.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, a label or background that counts lies outside
            [0, 1], or a weight is negative.
    """
    target_foregrounds, target_alphas = _split_labels(labels)
    candidates = {
        "alpha_l1": (alpha_l1_weight, lambda: alpha_l1_loss(alphas, target_alphas, mask)),
        "laplacian_pyramid": (
            laplacian_pyramid_weight,
            lambda: laplacian_pyramid_loss(alphas, target_alphas, mask),
        ),
        "foreground_l1": (
            foreground_l1_weight,
            lambda: foreground_l1_loss(foregrounds, target_foregrounds, mask),
        ),
    }
    if backgrounds is not None:
        candidates["composition"] = (
            composition_weight,
            lambda: composition_loss(alphas, foregrounds, labels, backgrounds, mask),
        )
    return LossTerms.collect(candidates)


def _split_labels(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the premultiplied foreground ``(B, 3, H, W)`` and the opacity ``(B, 1, H, W)``."""
    check_feature_map(labels, "labels", channels=4)
    return labels[:, :3], labels[:, 3:]


def _errors(
    predictions: Tensor, targets: Tensor, mask: Tensor | None, *, channels: int | None, names: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Return the predictions minus the targets, 0 where a pixel does not count, and the pixels that do."""
    predictions, targets = paired_maps(predictions, targets, channels=channels, names=names)
    valid = torch.isfinite(targets).all(dim=1, keepdim=True) & pixel_mask(mask, targets)
    check_unit_range(targets, valid, names[1])
    return zero_outside(predictions - targets, valid), valid


def _reduced(maps: Tensor) -> Tensor:
    """Smooth and keep every second pixel of every second row."""
    return _halved(_halved(maps).mT).mT


def _expanded(maps: Tensor, size_hw: torch.Size) -> Tensor:
    """Undo the subsampling of :func:`_reduced` by interpolation with the same filter."""
    height, width = size_hw
    return _doubled(_doubled(maps, width).mT, height).mT


def _halved(maps: Tensor) -> Tensor:
    size = maps.shape[-1]
    padded = _with_repeated_border(maps, 2)
    taps = [weight / 16 * padded[..., k : k + size : 2] for k, weight in enumerate((1, 4, 6, 4, 1))]
    return torch.stack(taps).sum(dim=0)


def _doubled(maps: Tensor, size: int) -> Tensor:
    padded = _with_repeated_border(maps, 1)
    left, right = padded[..., :-2], padded[..., 2:]
    even, odd = (left + 6 * maps + right) / 8, (maps + right) / 2
    return torch.stack([even, odd], dim=-1).flatten(-2)[..., :size]


def _with_repeated_border(maps: Tensor, count: int) -> Tensor:
    """Repeat the first and the last column, by slices: the backward of ``F.pad`` is not deterministic on CUDA."""
    return torch.cat([maps[..., :1]] * count + [maps] + [maps[..., -1:]] * count, dim=-1)
