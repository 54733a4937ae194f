"""Things that are no people: floor, wall, furniture, balls and poles, behind people and in front of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.layers import Layer
from sapiens2.data.synthetic.materials import MaterialTable, fabric
from sapiens2.data.synthetic.rotations import about

__all__ = ["box", "clutter", "floor", "occluders", "wall"]

Points = NDArray[np.float64]

COARSE = 0.15
"""Patterns on floors and walls are larger than those of clothes."""

_CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)
_CUBE_QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def box(centre: Points, half: Points, turn: float, material: int) -> Layer:
    """A box, turned about the vertical by degrees."""
    corners = _CUBE[_CUBE_QUADS].reshape(-1, 3) * half  # corners are not shared: edges stay sharp
    quads = np.arange(24).reshape(6, 4)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return _thing(corners @ about((0.0, 0.0, 1.0), turn).T + centre, triangles, material, corners)


def _round(centre: Points, radii: Points, material: int, *, pole: bool) -> Layer:
    """A ball, or a pole, with 20 sides."""
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 21), np.linspace(-1, 1, 3 if pole else 13))
    width = np.ones_like(up) if pole else np.cos(up * np.pi / 2)
    height = up if pole else np.sin(up * np.pi / 2)
    own = np.stack([np.cos(around) * width, np.sin(around) * width, height], axis=-1).reshape(-1, 3) * radii
    return _thing(own + centre, _grid(*up.shape), material, own)


def floor(material: int, reach: float) -> Layer:
    """The ground at z = 0, in pieces small enough to be left out one by one behind the camera."""
    x, y = np.meshgrid(np.linspace(-reach, reach, 33), np.linspace(-reach, reach, 33))
    points = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    return _thing(points, _grid(33, 33), material, points[:, [0, 2, 1]] * COARSE)


def wall(material: int, distance: float, turn: float, reach: float) -> Layer:
    """A wall behind the origin."""
    x, z = np.meshgrid(np.linspace(-reach, reach, 17), np.linspace(0, reach, 17))
    points = np.stack([x, np.full_like(x, distance), z], axis=-1).reshape(-1, 3)
    return _thing(points @ about((0.0, 0.0, 1.0), turn).T, _grid(17, 17), material, points * COARSE)


def clutter(
    rng: np.random.Generator, materials: MaterialTable, distance: tuple[float, float], fewest: int = 0
) -> list[Layer]:
    """Up to nine things behind the people, some of them as large as people."""
    return [
        _something(rng, materials, np.array([rng.uniform(-3, 3), rng.uniform(*distance)]), rng.uniform(0.08, 0.55))
        for _ in range(int(rng.integers(fewest, 10)))
    ]


def occluders(
    rng: np.random.Generator, materials: MaterialTable, places: Sequence[Points], camera: Points
) -> list[Layer]:
    """One or two things between the camera and places on people."""
    layers = []
    for _ in range(int(rng.integers(1, 3))):
        target = places[int(rng.integers(len(places)))]
        share = rng.uniform(0.2, 0.45)
        centre = target + share * (camera - target) + rng.normal(0, 0.16, 3)
        size = rng.uniform(0.03, 0.16) * (1 - share) * np.linalg.norm(camera - target) / 3
        layers.append(_shape(rng, materials, centre, size * np.exp(rng.normal(0, 0.6, 3))))
    return layers


def _something(rng: np.random.Generator, materials: MaterialTable, place: Points, size: float) -> Layer:
    half = size * np.exp(rng.normal(0, 0.5, 3)) * [1, 1, 1.5]
    lift = half[2] if rng.uniform() < 0.75 else half[2] + rng.uniform(0, 1.8)
    return _shape(rng, materials, np.array([*place, lift]), half)


def _shape(rng: np.random.Generator, materials: MaterialTable, centre: Points, half: Points) -> Layer:
    material = materials.add(fabric(rng))
    kind = rng.choice(3, p=[0.5, 0.25, 0.25])
    if kind == 0:
        return box(centre, half, float(rng.uniform(0, 90)), material)
    return _round(centre, half, material, pole=kind == 2)


def _grid(rows: int, columns: int) -> NDArray[np.int64]:
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    quads = np.stack([first, first + 1, first + columns + 1, first + columns], axis=1)
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def _thing(points: Points, triangles: NDArray[np.int64], material: int, pattern: Points) -> Layer:
    return Layer(
        points.astype(np.float32), triangles.astype(np.int32), material, 0, pattern.astype(np.float32), two_sided=True
    )
