"""Losses of class logits for body-part segmentation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.inputs import can_inspect_values, check_feature_map, working_dtype
from sapiens2.losses.masking import mean_over_present, zero_outside
from sapiens2.losses.terms import LossTerms

__all__ = ["cross_entropy_loss", "dice_loss", "segmentation_recipe_loss"]

_MAX_LISTED_VALUES = 10


def cross_entropy_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = 255,
    class_weights: Tensor | Sequence[float] | None = None,
) -> Tensor:
    """Cross-entropy per pixel, ``Σ w_y · (−log p_y) / Σ w_y`` over the pixels that are not ignored.

    Args:
        logits: ``(B, C, h, w)``, C >= 2. Resized bilinearly to the size of the labels when that is another.
        labels: ``(B, H, W)``, any integer dtype: class indices from 0 to C − 1, or ``ignore_index``.
        ignore_index: Label of pixels that do not count, neither above nor below the fraction bar.
        class_weights: C numbers >= 0, the weight of each class; None weighs all 1.

    Returns:
        Scalar; 0, and differentiable, when every pixel is ignored.

    Raises:
        InputError: The shapes do not fit, a label is no class (the message lists those labels), or the class weights
            are not C numbers >= 0.
    """
    logits, labels, counted = _aligned(logits, labels, ignore_index)
    weights = _class_weights(class_weights, logits)
    indices = labels.masked_fill(~counted, 0)
    pixel_weights = torch.where(counted, weights[indices], torch.zeros_like(weights[:1]))  # (B, H, W)
    pixel_losses = F.cross_entropy(logits, indices, reduction="none")  # (B, H, W)
    total_weight = pixel_weights.sum()
    return (pixel_weights * pixel_losses).sum() / torch.where(total_weight > 0, total_weight, 1)


def dice_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = 255,
    exclude_background: bool = True,
    smooth: float = 1e-3,
) -> Tensor:
    """Soft Dice loss with squared denominators, over the classes that are present.

    For each sample and each class c that its labels contain, ``d_c = (2 Σ p g + s) / (Σ p² + Σ g² + s)`` with the
    softmax p and the 0/1 labels g over the pixels that are not ignored. The loss is 1 minus the mean of ``d_c`` over
    the classes of a sample, averaged over the samples that have any.

    Args:
        logits: ``(B, C, h, w)``, C >= 2. Resized bilinearly to the size of the labels when that is another.
        labels: ``(B, H, W)``, any integer dtype: class indices from 0 to C − 1, or ``ignore_index``.
        ignore_index: Label of pixels that do not count.
        exclude_background: Leave class 0 out.
        smooth: The s above.

    Returns:
        Scalar in [0, 1]; 0, and differentiable, when no sample has a class.

    Raises:
        InputError: The shapes do not fit, or a label is no class.

    Source: Milletari et al., V-Net, 3DV 2016, section 3 (the squared denominators).
    """
    logits, labels, counted = _aligned(logits, labels, ignore_index)
    first_class = 1 if exclude_background else 0
    classes = torch.arange(first_class, logits.shape[1], dtype=torch.int32, device=labels.device).view(1, -1, 1, 1)
    truth = (labels.to(torch.int32)[:, None] == classes) & counted[:, None]  # (B, C', H, W); int64 compares slowly
    probabilities = zero_outside(logits.softmax(dim=1)[:, first_class:], counted[:, None])

    overlap = zero_outside(probabilities, truth).sum(dim=(2, 3))  # (B, C')
    truth_size = truth.sum(dim=(2, 3))
    sizes = probabilities.square().sum(dim=(2, 3)) + truth_size
    dice = (2 * overlap + smooth) / (sizes + smooth)

    present = truth_size > 0
    class_count = present.sum(dim=1)
    sample_dice = torch.where(present, dice, torch.zeros_like(dice)).sum(dim=1) / class_count.clamp(min=1)
    return mean_over_present(1 - sample_dice, class_count > 0)


def segmentation_recipe_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = 255,
    class_weights: Tensor | Sequence[float] | None = None,
    cross_entropy_weight: float = 1.0,
    dice_weight: float = 1.0,
) -> LossTerms:
    """Cross-entropy plus Dice, as the published segmentation models were trained.

    The published training divided the class-weighted cross-entropy by the number of pixels, ignored ones included;
    here it is the weighted mean of :func:`cross_entropy_loss`. The published class weights are
    ``sapiens2.assets.part_table().class_weights``.

    Args:
        logits: ``(B, C, h, w)``, C >= 2. Resized bilinearly to the size of the labels when that is another.
        labels: ``(B, H, W)``, any integer dtype: class indices from 0 to C − 1, or ``ignore_index``.
        ignore_index: Label of pixels that do not count.
        class_weights: C numbers >= 0, used by the cross-entropy.
        cross_entropy_weight: Weight of the term ``"cross_entropy"``; 0 leaves it out.
        dice_weight: Weight of the term ``"dice"`` (without background); 0 leaves it out.

    Returns:
        The terms ``"cross_entropy"`` and ``"dice"``.

    Raises:
        InputError: As in :func:`cross_entropy_loss`, or a weight is negative.
    """
    return LossTerms.collect(
        {
            "cross_entropy": (
                cross_entropy_weight,
                lambda: cross_entropy_loss(logits, labels, ignore_index=ignore_index, class_weights=class_weights),
            ),
            "dice": (dice_weight, lambda: dice_loss(logits, labels, ignore_index=ignore_index)),
        }
    )


def _aligned(logits: Tensor, labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits at the size of the labels, int64 labels, and which pixels count, ``(B, H, W)`` bool."""
    check_feature_map(logits, "logits")
    if labels.ndim != 3 or labels.shape[0] != logits.shape[0]:
        raise InputError(
            f"labels have shape {tuple(labels.shape)} and logits have shape {tuple(logits.shape)}. "
            f"Expected labels of shape ({logits.shape[0]}, height, width) with one class index per pixel."
        )
    if logits.shape[1] < 2:
        raise InputError(f"logits need at least 2 classes, background included; got shape {tuple(logits.shape)}.")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise InputError(f"labels must be integer class indices, got {labels.dtype}. Convert them with .long().")
    labels = labels.long()
    counted = labels != ignore_index
    _check_labels(labels, counted, logits.shape[1], ignore_index)

    logits = logits.to(working_dtype(logits))
    size_hw = tuple(labels.shape[-2:])
    if logits.shape[-2:] != size_hw:
        logits = F.interpolate(logits, size=size_hw, mode="bilinear", align_corners=False)
    return zero_outside(logits, counted[:, None]), labels, counted


