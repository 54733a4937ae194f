"""What a metric remembers of the images it has seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.metrics.exact_sum import ExactSum

__all__ = ["Totals"]


class Totals:
    """Named sums of floats and named counts (integers, or arrays of integers), all exact.

    A name that was never added to has a sum and a count of 0.
    """

    def __init__(self) -> None:
        self._sums: dict[str, ExactSum] = {}
        self._counts: dict[str, NDArray[np.int64]] = {}

    def add(self, name: str, term: float) -> None:
        """Add a finite number to a sum."""
        self._sums.setdefault(name, ExactSum()).add(term)

    def count(self, name: str, number: int | NDArray[np.int64]) -> None:
        """Add to a count; an array is added element by element."""
        self._counts[name] = self._counts.get(name, np.int64(0)) + np.asarray(number, np.int64)

    def sum_of(self, name: str) -> float:
        """The sum, rounded once."""
        return self._sums[name].value if name in self._sums else 0.0

    def count_of(self, name: str) -> int:
        """A count that is one integer."""
        return int(self._counts[name]) if name in self._counts else 0

    def counts_of(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """A count that is an array; zeros of ``shape`` when nothing was counted."""
        return self._counts.get(name, np.zeros(shape, np.int64))

    def mean(self, name: str, per: str) -> float:
        """A sum divided by a count; NaN when that is 0."""
        count = self.count_of(per)
        return self.sum_of(name) / count if count else math.nan

    def share(self, name: str, per: str) -> float:
        """A count divided by another; NaN when that is 0."""
        count = self.count_of(per)
        return self.count_of(name) / count if count else math.nan

    def merge(self, other: Totals) -> None:
        """Add all that another one holds; the order of merging changes nothing, to the last bit."""
        for name, total in other._sums.items():
            self._sums.setdefault(name, ExactSum()).merge(total)
        for name, number in other._counts.items():
            self.count(name, number)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON can hold it without loss."""
        return {
            "sums": {name: self._sums[name].parts for name in sorted(self._sums)},
            "counts": {name: self._counts[name].tolist() for name in sorted(self._counts)},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Totals:
        """Restore what :meth:`state` gave.

        Raises:
            InputError: Counts that are no integers, or sums that are not finite.
            KeyError: An entry is missing.
        """
        totals = cls()
        totals._sums = {name: ExactSum(parts) for name, parts in state["sums"].items()}
        for name, number in state["counts"].items():
            array = np.asarray(number)
            if array.dtype.kind not in "iu":
                raise InputError(f"the count {name!r} must hold integers, got {array.dtype}")
            totals._counts[name] = array.astype(np.int64)
        return totals
