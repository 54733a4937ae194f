"""Scenes to pictures with their truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.sample import Sample
from sapiens2.data.synthetic.keypoints import keypoint_truth
from sapiens2.data.synthetic.rasteriser import as_samples, rasterise
from sapiens2.data.synthetic.scene import Scene, sample_scene
from sapiens2.data.synthetic.shading import PixelTruth, ShadowMap, shade
from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["MAX_PEOPLE", "SyntheticSample", "render", "render_scene"]

MAX_PEOPLE = 6
SHADOW_SIZE = 384


@dataclass(frozen=True, eq=False)
class SyntheticSample:
    """A generated picture and its exact truth.

    Attributes:
        image: ``(H, W, 3)`` uint8 sRGB, ``foreground + (1 - alpha) * background`` rounded.
        keypoints: ``(N, 308, 3)`` float32: x, y in pixels and 2 visible, 1 occluded, 0 outside the picture.
        boxes_xywh: ``(N, 4)`` float32, around all of a person that the picture would show without occluders, clipped to
            the picture.
        parts: ``(H, W)`` uint8 class, the one with most samples of the pixel; 0 where no person is.
        people: ``(H, W)`` uint8, number of the person (row of ``keypoints`` + 1) where ``parts`` is above 0, else 0.
        normals: ``(3, H, W)`` float32 unit vectors; NaN where ``parts`` is 0.
        pointmap: ``(3, H, W)`` float32 metres; NaN where ``parts`` is 0.
        intrinsics: ``(3, 3)`` float64, pixels.
        alpha: ``(H, W)`` float32, share of the pixel that people cover.
        foreground: ``(3, H, W)`` float32 sRGB, premultiplied by alpha.
        background: ``(3, H, W)`` float32 sRGB of what is no person.
        albedo: ``(3, H, W)`` float32 sRGB; NaN where alpha is 0.
        seed: The seed.
        framing: What the camera frames.

    Convention: pixel centres at integers, x right, y down; OpenCV camera, normals that face it have negative z.
    """

    image: NDArray[np.uint8]
    keypoints: NDArray[np.float32]
    boxes_xywh: NDArray[np.float32]
    parts: NDArray[np.uint8]
    people: NDArray[np.uint8]
    normals: NDArray[np.float32]
    pointmap: NDArray[np.float32]
    intrinsics: NDArray[np.float64]
    alpha: NDArray[np.float32]
    foreground: NDArray[np.float32]
    background: NDArray[np.float32]
    albedo: NDArray[np.float32]
    seed: int
    framing: str

    def sample(self) -> Sample:
        """The same as loaders give it."""
        return Sample(
            image=self.image,
            keypoints=self.keypoints,
            boxes_xywh=self.boxes_xywh,
            parts=self.parts,
            normals=self.normals,
            pointmap=self.pointmap,
            intrinsics=self.intrinsics,
            alpha=self.alpha,
            foreground=self.foreground,
            albedo=self.albedo,
            mask=self.parts > 0,
            name=f"synthetic-{self.seed}",
        )


def render(seed: int, size_hw: SizeHW, people: int = 1, *, framing: str | None = None) -> SyntheticSample:
    """Make a picture of people; the same arguments give the same bytes.

    Args:
        seed: Any number from 0.
        size_hw: Height and width, each at least 16.
        people: How many, 0 to 6.
        framing: One of ``sapiens2.data.synthetic.FRAMINGS``; drawn when None.

    Raises:
        InputError: An argument is out of range.
        MissingDependencyError: The extra ``synth`` is not installed.
    """
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    if min(size_hw) < 16:
        raise InputError(f"size_hw must be at least 16 pixels each way, got {size_hw}")
    if not 0 <= people <= MAX_PEOPLE:
        raise InputError(f"people must be 0 to {MAX_PEOPLE}, got {people}")
    return render_scene(sample_scene(seed, size_hw, people, framing=framing), seed)


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
    truth = shade(
        surface, samples, points, buffers, scene.materials, scene.lighting, _shadow(scene), scene.backdrop, scene.camera.intrinsics
    )
    return _sample(scene, truth, seed)


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


def _sample(scene: Scene, truth: PixelTruth, seed: int) -> SyntheticSample:
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
    keypoints, boxes = keypoint_truth(scene, truth)
    return SyntheticSample(
        image=np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8),
        keypoints=keypoints,
        boxes_xywh=boxes,
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
