"""A finer copy of a coarse piece of mesh, every triangle in four, on which fields are cut smoothly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Refinement"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Refinement:
    """How the vertices of a finer mesh follow from those of the coarse one.

    Attributes:
        vertices: Vertices of the whole mesh that the piece uses.
        parents: For each round the pairs of vertices between which new ones lie.
        triangles: ``(T, 3)`` of the finer mesh.
    """

    vertices: Ints
    parents: tuple[Ints, ...]
    triangles: Ints

    @classmethod
    def of(cls, triangles: Ints, rounds: int) -> Refinement:
        """Refine triangles; each round has four for one."""
        vertices, flat = np.unique(triangles, return_inverse=True)
        own = flat.reshape(-1, 3).astype(np.int64)
        count, parents = len(vertices), []
        for _ in range(rounds):
            sides = np.sort(np.concatenate([own[:, [0, 1]], own[:, [1, 2]], own[:, [2, 0]]]), axis=1)
            edges, index = np.unique(sides, axis=0, return_inverse=True)
            ab, bc, ca = (count + index.reshape(3, -1)).astype(np.int64)
            a, b, c = own.T
            corners = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
            own = np.concatenate([np.stack(three, axis=1) for three in corners])
            parents.append(edges.astype(np.int32))
            count += len(edges)
        return cls(vertices.astype(np.int32), tuple(parents), own.astype(np.int32))

    def values(self, coarse: Floats) -> Floats:
        """Values at the vertices of the finer mesh; ``coarse`` has a row for each vertex of the whole mesh."""
        own = coarse[self.vertices]
        for pairs in self.parents:
            own = np.concatenate([own, own[pairs].mean(axis=1)])
        return own
