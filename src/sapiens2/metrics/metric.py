"""What all metrics have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from sapiens2.errors import InputError
from sapiens2.metrics.totals import Totals

__all__ = ["Metric"]


class Metric(ABC):
    """A measure that is fed image by image: ``update(...)`` as often as wanted, then ``compute()``.

    The same images give the same figures, to the last bit, in whatever order and through however many processes: each
    process updates its own metric, sends :meth:`state`, and one of them merges. Sums are float64, without rounding.

    What was never measured is NaN, never 0, and :meth:`notes` says why. A subclass takes keyword arguments, returns
    them from :meth:`settings`, and has an ``update`` of its own.
    """

    def __init__(self) -> None:
        self._totals = Totals()

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; a name ends in its unit unless it is a fraction, score or count."""

    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the figures needs: what is missing from them, and why."""
        return () if self._totals.count_of("images") else ("no image was seen",)

    def merge(self, other: Metric) -> None:
        """Add all that another metric has seen; the other stays as it is.

        Raises:
            InputError: The other is another metric, or was made with other arguments.
        """
        if type(other) is not type(self):
            raise InputError(f"{type(self).__name__} cannot be merged with {type(other).__name__}")
        own, others = self.settings(), other.settings()
        if differing := sorted(name for name in own if own[name] != others[name]):
            found = "; ".join(f"{name}: {own[name]!r} and {others[name]!r}" for name in differing)
            raise InputError(f"metrics with different settings cannot be merged, got {found}")
        self._merge(other)

    def state(self) -> dict[str, Any]:
        """All of this metric, as JSON can hold it without loss: to be stored, or sent to another process."""
        return {"metric": type(self).__name__, "settings": self.settings(), "totals": self._totals.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a metric from what :meth:`state` gave.

        Raises:
            InputError: It is the state of another metric, or damaged.
        """
        if (name := state.get("metric")) != cls.__name__:
            raise InputError(f"this is the state of {name!r}; {cls.__name__} cannot be restored from it")
        try:
            metric = cls(**state["settings"])
            metric._restore(state)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"the state of {cls.__name__} is damaged: {error!r}") from error
        return metric

    def report(self) -> dict[str, Any]:
        """Figures with all that is needed to read them, as strict JSON can hold it: NaN and infinity become None."""
        values = {name: value if math.isfinite(value) else None for name, value in self.compute().items()}
        return {
            "metric": type(self).__name__,
            "settings": self.settings(),
            "values": values,
            "notes": list(self.notes()),
        }

    def _merge(self, other: Self) -> None:
        self._totals.merge(other._totals)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._totals = Totals.from_state(state["totals"])
