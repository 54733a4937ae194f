"""One person: figure, pose, clothes, hair and what they wear on the head, as surfaces in the world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import Anatomy, anatomy, part
from sapiens2.data.synthetic.body_model import BodyModel, PosedBody, body_model
from sapiens2.data.synthetic.clothes import OVERLAP, clothe, covered
from sapiens2.data.synthetic.face_colors import body_tint
from sapiens2.data.synthetic.hair import grow_hair, sample_hair
from sapiens2.data.synthetic.headwear import wear_on_head
from sapiens2.data.synthetic.layers import Layer
from sapiens2.data.synthetic.materials import MaterialTable, plain, skin, skin_tone
from sapiens2.data.synthetic.pose import Pose
from sapiens2.data.synthetic.rotations import about
from sapiens2.data.synthetic.shape import Figure, sample_expression, sample_figure
from sapiens2.data.synthetic.wardrobe import sample_outfit

__all__ = ["Person", "dress_person", "pose_person"]

Floats = NDArray[np.float32]

LASHES_PER_METRE, LASH_GAPS = 1500, -0.3
"""Lashes are strands of the helper mesh; the lower the second number, the fewer."""


@dataclass(frozen=True, eq=False)
class Person:
    """A person in the world.

    Attributes:
        posed: The body, world metres.
        layers: Its surfaces.
    """

    posed: PosedBody
    layers: list[Layer]


def pose_person(
    figure: Figure, expression: dict[str, float], pose: Pose, turn: NDArray[np.float64], gaze: tuple[float, float]
) -> PosedBody:
    """Pose a body, turned by a rotation of the root.

    Args:
        figure: Who it is.
        expression: Facial actions.
        pose: What they do.
        turn: ``(3, 3)`` rotation of the whole body in the world.
        gaze: Where the eyes look, to the person's left and down, degrees.
    """
    model = body_model()
    look = about((0.0, 0.0, 1.0), gaze[0]) @ about((1.0, 0.0, 0.0), gaze[1])
    rotations = {**pose.rotations, "root": turn, "eye.L": look, "eye.R": look}
    return model.posed(model.shaped(figure.weights, figure.details, expression), rotations)


def sample_person_body(rng: np.random.Generator, pose: Pose, turn: NDArray[np.float64]) -> tuple[Figure, PosedBody]:
    """Draw a figure, an expression and a gaze for a pose."""
    figure = sample_figure(rng)
    gaze = float(np.clip(rng.normal(0, 9), -25, 25)), float(np.clip(rng.normal(2, 6), -15, 18))
    return figure, pose_person(figure, sample_expression(rng), pose, turn, gaze)


def dress_person(figure: Figure, posed: PosedBody, materials: MaterialTable, rng: np.random.Generator) -> Person:
    """Give a body skin, eyes, clothes, hair and headwear."""
    model, body = body_model(), anatomy()
    outfit = sample_outfit(rng, figure.gender)
    fields = covered(outfit)
    tone = skin_tone(rng)
    hair = sample_hair(rng, figure.gender, figure.age)
    hat, on_head = wear_on_head(posed, materials, rng)
    layers = [
        _skin(model, body, posed, OVERLAP - fields[-1], body_tint(rng, figure, hair.color, tone), materials, rng, tone),
        *_eyes(body, posed, materials, rng),
        *_mouth(body, posed, materials),
        *clothe(outfit, fields, posed, materials, rng),
        *grow_hair(hair, posed, hat, materials, rng),
        *on_head,
    ]
    return Person(posed, layers)


def _skin(
    model: BodyModel,
    body: Anatomy,
    posed: PosedBody,
    cut: Floats,
    tint: Floats,
    materials: MaterialTable,
    rng: np.random.Generator,
    tone: NDArray[np.float64],
) -> Layer:
    material = materials.add(skin(rng, tone))
    return Layer(posed.vertices, body.triangles["body"], material, body.skin_label, model.template, cut=cut, tint=tint)


def _eyes(body: Anatomy, posed: PosedBody, materials: MaterialTable, rng: np.random.Generator) -> list[Layer]:
    iris = np.array(((0.25, 0.15, 0.08), (0.35, 0.24, 0.12), (0.3, 0.42, 0.55), (0.33, 0.4, 0.25))[rng.choice(4)])
    row = plain(np.full(3, rng.uniform(0.78, 0.92)), second=iris * rng.uniform(0.6, 1.2), shine=0.5, shininess=80)
    row[0] = 1  # an eye: the pattern's coordinates are those of the ball
    material = materials.add(row)
    model = body_model()
    layers = []
    for side in "lr":
        triangles = body.triangles[f"helper-{side}-eye"]
        vertices = np.unique(triangles)
        own = model.template[vertices]
        bone = model.bone(f"eye.{side.upper()}")
        centre = model.template[model.rig.head_vertices[bone]].mean(0)
        axis = model.template[model.rig.tail_vertices[bone]].mean(0) - centre
        axis = axis / np.linalg.norm(axis)
        pattern = np.zeros_like(model.template)
        along = (own - centre) @ axis
        off_axis = own - centre - along[:, None] * axis
        radius = np.linalg.norm(own - centre, axis=1).max()
        pattern[vertices, 0] = np.linalg.norm(off_axis, axis=1) / radius + (along < 0) * 2
        layers.append(Layer(posed.vertices, triangles, material, part("Face_Neck"), pattern))
    return layers


def _mouth(body: Anatomy, posed: PosedBody, materials: MaterialTable) -> list[Layer]:
    teeth = materials.add(plain((0.88, 0.85, 0.78), shine=0.3, shininess=40))
    tongue = materials.add(plain((0.66, 0.33, 0.33), shine=0.15, shininess=20))
    lashes = materials.add(plain((0.05, 0.04, 0.04), shine=0.0))
    place = body.place
    layers = [
        Layer(posed.vertices, body.triangles["helper-upper-teeth"], teeth, part("Upper_Teeth"), place, two_sided=True),
        Layer(posed.vertices, body.triangles["helper-lower-teeth"], teeth, part("Lower_Teeth"), place, two_sided=True),
        Layer(posed.vertices, body.triangles["helper-tongue"], tongue, part("Tongue"), place),
    ]
    hairs = {
        "cut": np.full(len(place), LASH_GAPS, np.float32),
        "fray": np.ones(len(place), np.float32),
        "strand": place[:, 0] * LASHES_PER_METRE,
    }
    for side in "lr":
        for lid in (1, 2):
            triangles = body.triangles[f"helper-{side}-eyelashes-{lid}"]
            layers.append(Layer(posed.vertices, triangles, lashes, part("Face_Neck"), place, two_sided=True, **hairs))
    return layers
