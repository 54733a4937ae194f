"""The one geometric transform of a sample: an affine map of its pixels, built up step by step.

Convention: pixel centres at integers, x right, y down; sizes are (height, width).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.geometry import letterbox_geometry
from sapiens2.types import SizeHW

__all__ = ["Affine"]

Matrix = NDArray[np.float64]

_MAX_SKEW = 1e-3
"""Largest skew, relative to the focal length, that is taken for rounding."""


@dataclass(frozen=True, eq=False)
class Affine:
    """A map from the pixels of a source picture to those of a target picture.

    Every method that changes the picture returns a new map, with that change after all earlier ones.

    Attributes:
        matrix: ``(2, 3)`` float64, ``target = matrix @ (x, y, 1)``.
        source_hw: Height and width of the source.
        target_hw: Height and width of the target.

    Convention: see the module.
    """

    matrix: Matrix
    source_hw: SizeHW
    target_hw: SizeHW

    def __post_init__(self) -> None:
        if self.matrix.shape != (2, 3) or not np.isfinite(self.matrix).all():
            raise InputError(f"The matrix is {self.matrix.tolist()}; expected 2 x 3 finite numbers.")
        if min(*self.source_hw, *self.target_hw) < 1:
            raise InputError(f"The sizes are {self.source_hw} and {self.target_hw}; each side must be at least 1.")
        if abs(np.linalg.det(self.matrix[:, :2])) < 1e-12:
            raise InputError(f"The matrix {self.matrix.tolist()} brings all pixels onto a line; it has no inverse.")

    @classmethod
    def identity(cls, size_hw: SizeHW) -> Affine:
        """The map that changes nothing."""
        return cls(np.eye(2, 3), size_hw, size_hw)

    def then(self, matrix: Matrix, target_hw: SizeHW) -> Affine:
        """Add a map from the present target to a new one.

        Args:
            matrix: ``(2, 3)``.
            target_hw: Size of the new target.
        """
        linear = matrix[:, :2] @ self.matrix
        linear[:, 2] += matrix[:, 2]
        return Affine(linear, self.source_hw, target_hw)

    def flipped(self) -> Affine:
        """Mirror left and right: ``x → W - 1 - x``."""
        return self.then(np.array([[-1.0, 0.0, self.target_hw[1] - 1], [0.0, 1.0, 0.0]]), self.target_hw)

    def resized(self, size_hw: SizeHW) -> Affine:
        """Scale to a size, pixel areas aligned: ``x → (x + 0.5) w / W - 0.5``."""
        scale_y, scale_x = (new / old for new, old in zip(size_hw, self.target_hw, strict=True))
        matrix = np.array([[scale_x, 0.0, 0.5 * scale_x - 0.5], [0.0, scale_y, 0.5 * scale_y - 0.5]])
        return self.then(matrix, size_hw)

    def scaled(self, factor: float) -> Affine:
        """Scale both sides by the same factor; the size is rounded, the scale is not, so that pixels stay square."""
        height, width = (max(1, round(side * factor)) for side in self.target_hw)
        offset = 0.5 * factor - 0.5
        return self.then(np.array([[factor, 0.0, offset], [0.0, factor, offset]]), (height, width))

    def cropped(self, top: int, left: int, size_hw: SizeHW) -> Affine:
        """Cut out a window of whole pixels, which may reach out of the picture."""
        return self.then(np.array([[1.0, 0.0, -left], [0.0, 1.0, -top]]), size_hw)

    def rotated(self, degrees: float) -> Affine:
        """Turn about the centre on the same canvas; positive angles turn x towards y, clockwise on the screen."""
        centre = np.array([self.target_hw[1] - 1, self.target_hw[0] - 1]) / 2
        return self.then(_turn(centre, degrees), self.target_hw)

    def letterboxed(self, size_hw: SizeHW) -> Affine:
        """Scale to fit into a size, and centre in it; see :class:`sapiens2.geometry.Letterbox`."""
        box = letterbox_geometry(self.target_hw, size_hw)
        return self.resized(box.scaled_hw).cropped(-box.top, -box.left, size_hw)

    def windowed(
        self, centre_xy: tuple[float, float], window_wh: tuple[float, float], size_hw: SizeHW, degrees: float = 0.0
    ) -> Affine:
        """Bring a window onto a size with UDP scaling, as :func:`sapiens2.geometry.crop_people` does.

        Args:
            centre_xy: Centre of the window.
            window_wh: Width and height of the window.
            size_hw: Size of the target, each side at least 2; its first and last pixels lie on the window's edges.
            degrees: Angle by which the picture turns about the centre of the window.

        Raises:
            InputError: The window is empty, or a side is below 2.
        """
        if min(size_hw) < 2 or not min(window_wh) > 0:
            raise InputError(f"A window of {window_wh} for a crop of {size_hw}; expected a positive one, and 2 x 2.")
        steps = [(side - 1) / extent for side, extent in zip(reversed(size_hw), window_wh, strict=True)]
        corner = [middle - extent / 2 for middle, extent in zip(centre_xy, window_wh, strict=True)]
        turned = self.then(_turn(np.array(centre_xy), degrees), self.target_hw) if degrees else self
        matrix = np.array([[steps[0], 0.0, -corner[0] * steps[0]], [0.0, steps[1], -corner[1] * steps[1]]])
        return turned.then(matrix, size_hw)

    @property
    def inverse(self) -> Matrix:
        """``(2, 3)`` map from the target back to the source."""
        linear = np.linalg.inv(self.matrix[:, :2])
        return np.column_stack([linear, -linear @ self.matrix[:, 2]])

    @property
    def is_mirrored(self) -> bool:
        """Whether left and right are exchanged."""
        return bool(np.linalg.det(self.matrix[:, :2]) < 0)

    @property
    def scales_xy(self) -> tuple[float, float]:
        """Target pixels per source pixel along the source's x and y axis."""
        return math.hypot(*self.matrix[:, 0]), math.hypot(*self.matrix[:, 1])

    def points(self, points_xy: NDArray[np.floating]) -> NDArray[np.float64]:
        """Map points ``(..., 2)`` from the source to the target."""
        mapped: NDArray[np.float64] = points_xy.astype(np.float64) @ self.matrix[:, :2].T + self.matrix[:, 2]
        return mapped

    def boxes(self, boxes_xywh: NDArray[np.floating]) -> NDArray[np.float64]:
        """Map boxes ``(N, 4)``: the extent of their four corners, so a turned box gets larger."""
        low, extent = boxes_xywh[:, None, :2], boxes_xywh[:, None, 2:]
        corners = self.points(low + extent * np.array([[0, 0], [1, 0], [0, 1], [1, 1]]))  # (N, 4, 2)
        first = corners.min(axis=1)
        return np.concatenate([first, corners.max(axis=1) - first], axis=1)

    def camera(self, intrinsics: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """Find the camera of the target, and how its axes lie to those of the source's camera.

        The map of pixels times the camera matrix is the new camera matrix times a turn or mirroring in the image plane.

        Args:
            intrinsics: ``(3, 3)`` of the source; None for square pixels of unknown size.

        Returns:
            Camera matrix ``(3, 3)`` of the target, and the orthogonal ``(2, 2)`` that X and Y of points and normals
            have to be multiplied by.

        Raises:
            InputError: The target's pixel axes would not be at right angles, which no camera matrix of the models
                describes: a turn of pixels that are not square.

        Convention: OpenCV camera.
        """
        source = np.eye(3) if intrinsics is None else intrinsics
        mixed = self.matrix[:, :2] @ source[:2, :2]
        focal_y = math.hypot(*mixed[1])
        down = mixed[1] / focal_y
        right = np.array([down[1], -down[0]]) * (1 if np.linalg.det(mixed) > 0 else -1)
        focal_x, skew = float(mixed[0] @ right), float(mixed[0] @ down)
        if abs(skew) > _MAX_SKEW * focal_x:
            raise InputError(
                f"Turning pixels that are not square (f_x = {source[0, 0]:.6g}, f_y = {source[1, 1]:.6g}) skews the "
                f"camera by {skew / focal_x:.2g}. Turn before the aspect changes, or resize the pictures first."
            )
        camera = np.diag([focal_x, focal_y, 1.0])
        camera[:2, 2] = self.matrix @ [source[0, 2], source[1, 2], 1.0]
        return camera, np.stack([right, down])


def _turn(centre_xy: NDArray[np.floating], degrees: float) -> Matrix:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    linear = np.array([[cosine, -sine], [sine, cosine]])
    return np.column_stack([linear, centre_xy - linear @ centre_xy])
