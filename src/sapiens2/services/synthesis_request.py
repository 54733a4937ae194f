"""What a folder of generated people is asked to hold."""

from __future__ import annotations

from dataclasses import dataclass

from sapiens2._numbers import whole_number
from sapiens2.data.synthetic import PictureSeries
from sapiens2.data.synthetic.series import SEEDS_PER_SERIES
from sapiens2.errors import InputError

__all__ = ["MAX_FRAMES", "Picture", "SynthesisRequest"]

MAX_FRAMES = 10_000
"""Frames of a clip have four digits in the names of files."""


@dataclass(frozen=True)
class SynthesisRequest(PictureSeries):
    """What to make.

    Attributes:
        count: Pictures, or clips.
        size_hw: Height and width, each 16 to 4096.
        people: Fewest and most people in a picture; 0 makes pictures without people.
        seed: Seed of the run.
        frames: Frames of each clip; 0 makes single pictures.

    Raises:
        InputError: A number is out of range, or none.
    """

    frames: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "frames", whole_number("frames", self.frames, 0, MAX_FRAMES))
        if self.count * self.frames > SEEDS_PER_SERIES:
            raise InputError(
                f"{self.count} clips of {self.frames} frames are more than {SEEDS_PER_SERIES} pictures; ask for fewer"
            )

    def pictures(self) -> list[Picture]:
        """Every picture, in order."""
        pictures = []
        for index in range(self.count):
            seed, people = self.picture(index)
            if self.frames:
                pictures += [
                    Picture(f"{index:06d}_{frame:04d}", seed, people, frame, self.frames)
                    for frame in range(self.frames)
                ]
            else:
                pictures.append(Picture(f"{index:06d}", seed, people))
        return pictures


@dataclass(frozen=True)
class Picture:
    """A picture to make: its stem, seed, people, and its place in a clip of ``frames`` (0: none)."""

    stem: str
    seed: int
    people: int
    frame: int = 0
    frames: int = 0
