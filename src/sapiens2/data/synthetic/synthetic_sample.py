"""A generated picture with its truth, and the function that makes one from a seed.

Nothing here needs the extra ``synth`` before :func:`render` is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2._numbers import whole_number
from sapiens2.data.sample import Sample
from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = [
    "FRAMING_NAMES",
    "MAX_PEOPLE",
    "MAX_SIDE",
    "MIN_SIDE",
    "SyntheticSample",
    "checked_size",
    "render",
    "render_frame",
]

MAX_PEOPLE = 6

MIN_SIDE, MAX_SIDE = 16, 4096
"""Shortest and longest side of a picture: all samples are in memory at once, about 0.25 GB for a million pixels."""

FRAMING_NAMES = ("full", "knees", "waist", "bust", "face", "legs")
"""What a picture can show of people."""


@dataclass(frozen=True, eq=False)
class SyntheticSample:
    """A generated picture and its exact truth.

    Attributes:
        image: ``(H, W, 3)`` uint8 sRGB, ``foreground + (1 - alpha) * background`` rounded.
        keypoints: ``(N, 308, 3)`` float32: x, y in pixels and 2 visible, 1 occluded, 0 outside the picture.
        boxes_xywh: ``(N, 4)`` float32, around all of a person that the picture would show without occluders, clipped to
            the picture.
        parts: ``(H, W)`` uint8 class, the one with most samples of the pixel; 0 where no person is.
        people: ``(H, W)`` uint8, number of the person (row of ``keypoints`` + 1) where ``parts`` is above 0, else 0.
        normals: ``(3, H, W)`` float32 unit vectors; NaN where ``parts`` is 0.
        pointmap: ``(3, H, W)`` float32 metres; NaN where ``parts`` is 0.
        intrinsics: ``(3, 3)`` float64, pixels.
        alpha: ``(H, W)`` float32, share of the pixel that people cover.
        foreground: ``(3, H, W)`` float32 sRGB, premultiplied by alpha.
        background: ``(3, H, W)`` float32 sRGB of what is no person.
        albedo: ``(3, H, W)`` float32 sRGB; NaN where alpha is 0.
        seed: The seed.
        framing: What the camera frames.

    Convention: pixel centres at integers, x right, y down; OpenCV camera, normals that face it have negative z.
    """

    image: NDArray[np.uint8]
    keypoints: NDArray[np.float32]
    boxes_xywh: NDArray[np.float32]
    parts: NDArray[np.uint8]
    people: NDArray[np.uint8]
    normals: NDArray[np.float32]
    pointmap: NDArray[np.float32]
    intrinsics: NDArray[np.float64]
    alpha: NDArray[np.float32]
    foreground: NDArray[np.float32]
    background: NDArray[np.float32]
    albedo: NDArray[np.float32]
    seed: int
    framing: str

    def sample(self) -> Sample:
        """The same as loaders give it: people of whom the picture shows nothing are none in it."""
        shown = (self.boxes_xywh[:, 2:] > 0).all(axis=1) & (self.keypoints[..., 2] > 0).any(axis=1)
        return Sample(
            image=self.image,
            keypoints=self.keypoints[shown],
            boxes_xywh=self.boxes_xywh[shown],
            parts=self.parts,
            normals=self.normals,
            pointmap=self.pointmap,
            intrinsics=self.intrinsics,
            alpha=self.alpha,
            foreground=self.foreground,
            albedo=self.albedo,
            name=f"synthetic-{self.seed}",
        )


def render(seed: int, size_hw: SizeHW, people: int = 1, *, framing: str | None = None) -> SyntheticSample:
    """Make a picture of people; the same arguments give the same bytes.

    Args:
        seed: Any number from 0.
        size_hw: Height and width, each 16 to 4096.
        people: How many, 0 to 6.
        framing: One of :data:`FRAMING_NAMES`; drawn when None.

    Raises:
        InputError: An argument is out of range.
        MissingDependencyError: The extra ``synth`` is not installed.
    """
    seed, size_hw, people = _checked_arguments(seed, size_hw, people)
    if framing is not None and framing not in FRAMING_NAMES:
        raise InputError(f"unknown framing {framing!r}; expected one of {', '.join(FRAMING_NAMES)}")
    from sapiens2.data.synthetic.rendering import render_scene
    from sapiens2.data.synthetic.scene import sample_scene

    return render_scene(sample_scene(seed, size_hw, people, framing=framing), seed)


def render_frame(seed: int, size_hw: SizeHW, people: int, frame: int, frames: int) -> SyntheticSample:
    """Make one frame of a clip in which people walk past each other before a still camera.

    Rows of ``keypoints`` and numbers in ``people`` are the same person in all frames.

    Args:
        seed: Seed of the clip.
        size_hw: Height and width, each 16 to 4096.
        people: How many, 0 to 6.
        frame: Which frame, from 0.
        frames: How many the clip has; 12 make a second.

    Raises:
        InputError: An argument is out of range.
        MissingDependencyError: The extra ``synth`` is not installed.
    """
    seed, size_hw, people = _checked_arguments(seed, size_hw, people)
    frames = whole_number("frames", frames, 1)
    frame = whole_number("frame", frame, 0, frames - 1)
    from sapiens2.data.synthetic.rendering import render_scene
    from sapiens2.data.synthetic.scene import Moment, sample_scene

    return render_scene(sample_scene(seed, size_hw, people, moment=Moment(frame, frames)), seed)


def checked_size(size_hw: Any) -> SizeHW:
    """Height and width, when both are sides that a generated picture can have.

    Raises:
        InputError: They are not.
    """
    if not isinstance(size_hw, tuple | list) or len(size_hw) != 2:
        raise InputError(f"size_hw must be (height, width), got {size_hw!r}")
    height, width = (whole_number("size_hw: a side in pixels", side, MIN_SIDE, MAX_SIDE) for side in size_hw)
    return height, width


def _checked_arguments(seed: Any, size_hw: Any, people: Any) -> tuple[int, SizeHW, int]:
    number = whole_number("people", people, 0, MAX_PEOPLE)
    return whole_number("seed", seed, 0), checked_size(size_hw), number
