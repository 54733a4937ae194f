"""Losses of heatmaps for keypoint estimation."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.inputs import can_inspect_values, check_feature_map, working_dtype
from sapiens2.losses.terms import LossTerms

__all__ = ["heatmap_mse_loss", "heatmap_ohkm_loss", "pose_recipe_loss"]

_REDUCTIONS = ("all", "visible")


def heatmap_mse_loss(heatmaps: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
    """Weighted mean squared error: ``Σ w (ĥ − h)² / Σ w`` over every pixel of every heatmap.

    Args:
        heatmaps: ``(N, K, h, w)``, one row per person; N may be 0.
        targets: ``(N, K, h, w)``, or with another height and width: they are then resampled to those of the
            heatmaps. With N = 0 any K does.
        weights: ``(N, K)``, ``(N, K, 1, 1)``, or any shape of four dimensions that broadcasts to the heatmaps (or to
            the targets before they are resampled); numbers >= 0, 0 for keypoints that are not visible. None weighs
            everything 1.

    Returns:
        Scalar; 0, and differentiable, when all weights are 0 or N is 0.

    Raises:
        InputError: The shapes do not fit, or a weight is negative or not finite.

    Convention: UDP. The first and the last pixel of a heatmap lie on the first and the last pixel of the crop, at
    any size, so targets are resampled bilinearly with aligned corners.
    """
    errors, weights = _weighted_squared_errors(heatmaps, targets, weights)
    return _ratio(errors.sum(), weights.sum())


def heatmap_ohkm_loss(heatmaps: Tensor, targets: Tensor, weights: Tensor | None = None, *, top_k: int = 8) -> Tensor:
    """Online hard keypoint mining: the mean squared error of each person's ``top_k`` worst keypoints.

    Args:
        heatmaps: ``(N, K, h, w)``.
        targets: As in :func:`heatmap_mse_loss`.
        weights: As in :func:`heatmap_mse_loss`. A keypoint without any weight is never among the worst, and does not
            count in the mean of a person with fewer than ``top_k`` others.
        top_k: Keypoints per person, from 1 to K.

    Returns:
        Scalar: the mean over the chosen keypoints of all people of ``mean(w (ĥ − h)²)`` over the heatmap; 0, and
        differentiable, when none can be chosen.

    Raises:
        InputError: The shapes do not fit, a weight is negative or not finite, or ``top_k`` is out of range.

    Source: Chen et al., Cascaded Pyramid Network for Multi-Person Pose Estimation, CVPR 2018.
    """
    errors, weights = _weighted_squared_errors(heatmaps, targets, weights)
    if not 1 <= top_k <= errors.shape[1]:
        raise InputError(f"top_k must be from 1 to the number of keypoints, {errors.shape[1]}; got {top_k}.")
    keypoint_errors = errors.mean(dim=(2, 3))  # (N, K)
    visible = (weights > 0).flatten(2).any(dim=2)  # (N, K)
    # Invisible keypoints sort last, behind visible ones whose error is exactly 0.
    chosen = keypoint_errors.detach().masked_fill(~visible, -1.0).topk(top_k, dim=1).indices  # (N, top_k)
    return _ratio(keypoint_errors.gather(1, chosen).sum(), visible.gather(1, chosen).sum())


def pose_recipe_loss(
    heatmaps: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    *,
    reduction: Literal["all", "visible"] = "all",
    mse_weight: float = 10.0,
) -> LossTerms:
    """The loss that the published pose models were trained with: ten times the weighted squared error.

    Args:
        heatmaps: ``(N, K, h, w)``.
        targets: As in :func:`heatmap_mse_loss`.
        weights: As in :func:`heatmap_mse_loss`.
        reduction: What the squared errors are divided by. ``"all"``, as published: the number of pixels of all
            heatmaps, so that people of whom little is visible weigh less, and keypoints that are not visible dilute
            the loss. ``"visible"``: the sum of the weights, as :func:`heatmap_mse_loss` does.
        mse_weight: Weight of the one term.

    Returns:
        One term, ``"mse"``.

    Raises:
        InputError: The shapes do not fit, a weight is negative or not finite, or the reduction is unknown.
    """
    if reduction not in _REDUCTIONS:
        raise InputError(f"reduction must be one of {_REDUCTIONS}, got {reduction!r}.")

    def mean_squared_error() -> Tensor:
        if reduction == "visible":
            return heatmap_mse_loss(heatmaps, targets, weights)
        errors, _ = _weighted_squared_errors(heatmaps, targets, weights)
        return errors.sum() / max(errors.numel(), 1)

    return LossTerms.collect({"mse": (mse_weight, mean_squared_error)})


def _weighted_squared_errors(heatmaps: Tensor, targets: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return ``w (ĥ − h)²``, exactly 0 where w is 0, and w, both ``(N, K, h, w)``."""
    check_feature_map(heatmaps, "heatmaps")
    check_feature_map(targets, "targets")
    if len(heatmaps) == len(targets) == 0:  # targets of nobody cannot know the number of keypoints
        nothing = heatmaps.to(working_dtype(heatmaps))
        return nothing, nothing.detach()
    if heatmaps.shape[:2] != targets.shape[:2]:
        raise InputError(
            f"heatmaps have shape {tuple(heatmaps.shape)} and targets have shape {tuple(targets.shape)}. "
            "The number of people and of keypoints must be equal; only height and width may differ."
        )
    dtype = working_dtype(heatmaps)
    if weights is None:
        weights = torch.ones((), dtype=dtype, device=heatmaps.device).expand(heatmaps.shape)
    else:
        weights = _expanded_weights(weights.to(dtype), heatmaps, targets)
    errors = heatmaps.to(dtype) - _resampled(targets.to(dtype), heatmaps)
    errors = torch.where(weights > 0, errors, torch.zeros_like(errors))
    return weights * errors.square(), weights


def _expanded_weights(weights: Tensor, heatmaps: Tensor, targets: Tensor) -> Tensor:
    if can_inspect_values() and not (torch.isfinite(weights) & (weights >= 0)).all():
        raise InputError("weights must be finite numbers >= 0; use 0 for keypoints that do not count.")
    expanded = weights[..., None, None] if weights.ndim == 2 else weights
    for like in (heatmaps, targets):
        if expanded.ndim == 4 and all(n in (1, m) for n, m in zip(expanded.shape, like.shape, strict=True)):
            return _resampled(expanded.expand(like.shape), heatmaps)
    people, keypoints = heatmaps.shape[:2]
    raise InputError(
        f"weights have shape {tuple(weights.shape)}, which does not fit heatmaps of shape {tuple(heatmaps.shape)} and "
        f"targets of shape {tuple(targets.shape)}. Expected {(people, keypoints)}, {(people, keypoints, 1, 1)} or the "
        "full shape."
    )


def _resampled(maps: Tensor, like: Tensor) -> Tensor:
    """Bring ``(N, K, H, W)`` maps to the height and width of others."""
    size_hw = like.shape[-2:]
    if maps.shape[-2:] == size_hw:
        return maps
    if maps.numel() == 0:
        return maps.new_zeros(like.shape)
    return F.interpolate(maps, size=tuple(size_hw), mode="bilinear", align_corners=True)


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    """Divide, with 0 (and its gradient) for a count of 0."""
    return total / torch.where(count > 0, count, torch.ones_like(count))
