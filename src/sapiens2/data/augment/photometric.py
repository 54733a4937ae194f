"""Changes of colour and sharpness. Nothing moves, so keypoints and maps stay as they are.

Changes of *colour* are made of each layer of a matte, so that alpha and foreground still compose the new picture. Blur,
noise and the like are faults of the camera: they change the picture, and the truth stays that of the scene.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from sapiens2.data.augment.chance import between, happens
from sapiens2.data.sample import Sample

__all__ = [
    "BoxBlur",
    "CoarseDropout",
    "DownUpSample",
    "GaussianBlur",
    "GaussianNoise",
    "MedianBlur",
    "PhotometricDistortion",
    "Solarize",
    "recolour",
]

Pixels: TypeAlias = NDArray[np.uint8]

_FILTERS = (
    Image.Resampling.NEAREST,
    Image.Resampling.BILINEAR,
    Image.Resampling.BICUBIC,
    Image.Resampling.BOX,
    Image.Resampling.LANCZOS,
)
_HUES_OF_RECIPE = 180  # a turn of the colour circle in the recipe's units
_HUES = 256  # and in Pillow's


@dataclass(frozen=True)
class PhotometricDistortion:
    """Random brightness, contrast, saturation and hue, each with an even chance.

    Contrast comes before or after the other two, by another even chance.

    Attributes:
        brightness: Largest step up or down, of 255.
        contrast: Lowest and highest factor.
        saturation: Lowest and highest factor.
        hue: Largest shift to either side, of 180 for the whole circle.
    """

    brightness: int = 32
    contrast: tuple[float, float] = (0.5, 1.5)
    saturation: tuple[float, float] = (0.5, 1.5)
    hue: int = 18

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Change the colours."""
        brightness = between(rng, (-self.brightness, self.brightness)) if happens(rng, 0.5) else 0.0
        contrast_first = happens(rng, 0.5)
        contrast = between(rng, self.contrast) if happens(rng, 0.5) else 1.0
        saturation = between(rng, self.saturation) if happens(rng, 0.5) else 1.0
        hue = int(rng.integers(-self.hue, self.hue + 1)) if happens(rng, 0.5) else 0
        before, after = (contrast, 1.0) if contrast_first else (1.0, contrast)

        def change(pixels: Pixels) -> Pixels:
            lit = _linear(_linear(pixels, 1.0, brightness), before, 0.0)
            return _linear(_shift_colour(lit, saturation, hue), after, 0.0)

        return recolour(sample, change)


@dataclass(frozen=True)
class Solarize:
    """Invert what is brighter than a threshold.

    Attributes:
        threshold: Values above it become 255 less themselves.
    """

    threshold: int = 128

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Change the colours."""
        return recolour(sample, lambda pixels: np.where(pixels > self.threshold, 255 - pixels, pixels))


@dataclass(frozen=True)
class GaussianBlur:
    """Blur with a Gaussian of 3 x 3 pixels.

    Attributes:
        sigmas: Lowest and highest standard deviation, in pixels.
    """

    sigmas: tuple[float, float] = (0.1, 2.0)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Blur the image."""
        side = float(np.exp(-0.5 / between(rng, self.sigmas) ** 2))
        weights = np.array([side, 1.0, side]) / (1 + 2 * side)
        pixels = sample.image.astype(np.float32)
        for axis in (0, 1):
            around = np.pad(pixels, [(1, 1) if own == axis else (0, 0) for own in range(3)], mode="edge")
            before, after = np.delete(around, [-1, -2], axis), np.delete(around, [0, 1], axis)
            pixels = weights[1] * pixels + weights[0] * (before + after)
        return replace(sample, image=_bytes(pixels))


@dataclass(frozen=True)
class BoxBlur:
    """Average over a square.

    Attributes:
        widths: Widths to draw from, odd numbers of pixels.
    """

    widths: tuple[int, ...] = (3, 5, 7)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Blur the image."""
        return _filtered(sample, ImageFilter.BoxBlur(int(rng.choice(self.widths)) // 2))


@dataclass(frozen=True)
class MedianBlur:
    """Take the median over a square.

    Attributes:
        widths: Widths to draw from, odd numbers of pixels.
    """

    widths: tuple[int, ...] = (3, 5)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Blur the image."""
        return _filtered(sample, ImageFilter.MedianFilter(int(rng.choice(self.widths))))


