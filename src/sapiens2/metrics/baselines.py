"""Predictions that know nothing: a figure means little until it is seen beside the one that these get.

All return float32 or int64 tensors on the CPU, or on the device of what they are made from. The baseline of matting is
an empty matte, of normals a surface that faces the camera, of body parts one class everywhere, of albedo the picture
with its shading, of pose the mean pose put into each box; :class:`sapiens2.metrics.PointmapMetric` measures the plane
itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.losses.pointmap import valid_points
from sapiens2.metrics.inputs import as_tensor, batch_mask, real_batch
from sapiens2.metrics.keypoints import visibility
from sapiens2.types import ArrayLike, BoxesLike, SizeHW

__all__ = [
    "camera_facing_normals",
    "constant_plane",
    "empty_matte",
    "mean_pose",
    "pose_in_boxes",
    "shaded_picture",
    "single_class",
]


def camera_facing_normals(size_hw: SizeHW) -> Tensor:
    """``(3, H, W)`` normals that all point to the camera.

    Convention: OpenCV camera, so that they are (0, 0, −1).
    """
    return torch.tensor([0.0, 0.0, -1.0])[:, None, None].repeat(1, *size_hw)


def empty_matte(size_hw: SizeHW) -> Tensor:
    """``(H, W)`` alpha of a picture with nobody."""
    return torch.zeros(size_hw)


def single_class(size_hw: SizeHW, class_id: int) -> Tensor:
    """``(H, W)`` class ids that are all the same; the most frequent class of the training data is the fair choice."""
    return torch.full(size_hw, class_id, dtype=torch.int64)


def shaded_picture(image: ArrayLike) -> Tensor:
    """The picture as its own albedo.

    Args:
        image: ``(H, W, 3)`` or ``(3, H, W)`` uint8.

    Returns:
        ``(3, H, W)`` RGB in [0, 1].

    Raises:
        InputError: Another dtype or shape.
    """
    picture = as_tensor(image, "image")
    if picture.ndim == 3 and picture.shape[-1] == 3:
        picture = picture.movedim(-1, 0)
    if picture.dtype != torch.uint8 or picture.ndim != 3 or picture.shape[0] != 3:
        raise InputError(f"image must be uint8 (H, W, 3) or (3, H, W), got {picture.dtype} {tuple(picture.shape)}")
    return picture.to(torch.float32) / 255


def constant_plane(target: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
    """The points that each pixel would see on a plane at the mean true depth.

    Args:
        target: ``(3, H, W)`` true X, Y, Z in metres.
        mask: ``(H, W)`` bool, True where a pixel counts.

    Returns:
        ``(3, H, W)``; NaN where no target counts, for there the ray is not known.

    Raises:
        InputError: Shapes that do not fit, or a mask that is not bool.

    Convention: OpenCV camera; the plane is parallel to the image.
    """
    points = real_batch(target, 3, "target")
    valid = valid_points(points, batch_mask(mask, points))
    depth = points[:, 2:]
    plane = torch.where(valid, points / depth * depth[valid].mean(), torch.full_like(points, torch.nan))
    return plane[0].to(torch.float32)


def mean_pose(keypoints: ArrayLike, boxes: BoxesLike, mask: ArrayLike | None = None) -> Tensor:
    """Where keypoints lie in a box on average.

    Args:
        keypoints: ``(N, K, 2)`` x, y in pixels.
        boxes: ``(N, 4)`` COCO ``(x, y, w, h)``.
        mask: ``(N, K)`` bool, True where a keypoint counts.

    Returns:
        ``(K, 2)`` in fractions of width and height; the centre of the box for keypoints that never count.

    Raises:
        InputError: Shapes that do not fit, or a box without an extent.
    """
    points = as_tensor(keypoints, "keypoints").to(torch.float64)
    corners = _checked_boxes(boxes).to(points.device)
    if points.ndim != 3 or points.shape[-1] != 2 or len(points) != len(corners):
        raise InputError(f"keypoints must be ({len(corners)}, K, 2) for these boxes, got {tuple(points.shape)}")
    counted = visibility(mask, points)[..., None]
    fractions = (points - corners[:, None, :2]) / corners[:, None, 2:]
    sums = torch.where(counted, fractions, torch.zeros_like(fractions)).sum(dim=0)
    number = counted.sum(dim=0)
    centre = torch.full_like(sums, 0.5)
    return torch.where(number > 0, sums / number.clamp_min(1), centre).to(torch.float32)


def pose_in_boxes(pose: ArrayLike, boxes: BoxesLike) -> Tensor:
    """Put one pose into every box.

    Args:
        pose: ``(K, 2)`` fractions of width and height, from :func:`mean_pose`.
        boxes: ``(N, 4)`` COCO ``(x, y, w, h)``.

    Returns:
        ``(N, K, 2)`` x, y in pixels.

    Raises:
        InputError: Shapes that do not fit, or a box without an extent.
    """
    fractions = as_tensor(pose, "pose").to(torch.float64)
    if fractions.ndim != 2 or fractions.shape[1] != 2:
        raise InputError(f"pose must be (K, 2), got {tuple(fractions.shape)}")
    corners = _checked_boxes(boxes).to(fractions.device)
    return (corners[:, None, :2] + fractions * corners[:, None, 2:]).to(torch.float32)


def _checked_boxes(boxes: BoxesLike) -> Tensor:
    corners = as_tensor(boxes, "boxes").to(torch.float64)
    if corners.ndim != 2 or corners.shape[1] != 4 or not (corners[:, 2:] > 0).all():
        raise InputError(f"boxes must be (N, 4) x, y, width, height with extents above 0, got {corners.tolist()}")
    return corners
