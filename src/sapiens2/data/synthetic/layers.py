"""Layers of a person: pieces of surface with a material and a class, joined into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.rasteriser import vertex_normals
from sapiens2.data.synthetic.shading import Surface

__all__ = ["Layer", "join_layers", "join_surfaces"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

SHOWN = 1.0
"""A cut at which a vertex is far from any border."""


@dataclass(eq=False)
class Layer:
    """A piece of surface.

    Attributes:
        points: ``(V, 3)`` world metres.
        triangles: ``(T, 3)``.
        material: Row of the material table; one, or one for each triangle.
        label: Class; one, or one for each triangle.
        pattern: ``(V, 3)`` coordinates of the pattern, metres.
        cut: ``(V,)`` drawn where above 0; None: all of it.
        tint: ``(V, 3)`` factor of the material's colour; None: 1.
        fray: ``(V,)`` how much strands change the cut; None: 0.
        strand: ``(V,)`` coordinate across strands; None: 0.
        two_sided: Whether the inside is seen.
        normals: ``(V, 3)``, computed when None.
    """

    points: Floats
    triangles: Ints
    material: int | Ints
    label: int | Ints
    pattern: Floats
    cut: Floats | None = None
    tint: Floats | None = None
    fray: Floats | None = None
    strand: Floats | None = None
    two_sided: bool = False
    normals: Floats | None = None

    def compact(self) -> Layer:
        """The same without vertices that no triangle uses, and without triangles that are cut away."""
        triangles = self.triangles
        chosen = np.ones(len(triangles), bool)
        if self.cut is not None:
            shown = (self.cut if self.fray is None else self.cut + self.fray) > 0
            chosen = shown[triangles[:, 0]] | shown[triangles[:, 1]] | shown[triangles[:, 2]]
            triangles = triangles[chosen]
        used = np.zeros(len(self.points), bool)
        used[triangles] = True
        renumbered = (np.cumsum(used) - 1).astype(np.int32)
        kept = renumbered[triangles]
        points = self.points[used]
        if self.normals is not None:
            normals = self.normals[used]
        elif self.cut is None:
            normals = vertex_normals(points, kept)
        else:  # what was cut away still bends the border
            normals = vertex_normals(self.points, self.triangles)[used]

        def own(values: Floats | None) -> Floats | None:
            return None if values is None else values[used]

        return Layer(
            points=points,
            triangles=kept,
            material=self.material if isinstance(self.material, int) else self.material[chosen],
            label=self.label if isinstance(self.label, int) else self.label[chosen],
            pattern=self.pattern[used],
            cut=own(self.cut),
            tint=own(self.tint),
            fray=own(self.fray),
            strand=own(self.strand),
            two_sided=self.two_sided,
            normals=normals,
        )


def join_layers(layers: Sequence[Layer], person: int) -> Surface:
    """One surface of several layers; ``person`` is 0 for things."""
    parts = [_surface(layer.compact(), person) for layer in layers]
    return join_surfaces(parts)


def _surface(layer: Layer, person: int) -> Surface:
    vertices, faces = len(layer.points), len(layer.triangles)
    assert layer.normals is not None

    def scalar(values: Floats | None, default: float) -> Floats:
        return np.full(vertices, default, np.float32) if values is None else values.astype(np.float32)

    def per_face(values: int | Ints) -> Ints:
        return np.broadcast_to(np.asarray(values, np.int32), (faces,)).copy()

    return Surface(
        points=layer.points.astype(np.float32),
        normals=layer.normals.astype(np.float32),
        pattern=layer.pattern.astype(np.float32),
        tint=np.ones((vertices, 3), np.float32) if layer.tint is None else layer.tint.astype(np.float32),
        cut=scalar(layer.cut, SHOWN),
        fray=scalar(layer.fray, 0.0),
        strand=scalar(layer.strand, 0.0),
        triangles=layer.triangles.astype(np.int32),
        material=per_face(layer.material),
        label=per_face(layer.label),
        person=per_face(person),
        two_sided=per_face(int(layer.two_sided)),
    )


def join_surfaces(parts: Sequence[Surface]) -> Surface:
    """Surfaces one after another."""
    starts = np.cumsum([0, *(len(part.points) for part in parts)])[:-1]

    def joined(field: str) -> NDArray[np.generic]:
        return np.concatenate([getattr(part, field) for part in parts])

    fields = ("points", "normals", "pattern", "tint", "cut", "fray", "strand")
    faces = ("material", "label", "person", "two_sided")
    triangles = np.concatenate([part.triangles + np.int32(start) for part, start in zip(parts, starts, strict=True)])
    return Surface(**{name: joined(name) for name in (*fields, *faces)}, triangles=triangles)  # type: ignore[arg-type]
