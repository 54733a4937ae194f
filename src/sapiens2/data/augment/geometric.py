"""Geometric steps for whole pictures; :class:`~sapiens2.data.augment.warp.Warp` carries them out together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sapiens2.data.augment.affine import Affine
from sapiens2.data.augment.chance import between, happens
from sapiens2.data.augment.sampling import SourceGrid
from sapiens2.data.sample import IGNORE_LABEL, Sample
from sapiens2.types import SizeHW

__all__ = [
    "Fit",
    "Letterbox",
    "RandomAspectCrop",
    "RandomFit",
    "RandomFlip",
    "RandomPartCrop",
    "RandomRotation",
    "RandomScale",
]

_LOOK_HW = (128, 128)
"""Size at which the share of classes in a crop is estimated."""


@dataclass(frozen=True)
class RandomFlip:
    """Mirror left and right.

    Attributes:
        p: Probability.
    """

    p: float = 0.5

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        return frame.flipped() if happens(rng, self.p) else frame


@dataclass(frozen=True)
class RandomScale:
    """Scale the picture, both sides alike.

    Attributes:
        factors: Lowest and highest factor, drawn uniformly.
        p: Probability.
    """

    factors: tuple[float, float] = (0.5, 2.0)
    p: float = 0.3

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        return frame.scaled(between(rng, self.factors)) if happens(rng, self.p) else frame


@dataclass(frozen=True)
class RandomAspectCrop:
    """Cut out a window of random area and aspect.

    Every window of whole pixels that lies in the picture can come out, and no other.

    Attributes:
        aspects_wh: Lowest and highest width / height.
        areas: Lowest and highest share of the picture's area.
        p: Probability.
        tries: Windows to draw until one fits; if none does, the picture stays whole.
    """

    aspects_wh: tuple[float, float] = (0.5, 2.0)
    areas: tuple[float, float] = (0.4, 1.0)
    p: float = 0.3
    tries: int = 8

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        if not happens(rng, self.p):
            return frame
        height, width = frame.target_hw
        for _ in range(self.tries):
            area, aspect = height * width * between(rng, self.areas), between(rng, self.aspects_wh)
            size_hw = (max(1, round(math.sqrt(area / aspect))), max(1, round(math.sqrt(area * aspect))))
            if size_hw[0] <= height and size_hw[1] <= width:
                return _random_window(frame, size_hw, rng)
        return frame


@dataclass(frozen=True)
class RandomRotation:
    """Turn the picture about its centre, on the same canvas.

    Attributes:
        degrees: Largest angle to either side.
        p: Probability.
    """

    degrees: float = 60.0
    p: float = 0.5

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        return frame.rotated(between(rng, (-self.degrees, self.degrees))) if happens(rng, self.p) else frame


@dataclass(frozen=True)
class RandomFit:
    """Scale the picture, its aspect kept, to fit into a random multiple of a size.

    Attributes:
        size_hw: The size.
        factors: Lowest and highest multiple.
    """

    size_hw: SizeHW
    factors: tuple[float, float] = (0.4, 2.0)

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        factor = between(rng, self.factors)
        return frame.scaled(min(factor * new / old for new, old in zip(self.size_hw, frame.target_hw, strict=True)))


@dataclass(frozen=True)
class RandomPartCrop:
    """Cut out a window of one size that does not show a single class only; a smaller picture is padded to it.

    Attributes:
        size_hw: Size of the window.
        largest_share: A class may cover this share of the labelled pixels at most.
        p: Probability.
        tries: Windows to draw until one is varied enough; the last one is taken then.
    """

    size_hw: SizeHW
    largest_share: float = 0.75
    p: float = 0.3
    tries: int = 10

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        if not happens(rng, self.p):
            return frame
        crop = _random_window(frame, self.size_hw, rng)
        for _ in range(self.tries - 1):
            if sample.parts is None or _largest_share(sample.parts, crop) < self.largest_share:
                break
            crop = _random_window(frame, self.size_hw, rng)
        return crop


@dataclass(frozen=True)
class Fit:
    """Stretch the picture to a size, without regard to its aspect: what the processor does by default.

    Attributes:
        size_hw: The size.
    """

    size_hw: SizeHW

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        return frame if frame.target_hw == self.size_hw else frame.resized(self.size_hw)


@dataclass(frozen=True)
class Letterbox:
    """Scale the picture to fit into a size and centre it: what the processor does with ``do_pad=True``.

    Attributes:
        size_hw: The size.
    """

    size_hw: SizeHW

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step."""
        return frame if frame.target_hw == self.size_hw else frame.letterboxed(self.size_hw)


def _random_window(frame: Affine, size_hw: SizeHW, rng: np.random.Generator) -> Affine:
    """A window anywhere in the picture; where the picture is smaller, at its top and left with padding behind."""
    top, left = (int(rng.integers(0, max(0, old - new) + 1)) for old, new in zip(frame.target_hw, size_hw, strict=True))
    return frame.cropped(top, left, size_hw)


def _largest_share(parts: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], crop: Affine) -> float:
    seen = SourceGrid(crop.resized(_LOOK_HW)).nearest(parts, IGNORE_LABEL)
    counts = np.bincount(seen.ravel(), minlength=256)[:IGNORE_LABEL]
    return float(counts.max() / max(1, counts.sum()))
