"""Cameras that frame people, and the lamp's view for shadows.

Convention: world metres, z up; camera as OpenCV, x right, y down, z forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.types import SizeHW

__all__ = ["Camera", "look_at"]


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera.

    Attributes:
        rotation: ``(3, 3)`` world to camera.
        position: ``(3,)`` in the world, metres.
        intrinsics: ``(3, 3)`` pixels.
        size_hw: Height and width of the picture.
    """

    rotation: NDArray[np.float64]
    position: NDArray[np.float64]
    intrinsics: NDArray[np.float64]
    size_hw: SizeHW

    def points(self, world: NDArray[np.floating]) -> NDArray[np.float64]:
        """World points ``(..., 3)`` in the frame of the camera."""
        # Written out, not a matrix product: libraries round those differently from one thread count to another.
        moved = world.astype(np.float64) - self.position
        return self.directions(moved)

    def directions(self, world: NDArray[np.floating]) -> NDArray[np.float64]:
        """World vectors ``(..., 3)`` in the frame of the camera."""
        rows = self.rotation
        return np.stack(
            [world[..., 0] * row[0] + world[..., 1] * row[1] + world[..., 2] * row[2] for row in rows], axis=-1
        )

    def project(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Pixels ``(..., 2)`` of camera points; NaN behind the camera."""
        z = np.where(points[..., 2] > 1e-3, points[..., 2], np.nan)
        focal = self.intrinsics[[0, 1], [0, 1]]
        return points[..., :2] / z[..., None] * focal + self.intrinsics[:2, 2]


def look_at(position: NDArray[np.float64], target: NDArray[np.float64], roll: float = 0.0) -> NDArray[np.float64]:
    """Rotation ``(3, 3)`` from the world to a camera that looks at a point; ``roll`` turns it in radians."""
    forward = target - position
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    down = np.cross(forward, right)
    turn = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    rows: NDArray[np.float64] = turn @ np.stack([right, down, forward])
    return rows
