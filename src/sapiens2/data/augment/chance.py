"""Random draws, transforms in a row or by chance, and what of a sample they have to carry along."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sapiens2.data.sample import Sample

__all__ = ["Compose", "KeepTruth", "Randomly", "Transform", "between", "happens", "truncated_normal"]


class Transform(Protocol):
    """Changes a sample. It keeps nothing between calls, can be pickled, and draws from the generator alone."""

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Change a sample.

        Args:
            sample: The sample; it is not changed in place.
            rng: Source of all randomness: the same state gives the same result.
        """
        ...


@dataclass(frozen=True)
class Compose:
    """Transforms one after the other.

    Attributes:
        transforms: First to last.
    """

    transforms: tuple[Transform, ...]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Apply all."""
        for transform in self.transforms:
            sample = transform(sample, rng)
        return sample


@dataclass(frozen=True)
class Randomly:
    """A transform that happens by chance.

    Attributes:
        p: Probability.
        transform: The transform.
    """

    p: float
    transform: Transform

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Apply it, or not."""
        return self.transform(sample, rng) if happens(rng, self.p) else sample


@dataclass(frozen=True)
class KeepTruth:
    """Forget what a task does not need, before time is spent on it.

    Attributes:
        truths: Names of the fields to keep, besides the image and the mask.
    """

    truths: tuple[str, ...]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Forget the rest."""
        kept = {*self.truths, "mask"}
        forgotten: dict[str, Any] = {name: None for name in sample.truths if name not in kept}
        return replace(sample, **forgotten)


def happens(rng: np.random.Generator, p: float) -> bool:
    """True with probability ``p``; a number is drawn in any case, so what follows does not depend on ``p``."""
    return bool(rng.random() < p)


def between(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    """A number drawn uniformly between two limits."""
    return float(rng.uniform(*limits))


def truncated_normal(rng: np.random.Generator) -> float:
    """A number of the standard normal distribution within -1 and 1."""
    while True:
        value = float(rng.standard_normal())
        if abs(value) <= 1:
            return value
