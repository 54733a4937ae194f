"""The combination of pointmap losses that the published models were trained with."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.pointmap import (
    intrinsics_consistency_loss,
    multiscale_pointmap_l1_loss,
    pointmap_l1_loss,
    pointmap_normal_loss,
    scale_l1_loss,
    shift_invariant_pointmap_l1_loss,
    silog_loss,
    valid_points,
)
from sapiens2.losses.terms import LossTerms, logarithmic_above

__all__ = ["pointmap_recipe_loss"]


def pointmap_recipe_loss(
    pointmaps: Tensor,
    targets: Tensor,
    *,
    scales: Tensor | None = None,
    target_scales: Tensor | None = None,
    intrinsics: Tensor | None = None,
    mask: Tensor | None = None,
    l1_weight: float = 2.0,
    multiscale_l1_weight: float = 1.0,
    shift_invariant_l1_weight: float = 1.0,
    silog_weight: float = 1.0,
    intrinsics_weight: float = 1.0,
    normal_weight: float = 2.0,
    scale_weight: float = 4.0,
    soft_limit: float | None = 4.0,
) -> LossTerms:
    """The terms that the published pointmap models were trained with, under their published weights.

    The published training divided sums over coordinates by the number of pixels; the terms here are means. Weights
    of 6, 3 and 3 for the three L1 terms and 2 for the intrinsics restore its balance.

    Args:
        pointmaps: ``(B, 3, H, W)`` canonical points, the head's output.
        targets: ``(B, 3, H, W)`` canonical points; 0 or not finite where there is none.
        scales: ``(B, 1)`` or ``(B,)`` predicted 768 / f_x.
        target_scales: ``(B, 1)`` or ``(B,)``. Without them the term ``"scale"`` is left out.
        intrinsics: ``(B, 3, 3)`` or ``(3, 3)``, in pixels of the map and before the points are made canonical.
            Without them the term ``"intrinsics"`` is left out.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        l1_weight: Weight of the term ``"l1"``; 0 leaves it out, here and below.
        multiscale_l1_weight: Weight of the term ``"multiscale_l1"``.
        shift_invariant_l1_weight: Weight of the term ``"shift_invariant_l1"``.
        silog_weight: Weight of the term ``"silog"``.
        intrinsics_weight: Weight of the term ``"intrinsics"``.
        normal_weight: Weight of the term ``"normal"``.
        scale_weight: Weight of the term ``"scale"``.
        soft_limit: Above this the weighted L1 terms grow only logarithmically, where the published training clamped
            them and lost their gradient; None lets them grow.

    Returns:
        The terms above.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, a weight is negative, the limit is not above 0, or
            there are target scales but no scales.
    """
    if target_scales is not None and scales is None:
        raise InputError("target_scales are given without scales. Pass the model's scales too, or neither.")
    if soft_limit is not None and not soft_limit > 0:
        raise InputError(f"soft_limit must be above 0, or None for no limit; got {soft_limit}.")

    def limited(weight: float, loss: Callable[[Tensor, Tensor, Tensor | None], Tensor]) -> Callable[[], Tensor]:
        def term() -> Tensor:
            value = loss(pointmaps, targets, mask)
            return value if soft_limit is None else logarithmic_above(value, soft_limit / weight)

        return term

    candidates = {
        "l1": (l1_weight, limited(l1_weight, pointmap_l1_loss)),
        "multiscale_l1": (multiscale_l1_weight, limited(multiscale_l1_weight, multiscale_pointmap_l1_loss)),
        "shift_invariant_l1": (
            shift_invariant_l1_weight,
            limited(shift_invariant_l1_weight, shift_invariant_pointmap_l1_loss),
        ),
        "silog": (silog_weight, lambda: silog_loss(pointmaps, targets, mask)),
        "normal": (normal_weight, lambda: pointmap_normal_loss(pointmaps, targets, mask)),
    }
    if intrinsics is not None:
        candidates["intrinsics"] = (
            intrinsics_weight,
            lambda: intrinsics_consistency_loss(pointmaps, intrinsics, valid_points(targets, mask)),
        )
    if scales is not None and target_scales is not None:
        candidates["scale"] = (scale_weight, lambda: scale_l1_loss(scales, target_scales))
    return LossTerms.collect(candidates)
