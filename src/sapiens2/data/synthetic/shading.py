"""Samples to pixels: what each sample shows, lit, and the truth of every pixel.

Light and colour are computed linearly and kept in sRGB, in which pictures are mixed; so
``image = foreground + (1 - alpha) * background`` holds for the files as they are.

Convention: OpenCV camera, x right, y down, z forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.kernels.shading import shade_pixels
from sapiens2.data.synthetic.materials import MaterialTable
from sapiens2.data.synthetic.rasteriser import Buffers
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["Lighting", "PixelTruth", "Surface", "shade"]


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of everything in a scene, in the frame of the camera.

    Attributes:
        points: ``(V, 3)`` float32 metres.
        normals: ``(V, 3)`` float32 unit vectors, outwards.
        pattern: ``(V, 3)`` float32 metres: where each vertex lies in the rest pose, for patterns.
        tint: ``(V, 3)`` float32 sRGB that the material's colour is multiplied by.
        cut: ``(V,)`` float32, drawn where above 0.
        fray: ``(V,)`` float32 how much strands change the cut.
        strand: ``(V,)`` float32 coordinate across strands.
        triangles: ``(T, 3)`` int32.
        material: ``(T,)`` int32 row of the material table.
        label: ``(T,)`` int32 body-part class.
        person: ``(T,)`` int32, 0 for what is no person, else from 1.
        two_sided: ``(T,)`` int32.
    """

    points: NDArray[np.float32]
    normals: NDArray[np.float32]
    pattern: NDArray[np.float32]
    tint: NDArray[np.float32]
    cut: NDArray[np.float32]
    fray: NDArray[np.float32]
    strand: NDArray[np.float32]
    triangles: NDArray[np.int32]
    material: NDArray[np.int32]
    label: NDArray[np.int32]
    person: NDArray[np.int32]
    two_sided: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Lighting:
    """One lamp that casts shadows, one that fills, and light from all around.

    Attributes:
        key_direction: ``(3,)`` unit vector towards the lamp, camera frame.
        key_color: ``(3,)`` linear RGB.
        fill_direction: ``(3,)`` towards the second lamp.
        fill_color: ``(3,)`` linear RGB.
        up: ``(3,)`` unit vector away from the ground.
        sky_color: ``(3,)`` linear RGB from above.
        ground_color: ``(3,)`` linear RGB from below.
    """

    key_direction: NDArray[np.float64]
    key_color: NDArray[np.float64]
    fill_direction: NDArray[np.float64]
    fill_color: NDArray[np.float64]
    up: NDArray[np.float64]
    sky_color: NDArray[np.float64]
    ground_color: NDArray[np.float64]

    def rows(self) -> NDArray[np.float32]:
        """All vectors, ``(7, 3)``, in the order of the fields."""
        return np.stack(
            [
                self.key_direction,
                self.key_color,
                self.fill_direction,
                self.fill_color,
                self.up,
                self.sky_color,
                self.ground_color,
            ]
        ).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ShadowMap:
    """What the lamp sees: ``nearness`` over a square, and the ``(4, 3)`` axes and origin that lead to its columns."""

    nearness: object
    axes: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PixelTruth:
    """The truth of every pixel; maps have zeros where no person is.

    Attributes:
        foreground: ``(H, W, 3)`` sRGB premultiplied by alpha.
        background: ``(H, W, 3)`` sRGB of all that is no person.
        alpha: ``(H, W)`` share of the samples that show people.
        albedo: ``(H, W, 3)`` sRGB.
        normals: ``(H, W, 3)`` unit vectors.
        depth: ``(H, W)`` z in metres.
        label: ``(H, W)`` int32 class.
        person: ``(H, W)`` int32, 0: none.
    """

    foreground: NDArray[np.float32]
    background: NDArray[np.float32]
    alpha: NDArray[np.float32]
    albedo: NDArray[np.float32]
    normals: NDArray[np.float32]
    depth: NDArray[np.float32]
    label: NDArray[np.int32]
    person: NDArray[np.int32]


def shade(
    surface: Surface,
    samples: int,
    points: NDArray[np.float32],
    buffers: Buffers,
    materials: MaterialTable,
    lighting: Lighting,
    shadow: ShadowMap,
    backdrop: NDArray[np.float32],
) -> PixelTruth:
    """Shade what the rasteriser found.

    Args:
        surface: The triangles.
        samples: Samples per pixel along an axis.
        points: What :func:`rasterise` was given.
        buffers: What it found.
        materials: The materials.
        lighting: The lights.
        shadow: What the first lamp sees.
        backdrop: ``(H, W, 3)`` sRGB where nothing is hit.
    """
    height, width = backdrop.shape[:2]
    colors = [zeros((height, width), wp.vec3) for _ in range(4)]
    scalars = [zeros((height, width), float) for _ in range(2)]
    ids = [zeros((height, width), int) for _ in range(2)]
    per_triangle = np.stack([surface.material, surface.label, surface.person], axis=1).astype(np.int32)
    launch(
        shade_pixels,
        (height, width),
        *(array(own, wp.vec3) for own in (points, surface.points, surface.normals, surface.pattern, surface.tint)),
        array(surface.triangles, wp.vec3i),
        array(per_triangle, wp.vec3i),
        buffers.inverse_depth,
        buffers.triangle,
        array(materials.rows, float),
        array(lighting.rows(), wp.vec3),
        shadow.nearness,
        array(shadow.axes, wp.vec3),
        array(backdrop.astype(np.float32), wp.vec3),
        samples,
        *colors,
        *scalars,
        *ids,
    )
    foreground, background, albedo, normals = (to_numpy(own) for own in colors)
    alpha, depth = (to_numpy(own) for own in scalars)
    label, person = (to_numpy(own) for own in ids)
    return PixelTruth(foreground, background, alpha, albedo, normals, depth, label, person)
