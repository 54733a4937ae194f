"""Which pictures a seed stands for: the same for folders on the disk and for people that are streamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sapiens2._numbers import whole_number
from sapiens2.data.synthetic.synthetic_sample import MAX_PEOPLE, checked_size
from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["SEEDS_PER_SERIES", "PictureSeries"]

SEEDS_PER_SERIES = 10_000_000
"""Pictures of a series have neighbouring seeds; series with other seeds share none."""

_PEOPLE_STREAM = 99


@dataclass(frozen=True)
class PictureSeries:
    """Pictures that follow from one seed.

    Attributes:
        count: How many.
        size_hw: Height and width, each 16 to 4096.
        people: Fewest and most people in a picture; 0 makes pictures without people.
        seed: Seed of the series.

    Raises:
        InputError: A number is out of range, or none.
    """

    count: int
    size_hw: SizeHW
    people: tuple[int, int] = (1, 1)
    seed: int = 0

    def __post_init__(self) -> None:
        values = {
            "count": whole_number("count", self.count, 1, SEEDS_PER_SERIES),
            "size_hw": checked_size(self.size_hw),
            "people": _checked_range(self.people),
            "seed": whole_number("seed", self.seed, 0),
        }
        for name, value in values.items():  # numpy's numbers and lists become what JSON and comparisons know
            object.__setattr__(self, name, value)

    def picture(self, index: int) -> tuple[int, int]:
        """Seed of a picture and the number of its people.

        Args:
            index: 0 to ``count - 1``.
        """
        seed = self.seed * SEEDS_PER_SERIES + index
        low, high = self.people
        return seed, int(np.random.default_rng([seed, _PEOPLE_STREAM]).integers(low, high + 1))


def _checked_range(people: Any) -> tuple[int, int]:
    if not isinstance(people, tuple | list) or len(people) != 2:
        raise InputError(f"people must be (fewest, most), got {people!r}")
    low, high = (whole_number("people", number, 0, MAX_PEOPLE) for number in people)
    if low > high:
        raise InputError(f"people must be a range within 0 to {MAX_PEOPLE}, got {low}-{high}")
    return low, high
