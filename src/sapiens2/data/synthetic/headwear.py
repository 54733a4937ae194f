"""Hats and glasses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import anatomy, part
from sapiens2.data.synthetic.body_model import BODY_VERTICES, PosedBody, body_model
from sapiens2.data.synthetic.layers import Layer
from sapiens2.data.synthetic.materials import MaterialTable, fabric, fabric_color, plain
from sapiens2.data.synthetic.rasteriser import vertex_normals
from sapiens2.data.synthetic.smoothing import smoothed

__all__ = ["wear_on_head"]

Floats = NDArray[np.float32]
Points = NDArray[np.float64]


def wear_on_head(
    posed: PosedBody, materials: MaterialTable, rng: np.random.Generator
) -> tuple[Floats | None, list[Layer]]:
    """What is worn on the head: the field of a hat (None without one), and all layers."""
    layers: list[Layer] = []
    if rng.uniform() < 0.24:
        layers += _glasses(posed, materials, rng)
    kind = rng.choice(4, p=[0.86, 0.06, 0.05, 0.03])
    if kind == 0:
        return None, layers
    _, y, z = anatomy().place.T
    height = rng.uniform(-0.012, 0.012)
    slope = 0.35 if kind == 2 else 0.12
    field = (z - 0.775 - height + slope * (y + 0.05)).astype(np.float32)
    field = np.where(anatomy().masks["ears"] > 0.3, -0.02, field).astype(np.float32)
    material = materials.add(fabric(rng))
    layers.append(_crown(posed, field, material, float(rng.uniform(0.014, 0.028))))
    if kind != 2:
        layers.append(_brim(posed, height, slope, material, all_around=kind == 3, reach=float(rng.uniform(0.05, 0.08))))
    return field, layers


def _crown(posed: PosedBody, field: Floats, material: int, thickness: float) -> Layer:
    body = anatomy()
    triangles = body.triangles["body"]
    normals = vertex_normals(smoothed(posed.vertices, body.neighbours, 8), triangles)
    rise = np.clip(0.6 + field / 0.05, 0.6, 1)
    points = posed.vertices + normals * (thickness * rise)[:, None].astype(np.float32)
    return Layer(points, triangles, material, part("Apparel"), body.place, field, two_sided=True)


def _head_frame(posed: PosedBody) -> tuple[Points, Points]:
    """Rotation of the head and where the template's origin went with it."""
    model = body_model()
    bone = model.bone("head")
    rotation = posed.rotations[bone].astype(np.float64)
    return rotation, posed.heads[bone] - rotation @ posed.rest_heads[bone]


def _head_size(posed: PosedBody) -> tuple[Points, Points]:
    """Corners of the box around the person's own head above the eyes, in the rest pose."""
    body = anatomy()
    chosen = (body.place[:, 2] > 0.775) & (body.head > 0.9)
    chosen[BODY_VERTICES:] = False
    own = posed.rest[chosen].astype(np.float64)
    return own.min(axis=0), own.max(axis=0)


def _brim(posed: PosedBody, height: float, slope: float, material: int, *, all_around: bool, reach: float) -> Layer:
    rotation, origin = _head_frame(posed)
    low, high = _head_size(posed)
    centre, half = (low + high) / 2, (high - low) / 2
    spread = np.pi if all_around else 1.15
    angles = np.linspace(-spread, spread, 33)
    rings = []
    for out in (0.0, 0.5, 1.0):
        fade = 1.0 if all_around else np.sqrt(np.clip(1 - (np.abs(angles) / spread) ** 4, 0, 1))
        radius = 0.008 + reach * out * fade
        x = np.sin(angles) * (half[0] + radius)
        y = centre[1] - np.cos(angles) * (half[1] + radius)
        z = np.full_like(angles, low[2] + height + 0.006) - slope * (y - centre[1]) - 0.012 * out
        rings.append(np.stack([x + centre[0], y, z], axis=1))
    points = np.concatenate(rings)
    triangles = _grid_triangles(3, len(angles))
    world = points @ rotation.T + origin
    return Layer(
        world.astype(np.float32), triangles, material, part("Apparel"), points.astype(np.float32), two_sided=True
    )


