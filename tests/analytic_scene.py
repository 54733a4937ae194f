"""A sphere before a tilted wall, seen by a pinhole camera: the truth of every map at every place, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from sapiens2.data import Sample

CENTRE, RADIUS = np.array([0.15, -0.1, 3.0]), 0.8
WALL_NORMAL = np.array([0.3, -0.2, -1.0]) / np.linalg.norm([0.3, -0.2, -1.0])
WALL_POINT = np.array([0.0, 0.0, 5.0])
HEIGHT, WIDTH = 90, 120
INTRINSICS = np.array([[110.0, 0.0, 57.0], [0.0, 110.0, 46.0], [0.0, 0.0, 1.0]])


def look(u: Any, v: Any, intrinsics: Any = INTRINSICS) -> tuple[Any, Any, Any]:
    """Point (3, ...), normal (3, ...) and whether it is the sphere, at continuous pixel places."""
    rays = np.stack(
        [
            (u - intrinsics[0, 2]) / intrinsics[0, 0],
            (v - intrinsics[1, 2]) / intrinsics[1, 1],
            np.ones_like(u, dtype=float),
        ]
    )
    along = np.einsum("i...,i->...", rays, CENTRE)
    square = (rays**2).sum(axis=0)
    root = along**2 - square * (CENTRE @ CENTRE - RADIUS**2)
    hit = root > 0
    near = np.where(hit, (along - np.sqrt(np.maximum(root, 0))) / square, np.inf)
    wall = (WALL_NORMAL @ WALL_POINT) / np.einsum("i...,i->...", rays, WALL_NORMAL)
    points = rays * np.where(hit, near, wall)
    away = (points - CENTRE.reshape(3, *[1] * (rays.ndim - 1))) / RADIUS
    normals = np.where(hit, away, WALL_NORMAL.reshape(3, *[1] * (rays.ndim - 1)))
    return points, normals, hit


def albedo(u: Any, v: Any) -> Any:
    """Smooth colours (3, ...)."""
    return np.stack([0.5 + 0.3 * np.sin(u / 9), 0.5 + 0.3 * np.cos(v / 11), 0.5 + 0.2 * np.sin((u + v) / 13)])


def alpha(u: Any, v: Any) -> Any:
    """A soft disc."""
    return 1 / (1 + np.exp((np.hypot(u - 60, v - 45) - 25) / 4))


def scene() -> Sample:
    v, u = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    points, normals, hit = look(u, v)
    colours, matte = albedo(u, v), alpha(u, v)
    parts = np.where(hit, np.where(u < 60, 6, 15), 0)  # Left_Hand and Right_Hand
    keypoints = np.zeros((1, 308, 3), np.float32)
    keypoints[0, :, :2] = np.stack([20 + np.arange(308) % 80, 10 + np.arange(308) % 70], axis=-1)
    keypoints[0, ::2, 2], keypoints[0, 1::2, 2] = 2, 1
    return Sample(
        image=np.rint(colours * 255).astype(np.uint8).transpose(1, 2, 0).copy(),
        keypoints=keypoints,
        boxes_xywh=np.array([[30, 20, 50, 60]], np.float32),
        parts=parts.astype(np.uint8),
        normals=normals.astype(np.float32),
        pointmap=points.astype(np.float32),
        intrinsics=INTRINSICS.copy(),
        alpha=matte.astype(np.float32),
        foreground=(colours * matte).astype(np.float32),
        albedo=colours.astype(np.float32),
        name="scene",
    )
