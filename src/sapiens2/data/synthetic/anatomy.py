"""Where on the body each vertex lies: coordinates along limbs, fields on the head, and body-part classes of the skin.

All fields are computed on the template, so they are the same for every person and follow shape and pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sapiens2.assets import part_table
from sapiens2.data.synthetic.body_files import data_folder
from sapiens2.data.synthetic.body_model import BodyModel, body_model
from sapiens2.data.synthetic.smoothing import neighbour_table

__all__ = ["Anatomy", "anatomy", "part"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

ARM = ("upperarm01", "lowerarm01", "wrist", "finger3-3")
LEG = ("upperleg01", "lowerleg01", "foot", "toe2-3")
INSIDE = -1.0
"""Limb coordinate of vertices that are not on the leg."""
ARM_METRES, LEG_METRES = 0.26, 0.40
"""Length of a limb's parts on the template."""


def part(name: str) -> int:
    """Class id of a body part."""
    return part_table().names.index(name)


@dataclass(frozen=True, eq=False)
class Anatomy:
    """Fields over the vertices of the base mesh, and the triangles of its groups.

    Attributes:
        triangles: Triangles ``(T, 3)`` of each group.
        arm: ``(V,)`` along either arm: 0 shoulder, 1 elbow, 2 wrist, 3 finger tip; below 0 on the trunk, continuous.
        leg: ``(V,)`` along either leg: 0 hip, 1 knee, 2 ankle, 3 toes; -1 elsewhere.
        place: ``(V, 3)`` the template, metres.
        head: ``(V,)`` 0..1, how much a vertex belongs to head and neck.
        masks: Masks over body vertices 0..1: lips, ears, eyelids, mouth, fingernails, toenails.
        skin_label: ``(T,)`` class of each triangle of the body without clothes.
        neighbours: ``(V, N)`` adjoining vertices of body vertices, -1 padded.
    """

    triangles: dict[str, Ints]
    arm: Floats
    leg: Floats
    place: Floats
    head: Floats
    masks: dict[str, Floats]
    skin_label: Ints
    neighbours: Ints

    @property
    def collar(self) -> Floats:
        """Metres below the plane in which the neck begins: falling to the front, negative on neck and head."""
        x, y, z = self.place.T
        shoulders = 0.8 * np.maximum(np.abs(x) - 0.05, 0)
        return (0.565 + 0.55 * (y + 0.06) - z + shoulders).astype(np.float32)


@cache
def anatomy() -> Anatomy:
    """The fields, computed once per process."""
    model = body_model()
    triangles = {name: triangulated(quads) for name, quads in model.quads.items() if not name.startswith("joint")}
    masks = {name: _mask(model, f"mpfb_{file}.jpg") for name, file in _MASKS.items()}
    arm = _arm_coordinate(model)
    leg = _limb_coordinate(model, LEG, ("upperleg", "lowerleg", "foot", "toe"))
    head = _bone_share(model, ("head", "neck", "eye"))
    body = triangles["body"]
    return Anatomy(
        triangles=triangles,
        arm=arm,
        leg=leg,
        place=model.template,
        head=head,
        masks=masks,
        skin_label=_skin_labels(model, body, arm, leg, masks),
        neighbours=neighbour_table(model.quads["body"], len(model.template)),
    )


_MASKS = {
    "lips": "lips",
    "ears": "ears",
    "eyelids": "eyelids",
    "mouth": "inside-mouth",
    "fingernails": "fingernails",
    "toenails": "toenails",
}


def triangulated(quads: Ints) -> Ints:
    """Two triangles per quad; a triangle written as a quad gives one."""
    halves = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    order = np.arange(len(halves)).reshape(2, -1).T.ravel()
    halves = halves[order]
    return np.ascontiguousarray(halves[halves[:, 1] != halves[:, 2]])


def _bone_share(model: BodyModel, prefixes: Sequence[str]) -> Floats:
    chosen = [index for index, name in enumerate(model.rig.names) if name.startswith(tuple(prefixes))]
    return model.rig.weights[:, chosen].sum(axis=1)


def _limb_coordinate(model: BodyModel, bones: Sequence[str], prefixes: Sequence[str]) -> Floats:
    """Place along a limb: the whole part counts joints, and the fraction is the share of the way to the next."""
    coordinate = np.full(len(model.template), INSIDE, np.float32)
    for side in ("L", "R"):
        joints = _joints(model, bones, side)
        share = _bone_share(model, [f"{name}" for name in prefixes]) * (model.template[:, 0] * _sign(side) > 0)
        own = _along(model.template, joints)
        inner = np.minimum(own, 0.15) - (0.5 - share) * 0.3
        value = np.where(share > 0.5, own, np.where(share > 0.02, inner, INSIDE))
        coordinate = np.where(share > 0.02, value, coordinate).astype(np.float32)
    return coordinate