def _grid_triangles(rows: int, columns: int) -> NDArray[np.int32]:
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    quads = np.stack([first, first + 1, first + columns + 1, first + columns], axis=1)
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int32)


def _glasses(posed: PosedBody, materials: MaterialTable, rng: np.random.Generator) -> list[Layer]:
    """Two rims, a bridge and temples as tubes; sunglasses have lenses."""
    rotation, origin = _head_frame(posed)
    model = body_model()
    eyes = [posed.rest[model.rig.head_vertices[model.bone(f"eye.{side}")]].mean(0, dtype=np.float64) for side in "LR"]
    ear = float(np.abs(posed.rest[anatomy().masks["ears"] > 0.5, 0]).max()) - 0.012
    half = np.array([rng.uniform(0.022, 0.03), rng.uniform(0.014, 0.026)])
    forward = float(rng.uniform(0.026, 0.032))
    roundness = float(rng.choice([2.0, 4.0]))
    thickness = float(rng.uniform(0.001, 0.0028))
    frame = materials.add(plain(fabric_color(rng) * rng.uniform(0.2, 1.0), shine=0.4, shininess=50))
    lines: list[Points] = []
    lenses: list[Points] = []
    angles = np.linspace(0, 2 * np.pi, 25)
    for eye in eyes:
        cos, sin = np.cos(angles), np.sin(angles)
        x = np.sign(cos) * np.abs(cos) ** (2 / roundness) * half[0]
        z = np.sign(sin) * np.abs(sin) ** (2 / roundness) * half[1]
        bend = 0.25 * np.abs(x + np.sign(eye[0]) * half[0]) * (np.sign(x) == np.sign(eye[0]))
        rim = np.stack([eye[0] * 1.02 + x, eye[1] - forward + bend, eye[2] - 0.003 + z], axis=1)
        lines.append(rim)
        lenses.append(rim)
        side = np.sign(eye[0])
        hinge = np.array([eye[0] * 1.02 + side * half[0], eye[1] - forward + 0.008, eye[2] + 0.004])
        lines.append(
            np.stack([hinge, [side * ear, eye[1] + 0.02, eye[2] + 0.004], [side * ear, eye[1] + 0.075, eye[2] - 0.004]])
        )
    inner = abs(eyes[0][0]) * 1.02 - half[0]
    level = eyes[0][2] + 0.002
    front = eyes[0][1] - forward - 0.002
    lines.append(np.array([[-inner, front, level], [0, front - 0.001, level + 0.003], [inner, front, level]]))
    layers = [_tube(line, thickness, rotation, origin, frame) for line in lines]
    if rng.uniform() < 0.35:
        glass = materials.add(plain(np.array([0.05, 0.05, 0.06]) * rng.uniform(0.5, 4), shine=0.9, shininess=90))
        layers += [_lens(rim, rotation, origin, glass) for rim in lenses]
    return layers


def _tube(line: Points, radius: float, rotation: Points, origin: Points, material: int) -> Layer:
    """A tube with six sides along a line."""
    along = np.gradient(line, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.cross(along, [0.13, 0.21, 0.97])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    up = np.cross(along, across)
    angles = np.linspace(0, 2 * np.pi, 7)
    ring = np.cos(angles)[None, :, None] * across[:, None] + np.sin(angles)[None, :, None] * up[:, None]
    points = (line[:, None] + radius * ring).reshape(-1, 3)
    world = (points @ rotation.T + origin).astype(np.float32)
    triangles = _grid_triangles(len(line), len(angles))
    return Layer(world, triangles, material, part("Eyeglass"), points.astype(np.float32), two_sided=True)


def _lens(rim: Points, rotation: Points, origin: Points, material: int) -> Layer:
    points = np.concatenate([rim.mean(axis=0, keepdims=True) + np.array([0, -0.002, 0]), rim])
    count = len(rim)
    fan = np.array([[0, i, i + 1] for i in range(1, count)], np.int32)
    world = (points @ rotation.T + origin).astype(np.float32)
    return Layer(world, fan, material, part("Eyeglass"), points.astype(np.float32), two_sided=True)
