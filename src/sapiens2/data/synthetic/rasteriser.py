"""Triangles to samples on the CPU: a depth buffer that cuts fragments by a field, so hems and hair end smoothly.

Every pixel is a square of ``S x S`` samples with S odd, so that one sample lies on the pixel's centre: labels, depth and
normals are those of the centre and match the colour, which is the mean. Triangles are drawn one after another in their
order, so the result depends on nothing else.

Convention: pixel centres at integers; sample ``s`` of a row lies at pixel ``(s - (S - 1) / 2) / S``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["Buffers", "rasterise", "vertex_normals"]


class Buffers:
    """What is seen at each sample: ``inverse_depth`` (0: nothing) and ``triangle``, both ``(H * S, W * S)``."""

    def __init__(self, rows: int, columns: int) -> None:
        self.inverse_depth = zeros((rows, columns), float)
        self.triangle = zeros((rows, columns), int)


def rasterise(
    points: NDArray[np.float32],
    cut: NDArray[np.float32],
    fray: NDArray[np.float32],
    strand: NDArray[np.float32],
    triangles: NDArray[np.int32],
    two_sided: NDArray[np.int32],
    size: tuple[int, int],
    *,
    perspective: bool = True,
) -> Buffers:
    """Draw triangles.

    Args:
        points: ``(V, 3)``: column and row in samples, and 1/z (perspective) or a nearness above 0 (parallel).
        cut: ``(V,)`` a fragment is drawn where the interpolated value is above 0.
        fray: ``(V,)`` how much strands of hair change the cut.
        strand: ``(V,)`` coordinate across the strands.
        triangles: ``(T, 3)`` vertices; seen from outside they run counter-clockwise with y up.
        two_sided: ``(T,)`` 1 where the inside is seen too.
        size: Rows and columns of the buffers.
        perspective: Whether attributes are interpolated with perspective.
    """
    buffers = Buffers(*size)
    buffers.triangle.fill_(-1)
    launch(
        draw_triangles,
        1,
        array(points, wp.vec3),
        array(np.stack([cut, fray, strand], axis=1).astype(np.float32), wp.vec3),
        array(triangles, wp.vec3i),
        array(two_sided, int),
        int(perspective),
        buffers.inverse_depth,
        buffers.triangle,
    )
    return buffers


def vertex_normals(vertices: NDArray[np.float32], triangles: NDArray[np.int32]) -> NDArray[np.float32]:
    """Unit normals ``(V, 3)``, the mean of the adjoining triangles weighted by their area; zero without triangles."""
    sums = zeros(len(vertices), wp.vec3)
    launch(sum_normals, 1, array(vertices, wp.vec3), array(triangles, wp.vec3i), sums)
    launch(normalise, len(vertices), sums)
    result: NDArray[np.float32] = to_numpy(sums)
    return result


@wp.func
def hashed(value: int) -> float:
    state = wp.uint32(value) * wp.uint32(747796405) + wp.uint32(1403630843)
    word = ((state >> ((state >> wp.uint32(28)) + wp.uint32(4))) ^ state) * wp.uint32(277803737)
    return float((word >> wp.uint32(22)) ^ word) / 4294967296.0


@wp.func
def strand_noise(coordinate: float) -> float:
    """-1..1: strands of two widths, each with a length of its own."""
    coarse = wp.floor(coordinate)
    fine = wp.floor(coordinate * 3.7)
    return hashed(int(coarse)) + hashed(int(fine) + 7919) - 1.0


@wp.kernel
def draw_triangles(
    points: wp.array(dtype=wp.vec3),
    cuts: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    two_sided: wp.array(dtype=int),
    perspective: int,
    inverse_depth: wp.array2d(dtype=float),
    triangle_at: wp.array2d(dtype=int),
):
    rows = inverse_depth.shape[0]
    columns = inverse_depth.shape[1]
    for index in range(triangles.shape[0]):
        corners = triangles[index]
        a = points[corners[0]]
        b = points[corners[1]]
        c = points[corners[2]]
        if a[2] <= 0.0 or b[2] <= 0.0 or c[2] <= 0.0:
            continue
        left = wp.max(int(wp.ceil(wp.min(a[0], wp.min(b[0], c[0])))), 0)
        right = wp.min(int(wp.floor(wp.max(a[0], wp.max(b[0], c[0])))), columns - 1)
        top = wp.max(int(wp.ceil(wp.min(a[1], wp.min(b[1], c[1])))), 0)
        bottom = wp.min(int(wp.floor(wp.max(a[1], wp.max(b[1], c[1])))), rows - 1)
        if left > right or top > bottom:
            continue
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if area == 0.0 or (area > 0.0 and two_sided[index] == 0):
            continue
        cut_a = cuts[corners[0]]
        cut_b = cuts[corners[1]]
        cut_c = cuts[corners[2]]
        lowest = wp.min(cut_a[0] - cut_a[1], wp.min(cut_b[0] - cut_b[1], cut_c[0] - cut_c[1]))
        if wp.max(cut_a[0] + cut_a[1], wp.max(cut_b[0] + cut_b[1], cut_c[0] + cut_c[1])) <= 0.0:
            continue
        scale = 1.0 / area
        step_b = -(c[1] - a[1]) * scale
        step_c = (b[1] - a[1]) * scale
        for row in range(top, bottom + 1):
            y = float(row) - a[1]
            x = float(left) - a[0]
            share_b = (x * (c[1] - a[1]) - y * (c[0] - a[0])) * scale
            share_c = (y * (b[0] - a[0]) - x * (b[1] - a[1])) * scale
            for column in range(left, right + 1):
                share_a = 1.0 - share_b - share_c
                if share_a >= 0.0 and share_b >= 0.0 and share_c >= 0.0:
                    near = share_a * a[2] + share_b * b[2] + share_c * c[2]
                    if near > inverse_depth[row, column]:
                        visible = wp.bool(True)
                        if lowest <= 0.0:
                            weight_a = share_a
                            weight_b = share_b
                            weight_c = share_c
                            if perspective == 1:
                                weight_a = share_a * a[2] / near
                                weight_b = share_b * b[2] / near
                                weight_c = share_c * c[2] / near
                            own = weight_a * cut_a + weight_b * cut_b + weight_c * cut_c
                            value = own[0]
                            if own[1] > 0.0:
                                value += own[1] * strand_noise(own[2])
                            visible = value > 0.0
                        if visible:
                            inverse_depth[row, column] = near
                            triangle_at[row, column] = index
                share_b -= step_b
                share_c -= step_c


@wp.kernel
def sum_normals(vertices: wp.array(dtype=wp.vec3), triangles: wp.array(dtype=wp.vec3i), sums: wp.array(dtype=wp.vec3)):
    for index in range(triangles.shape[0]):
        corners = triangles[index]
        a = vertices[corners[0]]
        normal = wp.cross(vertices[corners[1]] - a, vertices[corners[2]] - a)
        sums[corners[0]] = sums[corners[0]] + normal
        sums[corners[1]] = sums[corners[1]] + normal
        sums[corners[2]] = sums[corners[2]] + normal


@wp.kernel
def normalise(vectors: wp.array(dtype=wp.vec3)):
    vertex = wp.tid()
    vectors[vertex] = wp.normalize(vectors[vertex])


def as_samples(
    points: NDArray[np.float64], intrinsics: NDArray[np.float64], samples: int, near: float = 0.05
) -> NDArray[np.float32]:
    """Camera points ``(V, 3)`` as columns, rows (in samples) and 1/z; 1/z is 0 for what is too near or behind."""
    z = points[:, 2]
    inverse = np.where(z > near, 1 / np.maximum(z, near), 0.0)
    pixels = points[:, :2] * inverse[:, None] * intrinsics[[0, 1], [0, 1]] + intrinsics[:2, 2]
    return np.column_stack([pixels * samples + (samples - 1) / 2, inverse]).astype(np.float32)
