"""Who a person is: build, age, face and expression, as weights of the body's targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.body_files import (
    AGES,
    CUPS,
    ETHNICITIES,
    FIRMNESSES,
    GENDERS,
    HEIGHTS,
    LOCAL_TARGETS,
    MUSCLES,
    PROPORTIONS,
    WEIGHTS,
)
from sapiens2.data.synthetic.body_model import body_model

__all__ = ["Figure", "sample_expression", "sample_figure"]


@dataclass(frozen=True, eq=False)
class Figure:
    """Build and face of a person.

    Attributes:
        gender: 0 male to 1 female.
        age: 0 young to 1 old.
        weights: ``(T,)`` of the body's macro targets.
        details: ``(D,)`` of the local details, -1..1.
    """

    gender: float
    age: float
    weights: NDArray[np.float64]
    details: NDArray[np.float64]


def sample_figure(rng: np.random.Generator) -> Figure:
    """An adult."""
    gender = float(np.clip(rng.choice([0.08, 0.92]) + rng.normal(0, 0.08), 0, 1))
    age = float(rng.beta(1.1, 1.6))
    factors = {
        **_between(GENDERS, gender),
        **_between(AGES, age),
        **_between(MUSCLES, float(rng.beta(2.2, 2.2))),
        **_between(WEIGHTS, float(rng.beta(2.2, 2.0))),
        **_between(HEIGHTS, float(rng.beta(3, 3))),
        **_between(PROPORTIONS, float(rng.beta(1.2, 2.5))),
        **_between(CUPS, float(rng.beta(2, 2))),
        **_between(FIRMNESSES, float(rng.beta(2, 2))),
        **dict(zip(ETHNICITIES, rng.dirichlet([0.5, 0.5, 0.5]), strict=True)),
    }
    weights = np.array([np.prod([factors[name] for name in own]) for own in body_model().factors])
    details = np.clip(rng.normal(0, 0.38, len(LOCAL_TARGETS)), -0.9, 0.9)
    return Figure(gender, age, weights, details)


def sample_expression(rng: np.random.Generator) -> dict[str, float]:
    """A calm face, a smile, talk, surprise, a frown, or shut eyes; left and right nearly alike."""
    values: dict[str, float] = {}

    def both(stem: str, amount: float) -> None:
        for side in ("Left", "Right"):
            values[f"{stem}{side}"] = float(np.clip(amount * rng.uniform(0.85, 1.15), 0, 1))

    mood = rng.choice(6, p=[0.4, 0.26, 0.14, 0.07, 0.07, 0.06])
    if mood == 1:
        smile = rng.uniform(0.2, 0.85)
        both("mouthSmile", smile)
        both("cheekSquint", 0.5 * smile)
        if rng.uniform() < 0.5:
            both("mouthUpperUp", rng.uniform(0.1, 0.4))
            both("mouthLowerDown", rng.uniform(0.0, 0.35))
    elif mood == 2:
        values["jawOpen"] = float(rng.uniform(0.05, 0.4))
        values[str(rng.choice(["mouthFunnel", "mouthPucker", "mouthShrugUpper"]))] = float(rng.uniform(0, 0.5))
        both("mouthStretch", rng.uniform(0, 0.4))
    elif mood == 3:
        values["jawOpen"] = float(rng.uniform(0.15, 0.6))
        values["browInnerUp"] = float(rng.uniform(0.3, 0.9))
        both("browOuterUp", rng.uniform(0.2, 0.9))
        both("eyeWide", rng.uniform(0.1, 0.7))
    elif mood == 4:
        both("browDown", rng.uniform(0.3, 0.9))
        both("mouthFrown", rng.uniform(0.1, 0.8))
        both("noseSneer", rng.uniform(0, 0.4))
    elif mood == 5:
        both("eyeBlink", rng.uniform(0.5, 1.0))
    if mood != 5 and "eyeWideLeft" not in values:
        both("eyeBlink", abs(rng.normal(0.06, 0.09)))
        both("eyeSquint", abs(rng.normal(0, 0.15)))
    return {name: value for name, value in values.items() if value > 0.01}


def _between(names: tuple[str, ...], value: float) -> dict[str, float]:
    """Weights of anchors spread evenly over 0..1, linear between the two around ``value``."""
    place = np.clip(value, 0, 1) * (len(names) - 1)
    return {name: float(max(1 - abs(place - index), 0.0)) for index, name in enumerate(names)}
