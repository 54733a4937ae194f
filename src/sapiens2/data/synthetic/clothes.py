"""Garments as surfaces: copies of the body pushed outwards, the helper skirt, and shoes on the helper tights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import INSIDE, Anatomy, anatomy, part
from sapiens2.data.synthetic.body_model import PosedBody, body_model
from sapiens2.data.synthetic.layers import Layer
from sapiens2.data.synthetic.materials import MaterialTable, fabric, fabric_color, plain
from sapiens2.data.synthetic.noise import fractal_noise
from sapiens2.data.synthetic.rasteriser import vertex_normals
from sapiens2.data.synthetic.smoothing import smoothed
from sapiens2.data.synthetic.wardrobe import Garment, Outfit

__all__ = ["clothe", "covered"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

OVERLAP = 0.012
"""How far cloth hides what is under it, short of its border: nothing pokes through, and no gap is seen."""

SMOOTHING_ROUNDS = 24
SOLE = 0.014


def covered(outfit: Outfit) -> list[Floats]:
    """For each garment how far inside it every vertex lies, and last the largest of all."""
    fields = [garment.field() for garment in outfit.garments]
    nowhere = np.full(len(anatomy().place), -1.0, np.float32)
    return [*fields, np.max([nowhere, *fields], axis=0)]


def clothe(
    outfit: Outfit, fields: Sequence[Floats], posed: PosedBody, materials: MaterialTable, rng: np.random.Generator
) -> list[Layer]:
    """The layers of an outfit.

    Args:
        outfit: Garments from the skin outwards.
        fields: What :func:`covered` gave.
        posed: The body.
        materials: Fabrics are added to it.
        rng: Fabrics and folds.
    """
    body = anatomy()
    triangles = body.triangles["body"]
    normals = vertex_normals(posed.vertices, triangles)
    hollow = np.einsum(
        "vi,vi->v", smoothed(posed.vertices, body.neighbours, SMOOTHING_ROUNDS) - posed.vertices, normals
    )
    layers = []
    shared = fabric(rng)
    for index, garment in enumerate(outfit.garments):
        outer = zip(outfit.garments[index + 1 :], fields[index + 1 : -1], strict=True)
        above = [own for other, own in outer if _hides(other, garment)]
        cut = np.min([fields[index], *(OVERLAP - own for own in above)], axis=0)
        row = shared if garment.kind in ("upper", "lower", "skirt") and rng.uniform() < 0.12 else fabric(rng)
        if garment.kind in ("sock", "shoe"):
            row = _footwear(garment, rng)
        material = materials.add(row)
        seed = int(rng.integers(1 << 31))
        if garment.kind == "skirt":
            layers.append(_skirt(garment, fields[index], posed, material))
        elif garment.kind == "shoe":
            layers.append(_shoe(garment, cut, posed, material))
        else:
            points = posed.vertices + normals * _offset(garment, fields[index], hollow, body.place, seed)[:, None]
            layers.append(
                Layer(points, triangles, material, _labels(garment, body, triangles), body.place, cut, two_sided=True)
            )
    return layers


def _hides(outer: Garment, inner: Garment) -> bool:
    """Whether a garment lies so close over another that it hides it; a skirt hangs free of what is under it."""
    return outer.kind != "skirt" and not (outer.kind == "shoe" and inner.kind == "lower")


def _offset(garment: Garment, field: Floats, hollow: Floats, place: Floats, seed: int) -> Floats:
    """Distance of the cloth from the skin at each vertex, metres."""
    near_end = np.clip(1 - field / 0.3, 0, 1) ** 1.5 * (place[:, 2] < 0.42)
    folds = np.zeros(len(place), np.float32)
    worn = np.flatnonzero(field > -0.05)
    folds[worn] = fractal_noise(place[worn] * np.array([14.0, 14.0, 22.0]), seed, 2) + 0.3
    offset = garment.thickness + garment.fill * np.clip(hollow, 0, 0.05) + garment.flare * near_end
    return (offset + garment.wrinkle * np.maximum(folds, -0.6)).astype(np.float32)


def _labels(garment: Garment, body: Anatomy, triangles: Ints) -> int | Ints:
    names = {"upper": "Upper_Clothing", "lower": "Lower_Clothing", "skirt": "Lower_Clothing"}
    if garment.kind in names:
        return part(names[garment.kind])
    if garment.kind in ("sock", "shoe"):
        suffix = garment.kind.capitalize()
        left = body.place[triangles].mean(axis=1)[:, 0] > 0
        return np.where(left, part(f"Left_{suffix}"), part(f"Right_{suffix}")).astype(np.int32)
    return part("Apparel")


def _skirt(garment: Garment, field: Floats, posed: PosedBody, material: int) -> Layer:
    body = anatomy()
    triangles = body.triangles["helper-skirt"]
    normals = vertex_normals(posed.vertices, triangles)
    drop = np.clip(garment.waist - body.place[:, 2], 0, None)
    points = posed.vertices + normals * (garment.thickness + garment.flare * drop)[:, None].astype(np.float32)
    return Layer(points, triangles, material, part("Lower_Clothing"), body.place, field, two_sided=True)


def _shoe(garment: Garment, cut: Floats, posed: PosedBody, material: int) -> Layer:
    """A shoe on the foot of the tights, which has no toes; what looks down becomes the sole."""
    body, model = anatomy(), body_model()
    tights = body.triangles["helper-tights"]
    triangles = tights[(body.leg[tights] > 1.0).all(axis=1)]
    normals = vertex_normals(posed.vertices, tights)
    points = posed.vertices + normals * np.float32(garment.thickness)
    for side, sign in (("L", 1), ("R", -1)):
        down = posed.rotations[model.bone(f"foot.{side}")] @ np.array([0, 0, -1], np.float32)
        own = (body.leg > INSIDE) & (body.place[:, 0] * sign > 0)
        sole = np.clip((normals @ down - 0.3) / 0.5, 0, 1) * own * (body.place[:, 2] < -0.75)
        points += sole[:, None].astype(np.float32) * down * np.float32(SOLE)
    return Layer(points, triangles, material, _labels(garment, body, triangles), body.place, cut, two_sided=True)


def _footwear(garment: Garment, rng: np.random.Generator) -> NDArray[np.float32]:
    if garment.kind == "sock":
        light = rng.uniform() < 0.6
        return plain(np.full(3, rng.uniform(0.75, 0.95)) if light else fabric_color(rng), shine=0.0)
    leather = rng.uniform() < 0.5
    color = np.array([0.3, 0.2, 0.14]) * rng.uniform(0.2, 1.8) if leather else fabric_color(rng)
    return plain(np.clip(color, 0.02, 0.95), shine=0.2 if leather else 0.03, shininess=25, mottle=0.05)
