"""Whether a pose passes through itself, by capsules around bones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.body_model import body_model, means

__all__ = ["joint_places", "passes_through_itself"]

Matrix = NDArray[np.float64]

CAPSULES: Mapping[str, tuple[str, str, float]] = {
    "belly": ("spine05", "spine03", 0.145),
    "chest": ("spine03", "spine01", 0.145),
    "head": ("neck03", "head", 0.09),
    **{f"fore{s}": (f"lowerarm02.{s}", f"wrist.{s}", 0.035) for s in "LR"},
    **{f"hand{s}": (f"wrist.{s}", f"finger3-2.{s}", 0.03) for s in "LR"},
    **{f"thigh{s}": (f"upperleg02.{s}", f"lowerleg01.{s}", 0.08) for s in "LR"},
    **{f"shin{s}": (f"lowerleg01.{s}", f"foot.{s}", 0.05) for s in "LR"},
}
"""Bones whose beginnings are the ends of a capsule, and its radius in metres."""

_ARM_PARTS = ("fore", "hand")
PAIRS = (
    *((f"{own}{s}", trunk) for own in _ARM_PARTS for s in "LR" for trunk in ("belly", "chest", "head")),
    *((f"{own}{s}", f"thigh{o}") for own in _ARM_PARTS for s in "LR" for o in "LR"),
    *((f"{own}L", f"{other}R") for own in _ARM_PARTS for other in _ARM_PARTS),
    *((f"{own}L", f"{other}R") for own in ("thigh", "shin") for other in ("thigh", "shin")),
)
_NUMBER = {name: number for number, name in enumerate(CAPSULES)}
FIRST, SECOND = np.array([[_NUMBER[one], _NUMBER[other]] for one, other in PAIRS]).T
TOUCHING = np.array([CAPSULES[one][2] + CAPSULES[other][2] for one, other in PAIRS])
"""Distance below which the capsules of a pair overlap."""


@cache
def _rest() -> Matrix:
    model = body_model()
    return means(model.template, model.rig.head_vertices)


def joint_places(rotations: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """Where the bones of the template begin in a pose."""
    model, rest = body_model(), _rest()
    turned: list[Matrix] = []
    places: list[Matrix] = []
    for bone, (name, parent) in enumerate(zip(model.rig.names, model.rig.parents, strict=True)):
        own = rotations.get(name)
        base = np.eye(3) if parent < 0 else turned[parent]
        turned.append(base if own is None else base @ own)
        places.append(rest[bone] if parent < 0 else places[parent] + base @ (rest[bone] - rest[parent]))
    return dict(zip(model.rig.names, places, strict=True))


def passes_through_itself(rotations: Mapping[str, Matrix]) -> bool:
    """Whether two capsules that never touch in the rest pose overlap."""
    places = joint_places(rotations)
    steps = np.linspace(0, 1, 7)[:, None]
    starts = np.array([places[start] for start, _, _ in CAPSULES.values()])[:, None]
    ends = np.array([places[end] for _, end, _ in CAPSULES.values()])[:, None]
    along = starts + steps * (ends - starts)  # (capsules, 7, 3)
    between = along[FIRST, :, None] - along[SECOND, None]  # (pairs, 7, 7, 3)
    distances = np.sqrt((between**2).sum(axis=3).min(axis=(1, 2)))
    return bool((distances < TOUCHING).any())
