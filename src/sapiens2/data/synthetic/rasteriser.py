"""Triangles to samples: a depth buffer that cuts fragments by a field, so that hems and hair end smoothly.

Every pixel is a square of ``S x S`` samples with S odd, so that one sample lies on the pixel's centre: labels, depth
and normals are those of the centre and match the colour, which is the mean. Triangles are drawn one after another in
their order, so the result depends on nothing else.

Convention: pixel centres at integers; sample ``s`` of a row lies at pixel ``(s - (S - 1) / 2) / S``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.kernels.drawing import draw_triangles
from sapiens2.data.synthetic.kernels.surface import normalise, sum_normals
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["Buffers", "as_samples", "rasterise", "vertex_normals"]


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


def as_samples(
    points: NDArray[np.floating], intrinsics: NDArray[np.float64], samples: int, near: float = 0.05
) -> NDArray[np.float32]:
    """Camera points ``(V, 3)`` as columns, rows (in samples) and 1/z; 1/z is 0 for what is too near or behind."""
    z = points[:, 2]
    inverse = np.where(z > near, 1 / np.maximum(z, near), 0.0)
    pixels = points[:, :2] * inverse[:, None] * intrinsics[[0, 1], [0, 1]] + intrinsics[:2, 2]
    return np.column_stack([pixels * samples + (samples - 1) / 2, inverse]).astype(np.float32)
