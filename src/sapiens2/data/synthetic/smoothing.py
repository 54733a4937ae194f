"""How far the hollows of a body are spanned by cloth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.kernels.surface import average_neighbours
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["neighbour_table", "smoothed"]


def smoothed(points: NDArray[np.float32], neighbours: NDArray[np.int32], rounds: int) -> NDArray[np.float32]:
    """Points ``(V, 3)`` moved towards the mean of their neighbours, ``rounds`` times (an even number)."""
    one, other = array(points.copy(), wp.vec3), zeros(len(points), wp.vec3)
    count = int(np.flatnonzero(neighbours[:, 0] >= 0)[-1]) + 1  # helpers come last, and stay where they are
    table = array(neighbours, int)
    launch(average_neighbours, 1, one, other, table, count, rounds // 2)
    result: NDArray[np.float32] = to_numpy(one)
    return result


def neighbour_table(faces: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Adjoining vertices ``(V, N)`` of each of ``count`` vertices, padded with -1; faces have any number of corners."""
    corners = faces.shape[1]
    edges = np.concatenate([faces[:, [i, (i + 1) % corners]] for i in range(corners)])
    edges = edges[edges[:, 0] != edges[:, 1]]
    edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    starts = np.searchsorted(edges[:, 0], np.arange(count + 1))
    table = np.full((count, int(np.diff(starts).max())), -1, np.int32)
    slot = np.arange(len(edges)) - starts[edges[:, 0]]
    table[edges[:, 0], slot] = edges[:, 1]
    return table
