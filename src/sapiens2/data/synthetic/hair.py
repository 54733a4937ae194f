"""Hair: the scalp pushed outwards, and the helper mesh for long hair; strands fray its border."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import anatomy, part
from sapiens2.data.synthetic.body_model import PosedBody
from sapiens2.data.synthetic.layers import Layer
from sapiens2.data.synthetic.materials import MaterialTable, hair_color, plain
from sapiens2.data.synthetic.noise import fractal_noise
from sapiens2.data.synthetic.rasteriser import vertex_normals
from sapiens2.data.synthetic.refinement import Refinement
from sapiens2.data.synthetic.smoothing import smoothed

__all__ = ["Hair", "grow_hair", "hairline", "sample_hair"]

Floats = NDArray[np.float32]

CENTRE = np.array([0.0, -0.05, 0.75])
"""Middle of the template's head."""

FAR = 1.0


@dataclass(frozen=True, eq=False)
class Hair:
    """A style.

    Attributes:
        color: sRGB albedo.
        volume: Distance from the scalp in metres; 0 is bald.
        recession: How much further back it begins, metres.
        length: How far down long hair reaches on the template (z in metres); None for short hair.
        fray: How ragged its border is, metres.
        curl: How lumpy it is, metres.
    """

    color: NDArray[np.float64]
    volume: float
    recession: float
    length: float | None
    fray: float
    curl: float


def sample_hair(rng: np.random.Generator, gender: float, age: float) -> Hair:
    """A style; long ones more often the more feminine the build, grey more often with age."""
    color = hair_color(rng)
    if age > 0.6 and rng.uniform() < 0.7:
        color = np.full(3, rng.uniform(0.45, 0.85)) * np.array([1.0, 0.99, 0.97])
    feminine = gender > 0.5
    long = rng.uniform() < (0.62 if feminine else 0.06)
    bald = not feminine and rng.uniform() < 0.12
    volume = float(
        rng.choice([rng.uniform(0.003, 0.008), rng.uniform(0.01, 0.025), rng.uniform(0.028, 0.06)], p=[0.3, 0.5, 0.2])
    )
    return Hair(
        color=color,
        volume=0.0 if bald else max(volume, 0.012 if long else 0.0),
        recession=float(rng.uniform(-0.004, 0.012) + (0.02 * age * rng.uniform() if not feminine else 0.0)),
        length=float(rng.uniform(0.24, 0.62)) if long else None,
        fray=float(rng.uniform(0.003, 0.014)),
        curl=float(rng.choice([0.0, 0.002, 0.007], p=[0.4, 0.35, 0.25])),
    )


def hairline(place: Floats) -> Floats:
    """How far inside the hairline a place on the template lies, metres; negative on the face and below the nape."""
    x, y, z = place.T
    front = (z - 0.80) + 0.75 * (y + 0.139) - 0.12 * np.abs(x)
    back = np.minimum((y + 0.012) * 1.2, z - 0.655)
    field = np.maximum(np.minimum(front, 0.6 * (z - 0.67)), np.minimum(back, 0.05))
    ears = anatomy().masks["ears"]
    return np.minimum(field, 0.02 - 0.05 * ears).astype(np.float32)


def grow_hair(
    hair: Hair, posed: PosedBody, hat: Floats | None, materials: MaterialTable, rng: np.random.Generator
) -> list[Layer]:
    """The layers of a style.

    Args:
        hair: The style.
        posed: The body.
        hat: Field of what hides the hair, positive where it does; None: nothing.
        materials: The hair's material is added to it.
        rng: Locks.
    """
    if hair.volume == 0.0:
        return []
    material = materials.add(
        plain(
            hair.color,
            second=hair.color * 0.55,
            shine=float(rng.uniform(0.02, 0.2)),
            shininess=18,
            mottle=0.25,
            mottle_scale=150,
        )
    )
    seed = int(rng.integers(1 << 31))
    layers = [_scalp(hair, posed, hat, material, seed)]
    if hair.length is not None:
        layers.append(_long(hair, posed, hat, material, seed))
    return layers


def _strand(place: Floats) -> Floats:
    """A coordinate across strands that run down from the crown; strands are about a millimetre wide."""
    around = np.arctan2(place[:, 0], -(place[:, 1] - CENTRE[1]))
    return (around * 90).astype(np.float32)


def _streaks(place: Floats) -> Floats:
    """Coordinates of the colour's variation, drawn out along the strands."""
    return np.column_stack([_strand(place) * 0.005, np.zeros(len(place)), place[:, 2] * 0.12]).astype(np.float32)


def _scalp(hair: Hair, posed: PosedBody, hat: Floats | None, material: int, seed: int) -> Layer:
    body = anatomy()
    triangles = body.triangles["body"]
    field = hairline(body.place) - np.float32(hair.recession)
    round_head = smoothed(posed.vertices, body.neighbours, 8)
    normals = vertex_normals(round_head, triangles)
    lumps = hair.curl * (fractal_noise(body.place * 45, seed, 2) + 0.4)
    rise = np.clip((field + 0.004) / (0.012 + 0.6 * hair.volume), 0, 1) ** 0.6
    points = posed.vertices + normals * ((hair.volume * rise + 0.0015) + lumps * rise)[:, None].astype(np.float32)
    cut = field if hat is None else np.minimum(field, 0.006 - hat)
    fray = np.where(field > -0.02, hair.fray, 0).astype(np.float32)
    return Layer(
        points,
        triangles,
        material,
        part("Hair"),
        _streaks(body.place),
        cut,
        fray=fray,
        strand=_strand(body.place),
        two_sided=True,
    )


@cache
def _long_hair() -> Refinement:
    return Refinement.of(anatomy().triangles["helper-hair"], 2)


def _long(hair: Hair, posed: PosedBody, hat: Floats | None, material: int, seed: int) -> Layer:
    finer = _long_hair()
    place = finer.values(anatomy().place)
    _, y, z = place.T
    points = finer.values(posed.vertices)
    normals = vertex_normals(points, finer.triangles)
    lumps = 0.5 * hair.curl * fractal_noise(place * 40, seed, 2)
    points = points + normals * (0.3 * hair.volume + lumps)[:, None].astype(np.float32)
    beside_face = y + 0.075 + 0.35 * np.maximum(z - 0.7, 0)
    length = hair.length if hair.length is not None else FAR
    cut = np.minimum(np.maximum(beside_face, 3 * (z - 0.818)), z - length)
    if hat is not None:
        cut = np.minimum(cut, 0.77 - z)
    fray = np.full(len(z), 2.5 * hair.fray, np.float32)
    return Layer(
        points,
        finer.triangles,
        material,
        part("Hair"),
        _streaks(place),
        cut.astype(np.float32),
        fray=fray,
        strand=_strand(place),
        two_sided=True,
    )
