"""What lies behind everything: plain, shaded, blotched, striped, or a sky over a horizon."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.materials import fabric_color
from sapiens2.data.synthetic.noise import fractal_noise
from sapiens2.types import SizeHW

__all__ = ["sample_backdrop"]


def sample_backdrop(rng: np.random.Generator, size_hw: SizeHW) -> NDArray[np.float32]:
    """A picture ``(H, W, 3)`` sRGB, soft as if out of focus or with fine structure."""
    height, width = size_hw
    y, x = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, width / height, width), indexing="ij")
    angle = rng.uniform(0, 2 * np.pi)
    along = np.cos(angle) * x + np.sin(angle) * y
    colors = [fabric_color(rng) for _ in range(3)]
    kind = rng.choice(5, p=[0.15, 0.2, 0.4, 0.1, 0.15])
    seed = int(rng.integers(1 << 31))
    if kind == 0:
        share, other = np.zeros_like(x), np.zeros_like(x)
    elif kind == 1:
        share, other = np.clip(0.5 + (along - 0.5) * rng.uniform(0.3, 1.2), 0, 1), np.zeros_like(x)
    elif kind == 2:
        share, other = (_blotches(rng, (height, width), seed + offset) for offset in (0, 91))
    elif kind == 3:
        share, other = 0.5 + 0.5 * np.sign(np.sin(along * rng.uniform(10, 70))), np.zeros_like(x)
    else:
        horizon = rng.uniform(0.25, 0.8)
        share = np.clip((y - horizon) / rng.uniform(0.002, 0.2), 0, 1)
        other = 0.5 * _blotches(rng, (height, width), seed)
    picture = colors[0] * (1 - share[..., None]) + colors[1] * share[..., None]
    picture = picture * (1 - 0.8 * other[..., None]) + 0.8 * colors[2] * other[..., None]
    picture *= 1 - rng.uniform(0, 0.35) * ((x / (width / height) - 0.5) ** 2 + (y - 0.5) ** 2)[..., None] * 2
    return np.clip(picture, 0, 1).astype(np.float32)


def _blotches(rng: np.random.Generator, size_hw: SizeHW, seed: int) -> NDArray[np.float64]:
    """0..1, from large shapes to fine grain; computed coarsely and enlarged."""
    height, width = size_hw
    step = max(height // 96, 1)
    rows, columns = -(-height // step) + 1, -(-width // step) + 1
    y, x = np.meshgrid(np.arange(rows) * step / height, np.arange(columns) * step / height, indexing="ij")
    noise = fractal_noise(np.stack([y, x], axis=-1) * np.exp(rng.uniform(0.7, 2.6)), seed, int(rng.integers(2, 6)))
    coarse = np.clip(0.5 + noise * rng.uniform(0.8, 3.0), 0, 1)
    return _enlarged(coarse, step)[:height, :width]


def _enlarged(values: NDArray[np.float64], step: int) -> NDArray[np.float64]:
    """Linear interpolation by a whole factor."""
    for axis in (0, 1):
        low, high = values.take(range(values.shape[axis] - 1), axis), values.take(range(1, values.shape[axis]), axis)
        pieces = np.stack([low + (high - low) * k / step for k in range(step)], axis=axis + 1)
        shape = list(values.shape)
        shape[axis] = (shape[axis] - 1) * step
        values = pieces.reshape(shape)
    return values
