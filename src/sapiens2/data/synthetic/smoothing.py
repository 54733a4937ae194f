"""How far the hollows of a body are spanned by cloth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.kernels.surface import average_neighbours
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["smoothed"]


def smoothed(points: NDArray[np.float32], neighbours: NDArray[np.int32], rounds: int) -> NDArray[np.float32]:
    """Points ``(V, 3)`` moved towards the mean of their neighbours, ``rounds`` times (an even number)."""
    one, other = array(points.copy(), wp.vec3), zeros(len(points), wp.vec3)
    count = int(np.flatnonzero(neighbours[:, 0] >= 0)[-1]) + 1  # helpers come last, and stay where they are
    table = array(neighbours, int)
    for _ in range(rounds // 2):
        launch(average_neighbours, count, one, table, other)
        launch(average_neighbours, count, other, table, one)
    result: NDArray[np.float32] = to_numpy(one)
    return result
