"""Poses: what people do with arms, legs, trunk and hands, within the limits of their joints.

Limbs are described for the left side and mirrored for the right. A pose whose forearms or legs pass through the
body is drawn again.

Source: ranges of motion after Kapandji, The Physiology of the Joints, narrowed to what is common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.body_model import body_model
from sapiens2.data.synthetic.hands import hand_rotations
from sapiens2.data.synthetic.rotations import about, between, mirrored, unit
from sapiens2.data.synthetic.self_contact import passes_through_itself

__all__ = ["Pose", "sample_pose", "walking_pose"]

Matrix = NDArray[np.float64]
Rotations = dict[str, Matrix]

X, Y, Z = np.eye(3)
ATTEMPTS = 12


@dataclass(frozen=True, eq=False)
class Pose:
    """Rotations of bones relative to their parents, in the axes of the rest pose.

    Attributes:
        rotations: Bone -> ``(3, 3)``.
        name: What the legs do: standing, walking, sitting, ...
    """

    rotations: Mapping[str, Matrix]
    name: str


def sample_pose(rng: np.random.Generator) -> Pose:
    """A pose, likely ones more often; arms at rest when no other pose without self-contact was found."""
    stance = str(rng.choice(list(_LEGS), p=[0.5, 0.24, 0.12, 0.06, 0.08]))
    trunk, legs = _trunk(rng, stance), _LEGS[stance](rng)
    for _ in range(ATTEMPTS):
        rotations = trunk | legs | _arms(rng, stance)
        if not passes_through_itself(rotations):
            return Pose(rotations, stance)
        legs = _LEGS[stance](rng)
    calm = _trunk(rng, "standing") | _standing(rng) | _both_arms((14, 0, 15, 0, 0), (14, 0, 15, 0, 0), rng)
    return Pose(calm, "standing")


def walking_pose(rng: np.random.Generator, phase: float) -> Pose:
    """A step of a walk; ``phase`` counts whole cycles, and all else is drawn from ``rng``."""
    stride, swing, bend = rng.uniform(18, 30), rng.uniform(12, 30), rng.uniform(10, 35)
    lean, sway = rng.uniform(0, 6), rng.uniform(2, 6)
    rotations: Rotations = {}
    for side, offset in (("L", 0.0), ("R", 0.5)):
        cycle = 2 * np.pi * (phase + offset)
        flexion = stride * np.sin(cycle) + 5
        knee = 8 + 48 * max(np.sin(cycle + 1.1), 0.0) ** 2
        rotations |= _leg(side, flexion, 1.0, 4.0, knee, 8 * np.sin(cycle + 2.2))
    for side, offset in (("L", 0.5), ("R", 0.0)):
        forward = swing * np.sin(2 * np.pi * (phase + offset))
        rotations |= _arm_and_hand(side, (9.0, forward, bend + 0.3 * forward, 0.0, 20.0), rng)
    rotations |= _spine(lean, sway * np.sin(2 * np.pi * phase), 0.0)
    rotations |= _neck(rng.uniform(-8, 8), rng.uniform(-15, 15), 0.0)
    return Pose(rotations, "walking")


def _trunk(rng: np.random.Generator, stance: str) -> Rotations:
    bend = {"sitting": 8.0, "crouching": 22.0, "active": 12.0}.get(stance, 3.0)
    spine = _spine(bend + rng.normal(0, 7), rng.normal(0, 10), rng.normal(0, 5))
    turn = np.clip(rng.normal(0, 22), -60, 60)
    return spine | _neck(float(np.clip(rng.normal(3, 13), -30, 35)), float(turn), float(rng.normal(0, 6)))


def _spine(bend: float, twist: float, lean: float) -> Rotations:
    own = about(Z, twist / 5) @ about(Y, lean / 5) @ about(X, bend / 5)
    return {f"spine0{index}": own for index in range(1, 6)}


def _neck(nod: float, turn: float, tilt: float) -> Rotations:
    shares = {"neck01": 0.2, "neck02": 0.2, "neck03": 0.2, "head": 0.4}
    return {bone: about(Z, turn * s) @ about(Y, tilt * s) @ about(X, nod * s) for bone, s in shares.items()}


def _leg(side: str, flexion: float, outward: float, turn: float, knee: float, toes: float) -> Rotations:
    """A leg in degrees: raised forward, spread, turned outward, knee bent, toes down."""
    left = {
        "upperleg01": about(Y, -outward) @ about(X, -flexion) @ about(Z, turn),
        "lowerleg01": about(X, knee),
        "foot": about(X, toes),
    }
    return _on_side(left, side)


def _on_side(left: Mapping[str, Matrix], side: str) -> Rotations:
    return {f"{bone}.{side}": own if side == "L" else mirrored(own) for bone, own in left.items()}


def _legs(left: tuple[float, ...], right: tuple[float, ...]) -> Rotations:
    return _leg("L", *left) | _leg("R", *right)


def _either(rng: np.random.Generator, one: tuple[float, ...], other: tuple[float, ...]) -> Rotations:
    return _legs(one, other) if rng.uniform() < 0.5 else _legs(other, one)


def _standing(rng: np.random.Generator) -> Rotations:
    spread, turn = rng.uniform(-3, 9), rng.uniform(-3, 14)
    one = (rng.normal(0, 4), spread, turn + rng.normal(0, 4), max(rng.normal(4, 4), 0.0), 0.0)
    free = rng.uniform() < 0.4  # the weight is on the other leg
    bend = rng.uniform(8, 28) if free else max(rng.normal(4, 4), 0.0)
    other = (bend * 0.5 + rng.normal(0, 4), spread + rng.uniform(0, 5), turn + rng.normal(0, 4), bend, bend * 0.3)
    return _either(rng, one, other)


def _stepping(rng: np.random.Generator) -> Rotations:
    stride = rng.uniform(10, 34)
    ahead = (stride, rng.normal(1, 2), rng.normal(3, 3), rng.uniform(2, 16), rng.uniform(-8, 4))
    behind = (-stride * rng.uniform(0.3, 0.8), rng.normal(1, 2), rng.normal(3, 3), rng.uniform(8, 55), 12.0)
    return _either(rng, ahead, behind)


def _sitting(rng: np.random.Generator) -> Rotations:
    hip, knee, spread = rng.uniform(72, 98), rng.uniform(60, 100), rng.uniform(0, 18)
    own = [(hip + rng.normal(0, 4), spread, rng.normal(0, 4), knee + rng.normal(0, 10), 0.0) for _ in range(2)]
    return _legs(own[0], own[1])


def _crouching(rng: np.random.Generator) -> Rotations:
    one = (rng.uniform(60, 105), rng.uniform(4, 18), 4.0, rng.uniform(70, 130), -10.0)
    other = (rng.uniform(-5, 80), rng.uniform(2, 12), 4.0, rng.uniform(70, 125), 15.0)
    return _either(rng, one, other)


def _active(rng: np.random.Generator) -> Rotations:
    raised = (rng.uniform(25, 85), rng.uniform(0, 28), rng.uniform(-5, 20), rng.uniform(5, 95), rng.uniform(-10, 20))
    other = (rng.uniform(-22, 12), rng.uniform(0, 22), rng.uniform(0, 12), rng.uniform(2, 30), rng.uniform(-5, 10))
    return _either(rng, raised, other)


_LEGS = {
    "standing": _standing,
    "walking": _stepping,
    "sitting": _sitting,
    "crouching": _crouching,
    "active": _active,
}

Arm = tuple[float, float, float, float, float]
"""Away from the side, forward, elbow, inward turn of the upper arm, inward turn of the forearm; degrees."""


def _arms(rng: np.random.Generator, stance: str) -> Rotations:
    one = _arm_habit(rng, stance)
    other = one if rng.uniform() < 0.3 else _arm_habit(rng, stance)
    if one is other:
        other = tuple(value + rng.normal(0, 5) for value in one)  # type: ignore[assignment]
    return _both_arms(one, other, rng)


def _both_arms(left: Arm, right: Arm, rng: np.random.Generator) -> Rotations:
    return _arm_and_hand("L", left, rng) | _arm_and_hand("R", right, rng)


def _arm_and_hand(side: str, arm: Arm, rng: np.random.Generator) -> Rotations:
    rotations = _arm(side, *arm) | hand_rotations(side, rng)
    rotations[f"wrist.{side}"] = rotations[f"wrist.{side}"] @ rotations.pop(f"wrist_bend.{side}")
    return rotations


_ARM_HABITS: dict[str, tuple[tuple[float, float], ...]] = {
    "hanging": ((5, 22), (-14, 16), (4, 35), (-12, 12), (-20, 50)),
    "busy": ((4, 35), (12, 60), (40, 112), (-5, 45), (-20, 60)),
    "hip": ((38, 56), (-26, -6), (84, 108), (20, 50), (-10, 40)),
    "across": ((8, 26), (8, 34), (78, 104), (38, 62), (-20, 30)),
    "aside": ((45, 98), (-10, 35), (0, 80), (-40, 20), (-20, 60)),
    "raised": ((95, 165), (5, 50), (0, 85), (-40, 15), (-20, 40)),
    "ahead": ((4, 25), (60, 105), (0, 60), (-10, 25), (-20, 60)),
    "head": ((30, 88), (30, 80), (112, 140), (-20, 25), (-20, 30)),
}
_HABIT_SHARES = (0.38, 0.2, 0.07, 0.09, 0.09, 0.06, 0.05, 0.06)


def _arm_habit(rng: np.random.Generator, stance: str) -> Arm:
    shares = np.array(_HABIT_SHARES)
    if stance in ("sitting", "crouching"):
        shares[0] *= 0.4
    name = str(rng.choice(list(_ARM_HABITS), p=shares / shares.sum()))
    away, forward, elbow, turn, roll = (float(rng.uniform(*limits)) for limits in _ARM_HABITS[name])
    return away, forward, elbow, turn, roll


@dataclass(frozen=True, eq=False)
class _ArmRest:
    upper: Matrix
    fore: Matrix
    elbow_axis: Matrix
    elbow_bend: float


@cache
def _arm_rest() -> _ArmRest:
    model = body_model()
    shoulder, elbow, wrist = (
        model.template[model.rig.head_vertices[model.bone(f"{name}.L")]].mean(0)
        for name in ("upperarm01", "lowerarm01", "wrist")
    )
    upper, fore = unit(elbow - shoulder), unit(wrist - elbow)
    return _ArmRest(upper, fore, unit(np.cross(upper, fore)), float(np.degrees(np.arccos(upper @ fore))))


def _arm(side: str, away: float, forward: float, elbow: float, turn: float, roll: float) -> Rotations:
    """An arm in degrees, see :data:`Arm`; the shoulder girdle follows an arm that is raised."""
    rest = _arm_rest()
    aside, ahead = np.radians(away), np.radians(forward)
    level = -np.cos(aside)
    direction = np.array([np.sin(aside), level * np.sin(ahead) if level < 0 else -0.4 * np.sin(ahead), 0.0])
    direction[2] = level * np.cos(ahead) if level < 0 else level
    direction = unit(direction)
    raised = float(np.degrees(np.arccos(np.clip(-direction[2], -1, 1))))
    girdle = about(Y, -0.25 * max(raised - 40, 0.0))
    swing = between(rest.upper, girdle.T @ direction)
    left = {
        "shoulder01": girdle,
        "upperarm01": swing @ about(rest.upper, turn / 2),
        "upperarm02": about(rest.upper, turn / 2),
        "lowerarm01": about(rest.elbow_axis, elbow - rest.elbow_bend) @ about(rest.fore, roll * 0.3),
        "lowerarm02": about(rest.fore, roll * 0.4),
        "wrist": about(rest.fore, roll * 0.3),
    }
    return _on_side(left, side)
