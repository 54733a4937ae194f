"""Scenes to pictures with their truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.keypoints import person_boxes, scene_keypoints
from sapiens2.data.synthetic.rasteriser import as_samples, rasterise
from sapiens2.data.synthetic.scene import Scene
from sapiens2.data.synthetic.shading import PixelTruth, ShadowMap, shade
from sapiens2.data.synthetic.synthetic_sample import SyntheticSample
from sapiens2.data.synthetic.warp_runtime import to_numpy
from sapiens2.types import SizeHW

__all__ = ["render_scene", "samples_per_pixel"]

SHADOW_SIZE = 384


def samples_per_pixel(size_hw: SizeHW) -> int:
    """Samples along an axis of a pixel: small pictures get more levels of alpha, large ones have more pixels."""
    return 5 if max(size_hw) <= 512 else 3


def render_scene(scene: Scene, seed: int) -> SyntheticSample:
    """Render a scene; ``seed`` is kept in the sample."""
    height, width = scene.camera.size_hw
    samples = samples_per_pixel((height, width))
    surface = scene.surface
    points = as_samples(surface.points, scene.camera.intrinsics, samples)
    buffers = rasterise(
        points,
        surface.cut,
        surface.fray,
        surface.strand,
        surface.triangles,
        surface.two_sided,
        (height * samples, width * samples),
    )
    truth = shade(surface, samples, points, buffers, scene.materials, scene.lighting, _shadow(scene), scene.backdrop)
    return _sample(scene, truth, to_numpy(buffers.inverse_depth), samples, seed)


def _shadow(scene: Scene) -> ShadowMap:
    surface, lamp = scene.surface, scene.lighting.key_direction
    middle, radius = scene.focus
    radius = radius * 1.3 + 0.1
    across = np.cross(lamp, [0.31, 0.57, 0.76])
    across = across / np.linalg.norm(across)
    up = np.cross(lamp, across)
    scale = SHADOW_SIZE / 2 / radius
    axes = np.stack([across * scale, up * scale, lamp, middle - radius * (across + up) - 30 * lamp])
    moved = surface.points.astype(np.float64) - axes[3]
    seen = np.stack([(moved * axis).sum(axis=1) for axis in axes[:3]], axis=1).astype(np.float32)
    everywhere = np.ones_like(surface.two_sided)
    size = (SHADOW_SIZE, SHADOW_SIZE)
    buffers = rasterise(
        seen, surface.cut, surface.fray, surface.strand, surface.triangles, everywhere, size, perspective=False
    )
    return ShadowMap(buffers.inverse_depth, axes.astype(np.float32))


def _sample(
    scene: Scene, truth: PixelTruth, inverse_depth: NDArray[np.float32], samples: int, seed: int
) -> SyntheticSample:
    image = truth.foreground + (1 - truth.alpha[..., None]) * truth.background
    known = truth.label > 0
    intrinsics = scene.camera.intrinsics
    height, width = truth.alpha.shape
    rays = np.stack(
        [
            np.broadcast_to((np.arange(width) - intrinsics[0, 2]) / intrinsics[0, 0], (height, width)),
            np.broadcast_to(((np.arange(height) - intrinsics[1, 2]) / intrinsics[1, 1])[:, None], (height, width)),
            np.ones((height, width)),
        ]
    )
    keypoints = scene_keypoints(scene.bodies, scene.camera, inverse_depth, samples)
    return SyntheticSample(
        image=np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8),
        keypoints=keypoints,
        boxes_xywh=person_boxes(scene.surface, scene.camera, len(scene.bodies)),
        parts=truth.label.astype(np.uint8),
        people=truth.person.astype(np.uint8),
        normals=_masked(truth.normals.transpose(2, 0, 1), known),
        pointmap=_masked((rays * truth.depth).astype(np.float32), known),
        intrinsics=intrinsics,
        alpha=truth.alpha,
        foreground=np.ascontiguousarray(truth.foreground.transpose(2, 0, 1)),
        background=np.ascontiguousarray(truth.background.transpose(2, 0, 1)),
        albedo=_masked(truth.albedo.transpose(2, 0, 1), truth.alpha > 0),
        seed=seed,
        framing=scene.framing,
    )


def _masked(values: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.where(known, values, np.float32(np.nan)).astype(np.float32)
