"""Which pictures a seed stands for: the same for folders on the disk and for people that are streamed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sapiens2.data.synthetic.synthetic_sample import MAX_PEOPLE
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
        size_hw: Height and width, each at least 16.
        people: Fewest and most people in a picture; 0 makes pictures without people.
        seed: Seed of the series.

    Raises:
        InputError: A number is out of range.
    """

    count: int
    size_hw: SizeHW
    people: tuple[int, int] = (1, 1)
    seed: int = 0

    def __post_init__(self) -> None:
        low, high = self.people
        if not 0 <= low <= high <= MAX_PEOPLE:
            raise InputError(f"people must be a range within 0 to {MAX_PEOPLE}, got {low}-{high}")
        if not 0 < self.count <= SEEDS_PER_SERIES:
            raise InputError(f"count must be 1 to {SEEDS_PER_SERIES}, got {self.count}")
        if min(self.size_hw) < 16:
            raise InputError(f"size_hw must be at least 16 pixels each way, got {self.size_hw}")
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, got {self.seed}")

    def picture(self, index: int) -> tuple[int, int]:
        """Seed of a picture and the number of its people.

        Args:
            index: 0 to ``count - 1``.
        """
        seed = self.seed * SEEDS_PER_SERIES + index
        low, high = self.people
        return seed, int(np.random.default_rng([seed, _PEOPLE_STREAM]).integers(low, high + 1))