@dataclass(frozen=True)
class GaussianNoise:
    """Add independent noise to each value.

    Attributes:
        variances: Lowest and highest variance, of values up to 255.
    """

    variances: tuple[float, float] = (5.0, 20.0)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Add the noise to the image."""
        deviation = np.sqrt(np.float32(between(rng, self.variances)))
        noise = rng.standard_normal(sample.image.shape, dtype=np.float32) * deviation
        return replace(sample, image=_bytes(sample.image + noise))


@dataclass(frozen=True)
class DownUpSample:
    """Scale the image down and up again, each with a random filter, as careless processing does.

    Attributes:
        factors: Lowest and highest factor of the sides in between.
    """

    factors: tuple[float, float] = (0.1, 0.7)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Change the image."""
        factor = between(rng, self.factors)
        down, up = (_FILTERS[int(index)] for index in rng.integers(0, len(_FILTERS), 2))
        image = Image.fromarray(np.ascontiguousarray(sample.image))
        small = image.resize((max(1, round(image.width * factor)), max(1, round(image.height * factor))), down)
        return replace(sample, image=np.array(small.resize(image.size, up)))


@dataclass(frozen=True)
class CoarseDropout:
    """Blacken one rectangle.

    Attributes:
        sides: Lowest and highest side, of the image's.
    """

    sides: tuple[float, float] = (0.2, 0.4)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Change the image."""
        image = sample.image.copy()
        spans = []
        for length in sample.size_hw:
            extent = min(length, max(1, round(between(rng, self.sides) * length)))
            start = int(rng.integers(0, length - extent + 1))
            spans.append(slice(start, start + extent))
        image[spans[0], spans[1]] = 0
        return replace(sample, image=image)


def recolour(sample: Sample, change: Callable[[Pixels], Pixels]) -> Sample:
    """Change colours, pixel by pixel, of the image and of its layers.

    A sample with a foreground is taken apart into the straight colours of the foreground and of what lies behind. Each
    is changed, and both are composed again: the image is then exactly what alpha and the new foreground say.

    Args:
        sample: The sample.
        change: Function of ``(H, W, 3)`` uint8 that treats each pixel by itself.

    Returns:
        The sample with a new image, and a new foreground if it has one.
    """
    if sample.alpha is None or sample.foreground is None:
        return replace(sample, image=change(sample.image))
    alpha = sample.alpha[..., None]
    front = sample.foreground.transpose(1, 2, 0) * 255
    with np.errstate(divide="ignore", invalid="ignore"):
        straight = np.where(alpha > 0, front / alpha, 0)
        behind = np.where(alpha < 1, (sample.image - front) / (1 - alpha), 0)
    front = alpha * change(_bytes(straight))
    image = front + (1 - alpha) * change(_bytes(behind))
    foreground = np.ascontiguousarray((front / 255).transpose(2, 0, 1), np.float32)
    return replace(sample, image=_bytes(image), foreground=foreground)


def _linear(pixels: Pixels, factor: float, offset: float) -> Pixels:
    if factor == 1 and offset == 0:
        return pixels
    table = _bytes(np.arange(256, dtype=np.float32) * factor + offset)
    return table[pixels]


def _shift_colour(pixels: Pixels, saturation: float, hue: int) -> Pixels:
    if saturation == 1 and hue == 0:
        return pixels
    hsv = np.array(Image.fromarray(np.ascontiguousarray(pixels)).convert("HSV"))
    hsv[..., 0] += np.uint8(round(hue * _HUES / _HUES_OF_RECIPE) % _HUES)  # wraps round, as hues do
    hsv[..., 1] = _linear(hsv[..., 1], saturation, 0.0)
    return np.array(Image.fromarray(hsv, mode="HSV").convert("RGB"))


def _filtered(sample: Sample, chosen: ImageFilter.Filter) -> Sample:
    return replace(sample, image=np.array(Image.fromarray(np.ascontiguousarray(sample.image)).filter(chosen)))


def _bytes(values: NDArray[np.floating]) -> Pixels:
    return np.rint(values).clip(0, 255).astype(np.uint8)
