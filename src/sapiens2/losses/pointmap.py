"""Losses of pointmaps: for each pixel, the point of the surface that it sees.

Convention: OpenCV camera, x right, y down, z forward. Points are canonical: metric points times 768 / f_x, as the head
predicts them.

Which pixels count: those where the target is finite and in front of the camera (Z > 0; data preparation leaves zeros
outside of people), and where ``mask`` (if given) is True.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.directions import cosine_distances, unit_vectors
from sapiens2.losses.gradients import forward_differences
from sapiens2.losses.inputs import can_inspect_values, check_feature_map, paired_maps, working_dtype
from sapiens2.losses.masking import (
    masked_mean,
    masked_mean_per_sample,
    mean_over_present,
    pixel_mask,
    zero_outside,
)

__all__ = [
    "intrinsics_consistency_loss",
    "multiscale_pointmap_l1_loss",
    "pointmap_l1_loss",
    "pointmap_normal_loss",
    "scale_l1_loss",
    "shift_invariant_pointmap_l1_loss",
    "silog_loss",
    "valid_points",
]

_MIN_DEPTH = 1e-4
_MIN_ROOT = 1e-6
_MIN_FACET_AREA = 1e-10


def valid_points(targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Tell which target points exist.

    Args:
        targets: ``(B, 3, H, W)``.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool; the result is False where it is.

    Returns:
        ``(B, 1, H, W)`` bool, by the rule of this module.

    Raises:
        InputError: The mask is not bool or does not fit.
    """
    finite = torch.isfinite(targets).all(dim=1, keepdim=True)
    return finite & (targets[:, 2:] > 0) & pixel_mask(mask, targets)


