"""Another background behind the people, and colours that suit it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.augment.lab import lab_to_srgb, srgb_to_lab
from sapiens2.data.sample import Sample
from sapiens2.errors import InputError
from sapiens2.geometry import resize_image
from sapiens2.processing import load_image
from sapiens2.types import SizeHW

__all__ = ["BackgroundSwap", "transfer_colours"]

Pixels: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]

_LEAST_PIXELS = 16
_LEAST_DEVIATION = 0.5  # of Lab units; a flat colour has no contrast that could be transferred
_SOLID = 0.5


@dataclass(frozen=True)
class BackgroundSwap:
    """Put a random picture behind the people.

    The people are those of alpha and foreground where these are there, else the pixels of any class but the background;
    pixels without a label stay as they are. Afterwards the people's colours are matched to the new background.

    Attributes:
        backgrounds: Paths of pictures; what is on them must not be people.
        match_colours: Whether colours are matched.
    """

    backgrounds: tuple[Path, ...]
    match_colours: bool = True

    def __post_init__(self) -> None:
        if not self.backgrounds:
            raise InputError("There are no backgrounds; give the paths of pictures without people.")

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Swap the background.

        Raises:
            InputError: It is not known where the people are, or a picture cannot be read.
        """
        path = self.backgrounds[int(rng.integers(len(self.backgrounds)))]
        behind = _covering(path, sample.size_hw, rng)
        alpha = _alpha(sample)
        front = _front(sample, alpha)
        if self.match_colours:
            front = _matched(front, alpha, behind)
        image = front * alpha[..., None] + behind * (1 - alpha[..., None])
        foreground = None
        if sample.foreground is not None:
            foreground = np.ascontiguousarray((front * alpha[..., None] / 255).transpose(2, 0, 1), np.float32)
        return replace(sample, image=np.rint(image).clip(0, 255).astype(np.uint8), foreground=foreground)


def transfer_colours(pixels: Floats, like: Floats, counted: NDArray[np.bool_] | None = None) -> Floats:
    """Give colours the mean and the spread of other colours, per channel of CIE Lab.

    Args:
        pixels: ``(N, 3)`` RGB, 0..255.
        like: ``(M, 3)`` RGB, 0..255.
        counted: ``(N,)`` bool, the pixels whose mean and spread are taken; None for all. All of them change.

    Returns:
        ``(N, 3)`` float32, 0..255. With fewer than 16 pixels on either side, whose mean and spread would mean nothing,
        ``pixels`` as they are; a channel without spread is shifted only.

    Source: Reinhard et al., "Color transfer between images", IEEE Computer Graphics and Applications 21(5), 2001, with
    CIE Lab for its colour space.
    """
    counted = np.ones(len(pixels), np.bool_) if counted is None else counted
    if min(int(counted.sum()), len(like)) < _LEAST_PIXELS:
        return pixels
    lab, other = srgb_to_lab(pixels), srgb_to_lab(like)
    own, wanted = lab[counted].std(axis=0), other.std(axis=0)
    spread = np.where(own < _LEAST_DEVIATION, 1, wanted / np.maximum(own, _LEAST_DEVIATION))
    return lab_to_srgb((lab - lab[counted].mean(axis=0)) * spread + other.mean(axis=0))


def _alpha(sample: Sample) -> Floats:
    if sample.alpha is not None:
        return sample.alpha
    if sample.parts is None:
        raise InputError(f"{sample.label('image')}: to swap the background, alpha or parts have to be known.")
    return (sample.parts > 0).astype(np.float32)


def _front(sample: Sample, alpha: Floats) -> Floats:
    """Straight colours of the people ``(H, W, 3)``, 0..255."""
    if sample.foreground is None:
        return sample.image.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        straight = np.where(alpha > 0, sample.foreground * 255 / alpha, 0)
    return np.asarray(straight.transpose(1, 2, 0), np.float32).clip(0, 255)


def _matched(front: Floats, alpha: Floats, behind: Floats) -> Floats:
    people, solid = alpha > 0, alpha > _SOLID
    matched = front.copy()
    # The statistics are those of solid pixels; the colours of hair and edges follow.
    matched[people] = transfer_colours(front[people], behind[~solid], counted=solid[people])
    return matched


def _covering(path: Path, size_hw: SizeHW, rng: np.random.Generator) -> Floats:
    """A picture scaled to cover a size, and a random window of it: ``(H, W, 3)``, 0..255."""
    pixels = load_image(path)
    scale = max(new / old for new, old in zip(size_hw, pixels.shape[-2:], strict=True))
    scaled_hw = [max(new, round(old * scale)) for new, old in zip(size_hw, pixels.shape[-2:], strict=True)]
    resized = resize_image(pixels[None], (scaled_hw[0], scaled_hw[1]))[0]
    top, left = (int(rng.integers(0, old - new + 1)) for old, new in zip(scaled_hw, size_hw, strict=True))
    window = resized[:, top : top + size_hw[0], left : left + size_hw[1]]
    return window.permute(1, 2, 0).float().numpy()
