"""Sums that do not depend on the order of their terms."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sapiens2.errors import InputError

__all__ = ["ExactSum"]


class ExactSum:
    """A sum of float64 numbers without rounding; only reading its value rounds, once.

    Float addition is not associative: the same images, spread over two processes instead of one, would give a result
    that differs in its last digits. Here the sum is held as a few floats whose exact total it is, so any order and
    any grouping of the terms give the same bits.

    Source: Shewchuk, Adaptive Precision Floating-Point Arithmetic, Discrete & Computational Geometry 18, 1997.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[float] = ()) -> None:
        self._parts: list[float] = _expansion([float(part) for part in parts])

    def add(self, term: float) -> None:
        """Add a finite number.

        Raises:
            InputError: The number is NaN or infinite.
        """
        self._parts = _expansion([*self._parts, float(term)])

    def merge(self, other: ExactSum) -> None:
        """Add all that another sum holds."""
        self._parts = _expansion(self._parts + other._parts)

    @property
    def parts(self) -> list[float]:
        """Floats whose exact sum this is, largest first; equal sums have equal parts."""
        return list(self._parts)

    @property
    def value(self) -> float:
        """The sum, rounded to the nearest float64."""
        return self._parts[0] if self._parts else 0.0


def _expansion(terms: list[float]) -> list[float]:
    """The canonical form: each part is what remains of the sum after the parts before it, rounded to float64."""
    if not all(map(math.isfinite, terms)):
        raise InputError(f"only finite numbers can be summed, got {terms}")
    parts: list[float] = []
    while (rest := math.fsum([*terms, *(-part for part in parts)])) != 0:
        parts.append(rest)
    return parts