def aside(place: Floats) -> Floats:
    """Metres outside the planes through armpits and shoulders, below 0 on the trunk."""
    return (np.abs(place[:, 0]) - (0.14 + 0.18 * (0.56 - place[:, 2]))).astype(np.float32)


def _arm_coordinate(model: BodyModel) -> Floats:
    """Place along an arm; on the trunk the distance from the arm, so that armholes and sleeves end smoothly."""
    outside = aside(model.template)
    left = np.column_stack([np.abs(model.template[:, 0]), model.template[:, 1:]])
    own = _along(left, _joints(model, ARM, "L"))
    blend = np.clip(outside / 0.06, 0, 1)
    blend = blend * blend * (3 - 2 * blend)
    return (own * blend + outside / ARM_METRES * (1 - blend)).astype(np.float32)


def _joints(model: BodyModel, bones: Sequence[str], side: str) -> Floats:
    heads = [model.template[model.rig.head_vertices[model.bone(f"{name}.{side}")]].mean(0) for name in bones[:3]]
    tail = model.template[model.rig.tail_vertices[model.bone(f"{bones[3]}.{side}")]].mean(0)
    return np.stack([*heads, tail])


def _sign(side: str) -> int:
    return 1 if side == "L" else -1


def _along(points: Floats, joints: NDArray[np.float32]) -> NDArray[np.float64]:
    """Coordinate of the nearest place on a chain of joints; before the first joint it goes below 0."""
    best, coordinate = np.full(len(points), np.inf), np.zeros(len(points))
    for index, (start, end) in enumerate(pairwise(joints)):
        axis = end - start
        along = (points - start) @ axis / (axis @ axis)
        clipped = np.clip(along, -0.4 if index == 0 else 0.0, 1.2 if index == len(joints) - 2 else 1.0)
        distance = np.linalg.norm(points - start - clipped[:, None] * axis, axis=1)
        nearer = distance < best
        best = np.where(nearer, distance, best)
        coordinate = np.where(nearer, index + clipped, coordinate)
    return coordinate


def _mask(model: BodyModel, file: str) -> Floats:
    """A mask picture, looked up at the texture coordinates of the body's vertices."""
    picture = np.asarray(Image.open(data_folder() / "mpfb2" / "textures" / file).convert("L"), np.float32) / 255
    uvs = model.quad_uvs["body"].reshape(-1, 2)
    size = np.array(picture.shape[::-1])
    columns, rows = np.clip((uvs * [1, -1] + [0, 1]) * size, 0, size - 1).astype(int).T
    mask = np.zeros(len(model.template), np.float32)
    np.maximum.at(mask, model.quads["body"].ravel(), picture[rows, columns])
    return mask


def _skin_labels(model: BodyModel, body: Ints, arm: Floats, leg: Floats, masks: dict[str, Floats]) -> Ints:
    centre = model.template[body].mean(axis=1)
    arm_at, leg_at = arm[body].mean(axis=1), leg[body].mean(axis=1)
    side = np.where(centre[:, 0] > 0, "Left", "Right")
    label = np.full(len(body), part("Torso"))
    names = ("Upper_Arm", "Lower_Arm", "Hand"), ("Upper_Leg", "Lower_Leg", "Foot")
    for at, limb in zip((arm_at, leg_at), names, strict=True):
        for index, name in enumerate(limb):
            chosen = at > (0.0, 1.0, 1.93)[index]
            for own in ("Left", "Right"):
                label[chosen & (side == own)] = part(f"{own}_{name}")
    x, y, z = centre.T
    label[(z > 0.575 + 0.5 * (y + 0.06)) & (np.abs(x) < 0.1)] = part("Face_Neck")
    lips = (masks["lips"][body].min(axis=1) > 0.4) & (masks["mouth"][body].min(axis=1) < 0.6)
    jaw = np.zeros(len(model.template), np.float32)
    opening = model.expressions["jawOpen"]
    jaw[opening.vertices] = -opening.offsets[:, 2]
    lower = jaw[body].mean(axis=1) > 0.5 * np.quantile(jaw[body][lips], 0.9)
    label[lips & ~lower] = part("Upper_Lip")
    label[lips & lower] = part("Lower_Lip")
    return label.astype(np.int32)
