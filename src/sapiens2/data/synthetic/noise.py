"""Smooth noise over points, from hashed integers: a seed gives the same noise everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["fractal_noise", "smooth_noise"]


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


@wp.func
def cell_hash(x: int, y: int, z: int) -> float:
    state = wp.uint32(x) * wp.uint32(73856093) ^ wp.uint32(y) * wp.uint32(19349663) ^ wp.uint32(z) * wp.uint32(83492791)
    state = state * wp.uint32(747796405) + wp.uint32(1403630843)
    word = ((state >> ((state >> wp.uint32(28)) + wp.uint32(4))) ^ state) * wp.uint32(277803737)
    return float((word >> wp.uint32(22)) ^ word) / 4294967296.0


@wp.func
def smooth_noise(place: wp.vec3) -> float:
    """Value noise, 0..1, with cells of size 1."""
    x = int(wp.floor(place[0]))
    y = int(wp.floor(place[1]))
    z = int(wp.floor(place[2]))
    u = place[0] - wp.floor(place[0])
    v = place[1] - wp.floor(place[1])
    w = place[2] - wp.floor(place[2])
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    w = w * w * (3.0 - 2.0 * w)
    low = wp.lerp(
        wp.lerp(cell_hash(x, y, z), cell_hash(x + 1, y, z), u),
        wp.lerp(cell_hash(x, y + 1, z), cell_hash(x + 1, y + 1, z), u),
        v,
    )
    high = wp.lerp(
        wp.lerp(cell_hash(x, y, z + 1), cell_hash(x + 1, y, z + 1), u),
        wp.lerp(cell_hash(x, y + 1, z + 1), cell_hash(x + 1, y + 1, z + 1), u),
        v,
    )
    return wp.lerp(low, high, w)


@wp.kernel
def sum_octaves(points: wp.array(dtype=wp.vec3), offset: wp.vec3, octaves: int, values: wp.array(dtype=float)):
    index = wp.tid()
    total = wp.float32(0.0)
    strength = wp.float32(1.0)
    sum_of_strengths = wp.float32(0.0)
    size = wp.float32(1.0)
    for _ in range(octaves):
        total += strength * (2.0 * smooth_noise(points[index] * size + offset * size) - 1.0)
        sum_of_strengths += strength
        strength = strength * 0.5
        size = size * 2.0
    values[index] = 1.4 * total / sum_of_strengths
