"""Smooth noise over points, from hashed integers: a seed gives the same noise everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.kernels.noise import sum_octaves
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["fractal_noise"]


def fractal_noise(points: NDArray[np.floating], seed: int, octaves: int = 1) -> NDArray[np.float32]:
    """Noise at points ``(..., 3)``, about -1..1, with cells of size 1.

    Args:
        points: Places; ``(..., 2)`` is taken as a plane.
        seed: Which noise.
        octaves: Layers of noise, each half as large and half as strong as the last.
    """
    shape = points.shape[:-1]
    flat = np.zeros((int(np.prod(shape)), 3), np.float32)
    flat[:, : points.shape[-1]] = points.reshape(-1, points.shape[-1])
    values = zeros(len(flat), float)
    offset = np.random.default_rng(seed).uniform(0, 1000, 3)
    launch(sum_octaves, len(flat), array(flat, wp.vec3), wp.vec3(*(float(own) for own in offset)), octaves, values)
    result: NDArray[np.float32] = to_numpy(values).reshape(shape)
    return result