def pointmap_l1_loss(pointmaps: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean absolute error per coordinate, relative to the mean target depth of each sample.

    Args:
        pointmaps: ``(B, 3, H, W)`` canonical points, the head's output.
        targets: ``(B, 3, H, W)`` canonical points.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, or the mask is not bool.
    """
    pointmaps, targets, valid = _depth_normalised(pointmaps, targets, mask)
    return masked_mean((pointmaps - targets).abs(), valid)


def multiscale_pointmap_l1_loss(
    pointmaps: Tensor, targets: Tensor, mask: Tensor | None = None, *, num_scales: int = 3
) -> Tensor:
    """:func:`pointmap_l1_loss` of pointmaps that are averaged over 2×2, 4×4, 8×8, ... pixels.

    Only pixels that count enter an average, and a window counts when it holds one. Windows that overhang the right
    or the lower border are averaged over what they cover.

    Args:
        pointmaps: ``(B, 3, H, W)`` canonical points, the head's output.
        targets: ``(B, 3, H, W)`` canonical points.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        num_scales: How many window sizes, >= 1.

    Returns:
        Scalar, the mean over the scales; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or ``num_scales`` is below 1.
    """
    if num_scales < 1:
        raise InputError(f"num_scales must be at least 1, got {num_scales}.")
    pointmaps, targets, valid = _depth_normalised(pointmaps, targets, mask)
    # The mean of a difference is the difference of the means, so one map is pooled instead of two.
    sums, counts = pointmaps - targets, valid.to(targets.dtype)
    losses = []
    for _ in range(num_scales):
        sums, counts = _pooled_sum(sums), _pooled_sum(counts)
        losses.append(masked_mean((sums / counts.clamp_min(1)).abs(), counts > 0))
    return torch.stack(losses).mean()


def shift_invariant_pointmap_l1_loss(pointmaps: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """:func:`pointmap_l1_loss` after each sample's own centroid is subtracted, from both maps.

    Args:
        pointmaps: ``(B, 3, H, W)`` canonical points, the head's output.
        targets: ``(B, 3, H, W)`` canonical points.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, or the mask is not bool.
    """
    pointmaps, targets, valid = _depth_normalised(pointmaps, targets, mask)
    errors = pointmaps - targets
    return masked_mean((errors - masked_mean_per_sample(errors, valid)).abs(), valid)


def silog_loss(
    pointmaps: Tensor, targets: Tensor, mask: Tensor | None = None, *, variance_focus: float = 0.5
) -> Tensor:
    """Scale-invariant error of log depth: ``sqrt(mean(d²) − λ mean(d)²)`` with ``d = ln Z − ln Ẑ``.

    Two things differ from the formula where it has no usable derivative. The root is ``sqrt(v + 1e-12) − 1e-6``, of
    finite slope at perfect agreement. And ``ln`` goes on below a depth of 1e-4, also for negative ones, as
    ``ln 1e-4 − ln(2 − Z / 1e-4)``, which decreases with a slope that never vanishes.

    Args:
        pointmaps: ``(B, 3, H, W)`` canonical points, the head's output; only Z is used.
        targets: ``(B, 3, H, W)`` canonical points.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.
        variance_focus: λ in [0, 1]: at 1 a common factor of all depths costs nothing.

    Returns:
        Scalar, the mean over the samples with a pixel that counts; 0, and differentiable, when there is none.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or ``variance_focus`` is outside [0, 1].

    Source: Eigen et al., Depth Map Prediction from a Single Image using a Multi-Scale Deep Network, NIPS 2014.
    """
    if not 0 <= variance_focus <= 1:
        raise InputError(f"variance_focus must be in [0, 1], got {variance_focus}.")
    pointmaps, targets, valid = _prepared(pointmaps, targets, mask)
    errors = _extended_log(targets[:, 2:]) - _extended_log(pointmaps[:, 2:])  # (B, 1, H, W)
    means = masked_mean_per_sample(errors, valid)  # (B, 1, 1, 1)
    # Equal to mean(d²) − λ mean(d)², but rounding cannot make it negative.
    variances = masked_mean_per_sample((errors - means).square(), valid) + (1 - variance_focus) * means.square()
    roots = (variances + _MIN_ROOT**2).sqrt() - _MIN_ROOT
    return mean_over_present(roots.flatten(), valid.flatten(1).any(dim=1))


def intrinsics_consistency_loss(pointmaps: Tensor, intrinsics: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean distance, along x and y, of each point from the ray of its pixel, in canonical units.

    ``|X − (u − c_x) Z / f_x|`` and ``|Y − (v − c_y) Z / f_y|``, averaged over both and over the pixels.

    Args:
        pointmaps: ``(B, 3, H, W)`` canonical points, the head's output.
        intrinsics: ``(B, 3, 3)`` or ``(3, 3)``, in pixels of the map, with focal lengths > 0.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts; None for all.

    Returns:
        Scalar; 0, and differentiable, when no pixel counts.

    Raises:
        InputError: The shapes do not fit, the mask is not bool, or a focal length is not above 0.

    Convention: Pixel centres at integers, u right and v down.
    """
    check_feature_map(pointmaps, "pointmaps", channels=3)
    batch, _, height, width = pointmaps.shape
    if intrinsics.shape not in {(3, 3), (batch, 3, 3)}:
        raise InputError(
            f"intrinsics have shape {tuple(intrinsics.shape)} and pointmaps have shape {tuple(pointmaps.shape)}. "
            f"Expected intrinsics of shape {(batch, 3, 3)} or (3, 3)."
        )
    dtype = working_dtype(pointmaps)
    matrices = intrinsics.to(dtype).expand(batch, 3, 3)
    focals = torch.stack([matrices[:, 0, 0], matrices[:, 1, 1]], dim=1)  # (B, 2)
    if can_inspect_values() and not (focals > 0).all():
        raise InputError(f"intrinsics must have focal lengths > 0 pixels, got {focals.tolist()}.")
    valid = pixel_mask(mask, pointmaps)
    points = zero_outside(pointmaps.to(dtype), valid)

    v, u = torch.meshgrid(
        torch.arange(height, dtype=dtype, device=points.device),
        torch.arange(width, dtype=dtype, device=points.device),
        indexing="ij",
    )
    pixels = torch.stack([u, v])  # (2, H, W)
    rays = (pixels - matrices[:, :2, 2, None, None]) / focals[..., None, None]  # (B, 2, H, W)
    return masked_mean((points[:, :2] - rays * points[:, 2:]).abs(), valid)


def pointmap_normal_loss(pointmaps: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Error of the surface normals of the pointmaps: ``1 − cos`` plus the mean absolute error per component.

    The normal at a pixel is the direction of the cross product of the steps to its right and to its lower neighbour.
    It counts when all three pixels do and the target's facet has an area; the last column and row have none. A
    direction does not change with the unit of length, so no scale is needed.

    Args:
        pointmaps: ``(B, 3, H, W)`` points, the head's output.
        targets: ``(B, 3, H, W)`` points.
        mask: ``(B, H, W)`` or ``(B, 1, H, W)`` bool, True where a pixel counts.

    Returns:
        Scalar; 0, and differentiable, when no normal counts.

    Raises:
        InputError: The shapes do not fit, or the mask is not bool.
    """
    pointmaps, targets, valid = _prepared(pointmaps, targets, mask)
    target_facets, facets = _facets(targets), _facets(pointmaps)  # (B, 3, H - 1, W - 1)
    areas = torch.linalg.vector_norm(target_facets, dim=1, keepdim=True)
    corners = valid[..., :-1, :-1] & valid[..., :-1, 1:] & valid[..., 1:, :-1]
    counted = corners & (areas > _MIN_FACET_AREA)
    # In units of the target's area a good prediction has a length near 1, whatever the resolution and the distance.
    areas = torch.where(counted, areas, torch.ones_like(areas))
    normals, target_normals = unit_vectors(facets / areas), target_facets / areas
    component_errors = (normals - target_normals).abs().mean(dim=1, keepdim=True)
    return masked_mean(cosine_distances(normals, target_normals) + component_errors, counted)


def scale_l1_loss(scales: Tensor, target_scales: Tensor) -> Tensor:
    """Mean absolute error of the predicted scale 768 / f_x.

    Args:
        scales: ``(B, 1)`` or ``(B,)``.
        target_scales: ``(B, 1)`` or ``(B,)``. A sample whose target is not a finite number > 0 does not count.

    Returns:
        Scalar; 0, and differentiable, when no sample counts.

    Raises:
        InputError: The shapes do not fit.
    """
    batch = scales.shape[0] if scales.ndim else 0
    if any(tensor.shape not in {(batch,), (batch, 1)} for tensor in (scales, target_scales)):
        raise InputError(
            f"scales have shape {tuple(scales.shape)} and target_scales have shape {tuple(target_scales.shape)}. "
            "Expected (batch, 1) or (batch,) for both."
        )
    dtype = working_dtype(scales)
    scales, target_scales = scales.to(dtype).flatten(), target_scales.to(dtype).flatten()
    present = torch.isfinite(target_scales) & (target_scales > 0)
    errors = scales - torch.where(present, target_scales, torch.zeros_like(target_scales))
    return mean_over_present(errors.abs(), present)


def _prepared(pointmaps: Tensor, targets: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return both maps, 0 where a pixel does not count, and the pixels that do."""
    pointmaps, targets = paired_maps(pointmaps, targets, channels=3, names=("pointmaps", "targets"))
    valid = valid_points(targets, mask)
    return zero_outside(pointmaps, valid), zero_outside(targets, valid), valid


def _depth_normalised(pointmaps: Tensor, targets: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Do as :func:`_prepared`, and divide both maps by the mean target depth of each sample."""
    pointmaps, targets, valid = _prepared(pointmaps, targets, mask)
    depths = masked_mean_per_sample(targets[:, 2:], valid)  # (B, 1, 1, 1)
    depths = torch.where(depths > 0, depths, torch.ones_like(depths))
    return pointmaps / depths, targets / depths, valid


def _pooled_sum(maps: Tensor) -> Tensor:
    """Sum over windows of 2×2 pixels, those at the border over what they cover."""
    return F.avg_pool2d(maps, kernel_size=2, ceil_mode=True, divisor_override=1)


def _extended_log(depths: Tensor) -> Tensor:
    """Return ln(depth), continued below 1e-4 as :func:`silog_loss` says."""
    is_above = depths > _MIN_DEPTH
    floor = torch.full_like(depths, _MIN_DEPTH)
    above = torch.where(is_above, depths, floor).log()  # selected first: the unused branch must stay finite
    below = torch.log1p(1 - torch.where(is_above, floor, depths) / _MIN_DEPTH)
    return above - below


def _facets(pointmaps: Tensor) -> Tensor:
    """Return the cross products of the steps right and down, ``(B, 3, H - 1, W - 1)``."""
    right, down = forward_differences(pointmaps)
    crosses: Tensor = torch.linalg.cross(right[..., :-1, :], down[..., :, :-1], dim=1)
    return crosses
