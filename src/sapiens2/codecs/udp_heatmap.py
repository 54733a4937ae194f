"""Keypoints to heatmaps and back, without the bias of whole-pixel maps.

Convention: pixel centres at integers, (x, y) order. The first and the last pixel of a heatmap lie on the first and the
last pixel of the network's input, so a heatmap pixel spans ``(W - 1) / (w - 1)`` input pixels.

Source: Huang et al., "The Devil is in the Details: Delving into Unbiased Data Processing for Human Pose Estimation",
CVPR 2020, section 3; Zhang et al., "Distribution-Aware Coordinate Representation for Human Pose Estimation", CVPR
2020, section 3.2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sapiens2.codecs.peak_refinement import refine_peaks
from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["average_flipped", "decode_heatmaps", "encode_heatmaps"]


def encode_heatmaps(
    keypoints: Tensor, visible: Tensor, size_hw: SizeHW, heatmap_hw: SizeHW, sigma: float
) -> tuple[Tensor, Tensor]:
    """Draw one Gaussian with peak value 1 for each visible keypoint.

    A Gaussian is centred between pixels where the keypoint is, and ends ``floor(3 * sigma)`` pixels from the pixel
    nearest to it. A keypoint outside ``[0, W) × [0, H)``, or one that is not finite, counts as invisible.

    Convention: see the module.

    Args:
        keypoints: Tensor ``(N, K, 2)``, (x, y) in pixels of the network's input.
        visible: Tensor ``(N, K)``; above zero means visible (COCO's 1 and 2 alike).
        size_hw: Height and width of the network's input.
        heatmap_hw: Height and width of the heatmaps, each at least 2.
        sigma: Standard deviation in heatmap pixels.

    Returns:
        Heatmaps ``(N, K, h, w)``, float32 in [0, 1], all zero for invisible keypoints, and weights ``(N, K)``, float32,
        1 for visible and 0 for invisible keypoints.

    Raises:
        InputError: The shapes do not fit, a size is below 2, or sigma is not above zero.
    """
    if keypoints.ndim != 3 or keypoints.shape[-1] != 2:
        raise InputError(f"Keypoints have shape {tuple(keypoints.shape)}; expected (people, keypoints, 2).")
    if visible.shape != keypoints.shape[:2]:
        raise InputError(
            f"Visibilities have shape {tuple(visible.shape)}; expected {tuple(keypoints.shape[:2])}, one per keypoint."
        )
    if min(*size_hw, *heatmap_hw) < 2:
        raise InputError(f"Sizes are {tuple(size_hw)} and {tuple(heatmap_hw)}; each side must be at least 2.")
    if not (math.isfinite(sigma) and sigma > 0):
        raise InputError(f"sigma is {sigma}; expected a finite number of heatmap pixels above zero.")
    keypoints = keypoints.to(torch.float32)
    limits = keypoints.new_tensor([size_hw[1], size_hw[0]])
    inside = ((keypoints >= 0) & (keypoints < limits)).all(dim=-1)  # false for NaN
    weights = (inside & (visible.to(keypoints.device) > 0)).to(torch.float32)
    shrink = [(small - 1) / (large - 1) for small, large in zip(heatmap_hw, size_hw, strict=True)]
    x, y = torch.where(inside[..., None], keypoints, 0.0).unbind(-1)
    across = _gaussian_profiles(x * shrink[1], heatmap_hw[1], sigma)  # (N, K, w)
    down = _gaussian_profiles(y * shrink[0], heatmap_hw[0], sigma) * weights[..., None]  # (N, K, h)
    # A Gaussian is the product of its profiles: h + w exponentials per map, and each map is written once.
    return down[..., :, None] * across[..., None, :], weights


def decode_heatmaps(heatmaps: Tensor, kernel_size: int = 11) -> tuple[Tensor, Tensor]:
    """Find the peak of each heatmap to a fraction of a pixel.

    The highest pixel is refined with one Newton step on the logarithm of the blurred map. Close to the border, where
    the blur would mix in what lies outside, a parabola is fitted to the pixels inside instead, and points stay within
    the map. See :func:`~sapiens2.codecs.peak_refinement.refine_peaks`.

    Convention: see the module.

    Args:
        heatmaps: Tensor ``(N, K, h, w)``, any floating dtype; computed in float32.
        kernel_size: Odd width of the Gaussian blur, at least 3. It should be about twice the sigma of the training
            targets; 11 belongs to the published models.

    Returns:
        Points ``(N, K, 2)``, float32, (x, y) in heatmap pixels within ``[0, w - 1] × [0, h - 1]``, and scores
        ``(N, K)``, float32, the highest value of each map (it may exceed 1). A map without any value above zero, or
        with a NaN or an infinite peak, gives the point (NaN, NaN) and the score 0.

    Raises:
        InputError: The heatmaps are not ``(N, K, h, w)`` and floating, or the kernel size is even or below 3.
    """
    if isinstance(kernel_size, bool) or not isinstance(kernel_size, int) or kernel_size < 3 or kernel_size % 2 == 0:
        raise InputError(f"kernel_size is {kernel_size!r}; expected an odd whole number of at least 3.")
    if heatmaps.ndim != 4 or 0 in heatmaps.shape[2:] or not heatmaps.is_floating_point():
        raise InputError(
            f"Heatmaps have shape {tuple(heatmaps.shape)} and dtype {heatmaps.dtype}; "
            "expected floating numbers of shape (people, keypoints, height, width)."
        )
    people, joints, height, width = heatmaps.shape
    maps = heatmaps.detach().reshape(people * joints, height, width)
    pixels, scores = _highest_pixels(maps)
    found = scores.isfinite() & (scores > 0)
    steps = refine_peaks(maps, pixels, torch.where(found, scores, 0.0), kernel_size)
    limits = steps.new_tensor([width - 1, height - 1])
    points = torch.minimum((pixels + steps).clamp(min=0), limits)
    points = torch.where(found[:, None], points, torch.nan)
    return points.view(people, joints, 2), torch.where(found, scores, 0.0).view(people, joints)


def average_flipped(heatmaps: Tensor, heatmaps_flipped: Tensor) -> Tensor:
    """Average the heatmaps of pictures and of their mirror images.

    Args:
        heatmaps: Tensor ``(N, K, h, w)`` of the pictures.
        heatmaps_flipped: Tensor ``(N, K, h, w)`` of the mirrored pictures, already flipped back and with left and
            right keypoints exchanged, as the pose model returns them when it is given ``flip_pairs``.

    Returns:
        Tensor ``(N, K, h, w)``, the mean of both.

    Raises:
        InputError: The shapes differ.
    """
    if heatmaps.shape != heatmaps_flipped.shape:
        raise InputError(
            f"Heatmaps have shape {tuple(heatmaps.shape)} and the flipped ones {tuple(heatmaps_flipped.shape)}; "
            "expected the same: run the model on the same crops twice."
        )
    return (heatmaps + heatmaps_flipped.to(heatmaps)) / 2


def _gaussian_profiles(means: Tensor, length: int, sigma: float) -> Tensor:
    """Sample 1-D Gaussians ``(..., length)`` and cut them off around the whole pixel nearest to each mean."""
    positions = torch.arange(length, dtype=means.dtype, device=means.device)
    profiles = torch.exp(-0.5 * ((positions - means[..., None]) / sigma) ** 2)
    nearest = torch.floor(means + 0.5)[..., None]
    return profiles * ((positions - nearest).abs() <= math.floor(3 * sigma))


def _highest_pixels(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Give the first highest pixel of each map as (x, y) ``(P, 2)`` and its value ``(P,)`` in float32."""
    # First the best row, then the best pixel in it: several times as quick as one argmax over the whole map.
    scores, rows = maps.amax(dim=2).max(dim=1)
    best_rows = maps[torch.arange(len(maps), device=maps.device), rows]  # (P, w)
    return torch.stack([best_rows.argmax(dim=1), rows], dim=1), scores.to(torch.float32)
