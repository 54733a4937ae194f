"""The pinhole camera: depth to points, points to pixels, and the canonical focal length.

Convention: OpenCV camera, x right, y down, z forward; pixel centres at integers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.errors import InputError

__all__ = ["CANONICAL_FOCAL_PX", "canonical_scale", "project", "unproject"]

CANONICAL_FOCAL_PX = 768.0
"""Focal length, in pixels of the network's input, of the camera that canonical pointmaps refer to."""


def unproject(depth: Tensor, intrinsics: Tensor) -> Tensor:
    """Turn depth maps into points in the frame of the camera.

    ``X = (u - c_x) Z / f_x``, ``Y = (v - c_y) Z / f_y``.

    Convention: OpenCV camera; ``u`` and ``v`` are integer pixel coordinates; depth is z, not distance along the ray.

    Args:
        depth: Tensor ``(B, 1, H, W)`` or ``(H, W)``, z in any unit.
        intrinsics: Tensor ``(B, 3, 3)`` or ``(3, 3)``, in pixels of ``depth``.

    Returns:
        Tensor ``(B, 3, H, W)``, channels X, Y, Z in the unit of ``depth`` (B is 1 for a single map).

    Raises:
        InputError: The shapes do not fit.
    """
    if depth.ndim == 2:
        depth = depth[None, None]
    if depth.ndim != 4 or depth.shape[1] != 1:
        raise InputError(
            f"Depth has shape {tuple(depth.shape)}; expected (batch, 1, height, width) or (height, width)."
        )
    focal, centre = _focal_and_centre(intrinsics, depth)  # (B, 2, 1, 1) each
    height, width = depth.shape[-2:]
    u = torch.arange(width, dtype=depth.dtype, device=depth.device).expand(height, width)
    v = torch.arange(height, dtype=depth.dtype, device=depth.device)[:, None].expand(height, width)
    rays = (torch.stack([u, v])[None] - centre) / focal  # (B, 2, H, W)
    return torch.cat([rays * depth, depth], dim=1)


def project(points: Tensor, intrinsics: Tensor) -> Tensor:
    """Find the pixels at which the camera sees points: ``u = f_x X / Z + c_x``, ``v = f_y Y / Z + c_y``.

    Convention: OpenCV camera; pixel centres at integers.

    Args:
        points: Tensor ``(B, 3, H, W)``, channels X, Y, Z in any unit.
        intrinsics: Tensor ``(B, 3, 3)`` or ``(3, 3)``, in pixels.

    Returns:
        Tensor ``(B, 2, H, W)``, channels u, v in pixels; NaN where Z is not above zero, behind the camera.

    Raises:
        InputError: The shapes do not fit.
    """
    if points.ndim != 4 or points.shape[1] != 3:
        raise InputError(f"Points have shape {tuple(points.shape)}; expected (batch, 3, height, width).")
    focal, centre = _focal_and_centre(intrinsics, points)
    z = points[:, 2:]
    z = torch.where(z > 0, z, torch.full_like(z, torch.nan))
    return focal * points[:, :2] / z + centre


def canonical_scale(focal_px: Tensor | float, canonical: float = CANONICAL_FOCAL_PX) -> Tensor | float:
    """Give the factor from metric to canonical points: ``canonical = scale * metric``.

    Args:
        focal_px: Focal length f_x in pixels of the network's input.
        canonical: Focal length that canonical points refer to.

    Returns:
        ``canonical / focal_px``, of the kind of ``focal_px``.
    """
    return canonical / focal_px


def _focal_and_centre(intrinsics: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Read (f_x, f_y) and (c_x, c_y), each shaped to broadcast over maps."""
    if intrinsics.ndim == 2:
        intrinsics = intrinsics[None]
    if intrinsics.shape[1:] != (3, 3) or len(intrinsics) not in (1, len(like)):
        raise InputError(
            f"Intrinsics have shape {tuple(intrinsics.shape)} for a batch of {len(like)}; "
            "expected (batch, 3, 3) or (3, 3)."
        )
    intrinsics = intrinsics.to(like)
    focal = intrinsics.diagonal(dim1=1, dim2=2)[:, :2, None, None]
    return focal, intrinsics[:, :2, 2, None, None]