def _check_labels(labels: Tensor, counted: Tensor, num_classes: int, ignore_index: int) -> None:
    if not can_inspect_values():
        return
    strange = labels[counted & ((labels < 0) | (labels >= num_classes))]
    if strange.numel():
        values = strange.unique().tolist()
        listed = ", ".join(map(str, values[:_MAX_LISTED_VALUES])) + (
            ", ..." if len(values) > _MAX_LISTED_VALUES else ""
        )
        raise InputError(
            f"labels contain {listed}; expected class indices from 0 to {num_classes - 1}, or {ignore_index} for "
            "pixels that do not count. Map other labels before the loss."
        )


def _class_weights(class_weights: Tensor | Sequence[float] | None, logits: Tensor) -> Tensor:
    """Return ``(C,)`` weights in the dtype and on the device of the logits."""
    num_classes = logits.shape[1]
    if class_weights is None:
        return logits.new_ones(num_classes)
    weights = torch.as_tensor(class_weights, dtype=logits.dtype, device=logits.device)
    if weights.shape != (num_classes,):
        raise InputError(
            f"class_weights have shape {tuple(weights.shape)} and logits have shape {tuple(logits.shape)}. "
            f"Expected one weight for each of the {num_classes} classes."
        )
    if can_inspect_values() and not (torch.isfinite(weights) & (weights >= 0)).all():
        raise InputError("class_weights must be finite numbers >= 0.")
    return weights
