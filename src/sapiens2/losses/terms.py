"""What a training recipe returns: one total, and the terms that it is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from sapiens2.errors import InputError

__all__ = ["LossTerms", "logarithmic_above"]


@dataclass(frozen=True, eq=False)
class LossTerms:
    """The terms of a recipe and their weights.

    Attributes:
        terms: Name to scalar loss, not yet weighted.
        weights: Name to weight, for the same names.

    Example:
        >>> losses = normal_recipe_loss(normals, targets)
        >>> losses.total.backward()
        >>> losses.terms["cosine"].item()
    """

    terms: Mapping[str, Tensor]
    weights: Mapping[str, float]

    @classmethod
    def collect(cls, candidates: Mapping[str, tuple[float, Callable[[], Tensor]]]) -> LossTerms:
        """Evaluate the terms whose weight is not 0.

        Args:
            candidates: Name to a weight and a function that computes the term.

        Raises:
            InputError: A weight is negative or not finite, or all are 0.
        """
        for name, (weight, _) in candidates.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise InputError(f"The weight of the loss term {name!r} must be a number >= 0, got {weight}.")
        wanted = {name: candidate for name, candidate in candidates.items() if candidate[0] > 0}
        if not wanted:
            raise InputError(f"All loss terms ({', '.join(candidates)}) have weight 0; give at least one a weight > 0.")
        return cls(
            terms={name: compute() for name, (_, compute) in wanted.items()},
            weights={name: float(weight) for name, (weight, _) in wanted.items()},
        )

    @property
    def total(self) -> Tensor:
        """Weighted sum of the terms: the scalar to differentiate."""
        return torch.stack([self.weights[name] * term for name, term in self.terms.items()]).sum()

    def detached(self) -> dict[str, Tensor]:
        """Return the total (as ``"total"``) and the unweighted terms without their graph, for logging."""
        values = {"total": self.total, **self.terms}
        return {name: value.detach() for name, value in values.items()}


def logarithmic_above(value: Tensor, limit: float) -> Tensor:
    """Let a loss grow only logarithmically above a limit.

    The value is unchanged up to ``limit`` and ``limit · (1 + ln(value / limit))`` above it. Both value and slope are
    continuous, and the slope ``limit / value`` never vanishes: a bad start is damped without losing its gradient, as
    it would behind a clamp.

    Args:
        value: Scalar >= 0.
        limit: Where the logarithm takes over, > 0.

    Returns:
        Scalar.
    """
    tail = limit * (1 + (value.clamp_min(limit) / limit).log())
    return torch.where(value > limit, tail, value)
