"""Positions of heatmap peaks between pixels.

Two estimators share one window around each peak. In the interior it is distribution-aware decoding (DARK): blur, take
the logarithm, make one Newton step. Where the blur reaches across the border, and that matters, it is a least-squares
parabola through the logarithms of the pixels inside, which is exact for a Gaussian however much of it is cut off.

Source: Zhang et al., "Distribution-Aware Coordinate Representation for Human Pose Estimation", CVPR 2020, section 3.2;
Guo, "A Simple Algorithm for Fitting a Gaussian Function", IEEE Signal Processing Magazine 28(5), 2011 (the weights).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["refine_peaks"]

_FLOOR, _CEILING = 1e-3, 50.0  # range that blurred maps are clipped to before the logarithm

_BORDER_TOLERANCE = 0.01  # heatmap pixels by which the unknown outside may move a peak before the blur is given up

_MAPS_PER_CHUNK = 64  # bounds the memory of whole blurred maps


def refine_peaks(maps: Tensor, pixels: Tensor, scores: Tensor, kernel_size: int) -> Tensor:
    """Find the step from the highest pixel of each map to its peak.

    Only the pixels that the blur and the derivatives at the peak depend on are read. The result equals that of blurring
    the whole map, rescaling it to its original maximum and clipping it to [0.001, 50].

    A step longer than half the kernel is dropped: the parabola says nothing about places that far away.

    Args:
        maps: Tensor ``(P, h, w)``, floating.
        pixels: Tensor ``(P, 2)``, int64, (x, y) of the highest pixel of each map.
        scores: Tensor ``(P,)``, float32, the value there; 0 for maps whose result does not matter.
        kernel_size: Odd width of the Gaussian blur.

    Returns:
        Tensor ``(P, 2)``, float32, (x, y) in heatmap pixels. It may lead out of the map from a pixel at its border.
    """
    reach = kernel_size // 2 + 1
    kernel = _gaussian_kernel(kernel_size, maps.device)
    windows, inside = _windows(maps, pixels, reach)  # (P, s, s) with s = kernel_size + 2
    blurred = _blurred_centre(torch.where(inside, windows, 0.0), kernel)  # (P, 3, 3)
    gain = _restoring_gain(maps, blurred, scores, kernel)
    steps = _newton_step(blurred * gain)
    border = ~inside.flatten(1).all(dim=1)
    if bool(border.any()):
        windows, inside, near = windows[border], inside[border], steps[border]
        # The map goes on beyond its border as zeros or as copies of its edge: where both give the same peak, the
        # outside does not matter and the peak is as good as one of the interior.
        far = _newton_step(_blurred_centre(windows, kernel) * gain[border])
        settled = (far - near).abs().amax(dim=1, keepdim=True) <= _BORDER_TOLERANCE
        steps[border] = torch.where(settled, near, _fitted_step(windows, inside, scores[border], kernel))
    # Also false for NaN: no step.
    return torch.where(steps.abs().amax(dim=1, keepdim=True) <= kernel_size // 2, steps, 0.0)


def _windows(maps: Tensor, pixels: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """Cut out squares ``(P, s, s)`` in float32, edges repeated outside, and tell which of their pixels are inside."""
    height, width = maps.shape[1:]
    offsets = torch.arange(-reach, reach + 1, device=maps.device)
    columns, rows = (pixels[:, axis, None] + offsets for axis in (0, 1))  # (P, s) each
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    index = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None, :]
    values = maps.flatten(1).gather(1, index.flatten(1)).view(index.shape)
    return values.to(torch.float32), inside


def _gaussian_kernel(size: int, device: torch.device) -> Tensor:
    """Sample a normalised Gaussian with the width that OpenCV derives from the size (2.0 for 11)."""
    sigma = 0.3 * ((size - 1) * 0.5 - 1) + 0.8
    positions = torch.arange(size, dtype=torch.float32, device=device) - size // 2
    kernel = torch.exp(-0.5 * (positions / sigma) ** 2)
    return kernel / kernel.sum()


def _blurred_centre(windows: Tensor, kernel: Tensor) -> Tensor:
    """Blur, and keep the 3 × 3 pixels in the middle of each window."""
    rows = (windows.unfold(1, len(kernel), 1) * kernel).sum(dim=-1)  # (P, 3, s)
    return (rows.unfold(2, len(kernel), 1) * kernel).sum(dim=-1)  # (P, 3, 3)


def _restoring_gain(maps: Tensor, blurred: Tensor, scores: Tensor, kernel: Tensor) -> Tensor:
    """Give the factors ``(P, 1, 1)`` that bring blurred maps back to their original maxima.

    Under the logarithm a factor is a constant, and derivatives do not see it, unless it decides which pixels are
    clipped. It is at least 1 and lifts no pixel above the score. So 1 will do in nearly all cases, and only faint or
    ragged peaks need the maximum of the whole blurred map.
    """
    gain = torch.ones_like(scores)
    matters = (blurred.flatten(1).amin(dim=1) < _FLOOR) | (scores > _CEILING)
    matters &= scores > _FLOOR  # fainter maps are clipped flat, whatever the factor
    for chunk in torch.split(matters.nonzero()[:, 0], _MAPS_PER_CHUNK):
        highest = _blurred_maps(maps[chunk].to(torch.float32), kernel).flatten(1).amax(dim=1)
        gain[chunk] = torch.where(highest > 0, scores[chunk] / highest, 1.0)
    return gain[:, None, None]


def _blurred_maps(maps: Tensor, kernel: Tensor) -> Tensor:
    """Blur whole maps ``(P, h, w)``, with zeros outside."""
    half = len(kernel) // 2
    weights = kernel.tolist()
    for axis, padding in ((1, (0, 0, half, half)), (2, (half, half, 0, 0))):
        length, padded = maps.shape[axis], F.pad(maps, padding)
        maps = weights[half] * padded.narrow(axis, half, length)
        for offset in range(half):
            mirrored = padded.narrow(axis, offset, length) + padded.narrow(axis, 2 * half - offset, length)
            maps.add_(mirrored, alpha=weights[offset])
    return maps


def _newton_step(blurred: Tensor) -> Tensor:
    """Step from the middle of ``(P, 3, 3)`` values to the vertex of their logarithm, ``(P, 2)`` as (x, y)."""
    log = blurred.clamp(_FLOOR, _CEILING).log()
    centre, left, right = log[:, 1, 1], log[:, 1, 0], log[:, 1, 2]
    above, below = log[:, 0, 1], log[:, 2, 1]
    epsilon = torch.finfo(log.dtype).eps  # a flat map has no curvature to divide by
    gradient = 0.5 * torch.stack([right - left, below - above], dim=1)
    xx = right - 2 * centre + left + epsilon
    yy = below - 2 * centre + above + epsilon
    xy = 0.5 * (log[:, 2, 2] + log[:, 0, 0] + 2 * centre - left - right - above - below)
    return _vertex(gradient, xx, yy, xy)


def _fitted_step(windows: Tensor, inside: Tensor, scores: Tensor, kernel: Tensor) -> Tensor:
    """Fit a parabola to the logarithm of the pixels inside, and step to its vertex, ``(P, 2)`` as (x, y).

    Weights are the kernel times the square of the values: errors of the logarithm grow as values fall.
    No step where the pixels do not determine a maximum.
    """
    reach = windows.shape[1] // 2
    axis = torch.arange(-reach, reach + 1, dtype=torch.float32, device=windows.device) / reach
    y, x = (grid.flatten() for grid in torch.meshgrid(axis, axis, indexing="ij"))
    terms = torch.stack([torch.ones_like(x), x, y, x * x, x * y, y * y], dim=1)  # (s², 6)
    spread = F.pad(kernel, (1, 1))
    values = (windows / scores.clamp(min=_FLOOR)[:, None, None]).flatten(1)  # (P, s²)
    used = inside.flatten(1) & (values > _FLOOR)
    values = torch.where(used, values, 1.0)
    weights = torch.where(used, values**2, 0.0) * torch.outer(spread, spread).flatten()
    moments = torch.einsum("ps,si,sj->pij", weights, terms, terms)
    targets = torch.einsum("ps,si->pi", weights * values.log(), terms)
    solution, failed = torch.linalg.solve_ex(moments, targets)
    _, b, c, d, e, f = solution.unbind(dim=1)
    peaked = (failed == 0) & (d < 0) & (4 * d * f > e * e)
    step = _vertex(torch.stack([b, c], dim=1), 2 * d, 2 * f, e) * reach
    return torch.where(peaked[:, None], step, 0.0)


def _vertex(gradient: Tensor, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
    """Solve ``hessian @ step = -gradient`` for 2 × 2 Hessians."""
    gx, gy = gradient.unbind(dim=1)
    determinant = xx * yy - xy * xy
    return torch.stack([xy * gy - yy * gx, xy * gx - xx * gy], dim=1) / determinant[:, None]
