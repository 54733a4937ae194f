"""People that are made when they are asked for: nothing lies on the disk."""

from __future__ import annotations

from torch.utils.data import Dataset

from sapiens2.assets import keypoint_table, part_table
from sapiens2.data.sample import Sample
from sapiens2.data.synthetic import FRAMING_NAMES, PictureSeries, render
from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["SyntheticPeople"]


class SyntheticPeople(Dataset[Sample]):
    """Generated pictures with every kind of truth, the same as ``sapiens2 synth`` writes for the same seed.

    Sample ``i`` depends on the arguments and ``i`` alone, whichever process makes it. Making one costs
    far more than reading one: what sees pictures more than once is quicker with a folder.

    Args:
        count: How many pictures.
        size_hw: Height and width, each at least 16.
        people: Fewest and most people in a picture.
        seed: Seed of the series.
        framing: One of :data:`~sapiens2.data.synthetic.FRAMING_NAMES` for all pictures; drawn for each when None.

    Attributes:
        series: Which pictures these are.
        keypoint_names: The 308 names.
        class_names: The 29 names.

    Raises:
        InputError: An argument is out of range.
    """

    def __init__(
        self,
        count: int,
        size_hw: SizeHW = (1024, 768),
        people: tuple[int, int] = (1, 1),
        seed: int = 0,
        *,
        framing: str | None = None,
    ) -> None:
        if framing is not None and framing not in FRAMING_NAMES:
            raise InputError(f"unknown framing {framing!r}; expected one of {', '.join(FRAMING_NAMES)}")
        self.series = PictureSeries(count, size_hw, people, seed)
        self.framing = framing
        self.keypoint_names, self.class_names = keypoint_table().names, part_table().names

    def __len__(self) -> int:
        return self.series.count

    def __getitem__(self, index: int) -> Sample:
        """Make a sample.

        Raises:
            IndexError: There is no such sample.
            MissingDependencyError: The extra ``synth`` is not installed.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} samples")
        seed, people = self.series.picture(index % len(self))
        return render(seed, self.series.size_hw, people, framing=self.framing).sample()
