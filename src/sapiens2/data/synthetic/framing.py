"""How much of people the camera shows, and from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import anatomy
from sapiens2.data.synthetic.body_model import BODY_VERTICES, PosedBody
from sapiens2.data.synthetic.camera import Camera, look_at
from sapiens2.data.synthetic.rotations import about
from sapiens2.types import SizeHW

__all__ = ["FRAMINGS", "Framing", "frame_people"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Framing:
    """A part of the body that fills the picture.

    Attributes:
        share: How often it is drawn.
        low: Lowest height on the template, metres, of what is to be seen.
        high: Highest.
        fov_deg: Range of the vertical field of view.
    """

    share: float
    low: float
    high: float
    fov_deg: tuple[float, float]


FRAMINGS: Mapping[str, Framing] = {
    "full": Framing(0.46, -1.0, 1.0, (18, 62)),
    "knees": Framing(0.11, -0.45, 1.0, (18, 60)),
    "waist": Framing(0.19, 0.02, 1.0, (18, 58)),
    "bust": Framing(0.14, 0.4, 1.0, (15, 50)),
    "face": Framing(0.06, 0.6, 1.0, (12, 42)),
    "legs": Framing(0.04, -1.0, 0.15, (18, 55)),
}
"""What is framed, most often whole figures."""


def frame_people(
    rng: np.random.Generator, bodies: Sequence[PosedBody], size_hw: SizeHW, framing: str
) -> tuple[Camera, Vector, float]:
    """A camera that shows people, and the middle and radius of what it looks at.

    Without people it looks at where one would be.
    """
    own = FRAMINGS[framing]
    place = anatomy().place
    chosen = np.flatnonzero((place[:, 2] >= own.low) & (place[:, 2] <= own.high))
    chosen = chosen[chosen < BODY_VERTICES][::7]
    if framing in ("bust", "face"):
        chosen = chosen[anatomy().arm[chosen] < 1.0]
    points = (
        np.concatenate([body.vertices[chosen] for body in bodies])
        if bodies
        else place[:BODY_VERTICES:7] + np.array([0, 0, 0.85])
    )
    points = points.astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, radius = (low + high) / 2, float(np.linalg.norm(high - low) / 2)
    height, width = size_hw
    focal = height / 2 / np.tan(np.radians(rng.uniform(*own.fov_deg)) / 2)
    intrinsics = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1.0]])
    elevation = float(np.clip(rng.normal(4, 11), -25, 50))
    direction = about((0.0, 0.0, 1.0), rng.normal(0, 8)) @ about((1.0, 0.0, 0.0), -elevation) @ [0.0, -1.0, 0.0]
    roll = np.radians(rng.normal(0, 3.5))
    fill = rng.uniform(0.62, 0.98) if framing == "full" else rng.uniform(0.8, 1.15)
    target, distance = middle.copy(), 3 * radius
    for _ in range(4):
        camera = _camera(target + distance * direction, target, roll, intrinsics, size_hw)
        seen = camera.points(points)
        pixels = camera.project(np.maximum(seen, [-np.inf, -np.inf, 0.1]))
        first, last = pixels.min(axis=0), pixels.max(axis=0)
        ratio = float(np.max((last - first) / [width, height]) / fill)
        offset = (first + last) / 2 - intrinsics[:2, 2]
        target = target + camera.rotation[:2].T @ (offset * distance / focal)
        distance = max(distance * ratio, radius + 0.3)
    slack = rng.uniform(-0.5, 0.5, 2) * np.maximum(1 - fill, 0.06) * [width, height]
    target = target + camera.rotation[:2].T @ (slack * distance / focal)
    return _camera(target + distance * direction, target, roll, intrinsics, size_hw), middle, radius


def _camera(position: Vector, target: Vector, roll: float, intrinsics: Vector, size_hw: SizeHW) -> Camera:
    return Camera(look_at(position, target, float(roll)), position, intrinsics, size_hw)
