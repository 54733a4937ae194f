"""Hands: fingers curl about axes that follow from the rest pose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.body_model import body_model
from sapiens2.data.synthetic.rotations import about, mirrored, unit

__all__ = ["hand_rotations"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _HandRest:
    palm: Matrix
    across: Matrix
    curl: dict[str, Matrix]


@cache
def _hand_rest() -> _HandRest:
    """Palm normal, the axis of the wrist and the axis about which each bone curls, for the left hand."""
    model = body_model()

    def ends(bone: str) -> tuple[Matrix, Matrix]:
        index = model.bone(f"{bone}.L")
        return (
            model.template[model.rig.head_vertices[index]].mean(0),
            model.template[model.rig.tail_vertices[index]].mean(0),
        )

    wrist, index, little = (ends(bone)[0] for bone in ("wrist", "finger2-1", "finger5-1"))
    palm = -unit(np.cross(index - wrist, little - wrist))
    curl = {}
    for finger in range(1, 6):
        for joint in range(1, 4):
            start, end = ends(f"finger{finger}-{joint}")
            side = palm if finger > 1 else unit(little - index)  # the thumb closes across the palm
            curl[f"finger{finger}-{joint}"] = unit(np.cross(end - start, side))
    return _HandRest(palm, unit(np.cross((index + little) / 2 - wrist, palm)), curl)


def hand_rotations(side: str, rng: np.random.Generator) -> dict[str, Matrix]:
    """Fingers from flat to fist, now and then with some stretched, and a wrist that is little bent."""
    rest = _hand_rest()
    kind = rng.choice(4, p=[0.55, 0.15, 0.15, 0.15])
    closed = float(
        (rng.uniform(0.0, 0.45), rng.uniform(0.7, 1.0), rng.uniform(-0.12, 0.05), rng.uniform(0.2, 0.9))[kind]
    )
    amounts = np.clip(closed + rng.normal(0, 0.07, 6), -0.15, 1.0)
    if kind == 3:
        amounts = np.where(rng.uniform(size=6) < 0.45, rng.uniform(-0.1, 0.1), amounts)
    spread = rng.uniform(-2, 8)
    left: dict[str, Matrix] = {
        "wrist_bend": about(rest.across, rng.normal(5, 14)) @ about(rest.palm, rng.normal(0, 8)),
    }
    for finger in range(2, 6):
        amount = amounts[finger]
        bends = (amount * 75, amount * 95, amount * 55)
        for joint, bend in enumerate(bends, start=1):
            bone = f"finger{finger}-{joint}"
            left[bone] = about(rest.curl[bone], float(bend))
        fan = (finger - 3.4) * spread * float(1 - max(amount, 0.0))
        left[f"finger{finger}-1"] = about(rest.palm, fan) @ left[f"finger{finger}-1"]
    for joint, limit in ((1, 18), (2, 35), (3, 55)):
        bone = f"finger1-{joint}"
        left[bone] = about(rest.curl[bone], float(np.clip(amounts[1], -0.1, 1) * limit))
    return {f"{bone}.{side}": own if side == "L" else mirrored(own) for bone, own in left.items()}
