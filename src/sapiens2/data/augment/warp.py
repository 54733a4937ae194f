"""One affine transform carried through everything that is known about a picture."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from sapiens2.data.augment.affine import Affine
from sapiens2.data.augment.mirror import Mirror
from sapiens2.data.augment.sampling import Filter, SourceGrid
from sapiens2.data.sample import IGNORE_LABEL, Sample
from sapiens2.geometry import unproject

__all__ = ["GeometricStep", "Warp", "warp_sample"]

_SAME_DEPTH = 1.02
"""Depths of neighbouring pixels on one surface differ by at most this factor."""
_SAME_DIRECTION = 0.9
"""Cosine between normals of neighbouring pixels on one surface, at least."""
_HALF = 0.5


class GeometricStep(Protocol):
    """One step of a geometric augmentation: draws its numbers and adds itself to the transform so far."""

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step.

        Args:
            frame: Transform of the steps before; its target is the picture that this step sees.
            sample: The sample in its source frame.
            rng: Source of all randomness.
        """
        ...


@dataclass(frozen=True)
class Warp:
    """Geometric steps in a row, carried out together: however many there are, pixels are read once.

    Attributes:
        steps: The steps, first to last.
        mirror: Partners of keypoints and classes, for steps that flip.
        chosen: How colours are read.
    """

    steps: tuple[GeometricStep, ...]
    mirror: Mirror = field(default_factory=Mirror.from_names, repr=False)
    chosen: Filter = "antialias"

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Draw a transform and carry it out."""
        affine = Affine.identity(sample.size_hw)
        for step in self.steps:
            affine = step(affine, sample, rng)
        return warp_sample(sample, affine, mirror=self.mirror, chosen=self.chosen)


def warp_sample(
    sample: Sample, affine: Affine, *, mirror: Mirror | None = None, chosen: Filter = "antialias"
) -> Sample:
    """Transform a picture, and its truth so that it is the truth of the new picture.

    - The image, alpha and the premultiplied foreground are interpolated alike, so they still fit each other; outside
      the picture they are 0.
    - Class ids take the nearest pixel, 255 outside. Under a mirror left and right exchange their ids.
    - Normals turn with the picture; a mirror negates x. They are of unit length afterwards.
    - Points turn alike, and the camera matrix follows. Depth is interpolated as 1 / Z, exact on planes, and X and Y are
      those of the new pixels' rays.
    - Keypoints outside the picture become invisible. Under a mirror left and right exchange their places.
    - Where the picture shows nothing the mask is false.

    Args:
        sample: The sample.
        affine: Map from its pixels to the new ones.
        mirror: Partners of keypoints and classes; needed when ``affine`` mirrors. None for those of the published
            models.
        chosen: How colours are read.

    Returns:
        The new sample, of size ``affine.target_hw``.

    Raises:
        InputError: Left and right cannot be exchanged because ``mirror`` is of other lists, or the camera gets skewed.

    Convention: pixel centres at integers; OpenCV camera.
    """
    grid = SourceGrid(affine)
    swap = (Mirror.from_names() if mirror is None else mirror) if affine.is_mirrored else None
    changed: dict[str, Any] = {
        "image": grid.smooth(sample.image.transpose(2, 0, 1), chosen=chosen).transpose(1, 2, 0),
        "mask": _mask(sample, grid),
    }
    if sample.boxes_xywh is not None:
        changed["boxes_xywh"] = affine.boxes(sample.boxes_xywh).astype(np.float32)
    if sample.keypoints is not None:
        changed["keypoints"] = _keypoints(sample.keypoints, affine, swap)
    if sample.parts is not None:
        parts = grid.nearest(sample.parts, IGNORE_LABEL)
        changed["parts"] = parts if swap is None else swap.swap_parts(parts)
    if sample.alpha is not None:
        colours = [] if sample.foreground is None else [sample.foreground]
        layers = np.concatenate([sample.alpha[None], *colours])
        read = grid.smooth(layers).clip(0, 1)
        changed |= {"alpha": read[0], "foreground": None if sample.foreground is None else read[1:]}
    if sample.albedo is not None:
        changed["albedo"] = _albedo(_counting(sample.albedo, sample.mask), grid)
    if sample.normals is not None:
        # Axes of the camera, not of the pixels: what changes the aspect changes the camera matrix, not the normals.
        axes = affine.camera(sample.intrinsics)[1]
        changed["normals"] = _normals(_counting(sample.normals, sample.mask), axes, grid)
    if sample.intrinsics is not None:
        changed["intrinsics"] = affine.camera(sample.intrinsics)[0]
        if sample.pointmap is not None:
            depth = _depth(_counting(sample.pointmap, sample.mask)[2], grid)
            changed["pointmap"] = _pointmap(depth, changed["intrinsics"])
    return replace(sample, **changed)


def _mask(sample: Sample, grid: SourceGrid) -> NDArray[np.bool_] | None:
    if sample.mask is not None:
        masked: NDArray[np.bool_] = grid.nearest(sample.mask, False)
        return masked
    return None if grid.inside.all() else grid.inside


def _keypoints(keypoints: NDArray[np.float32], affine: Affine, swap: Mirror | None) -> NDArray[np.float32]:
    places = affine.points(keypoints[..., :2])
    height, width = affine.target_hw
    with np.errstate(invalid="ignore"):  # places of invisible points may be NaN
        inside = ((places >= 0) & (places < [width, height])).all(axis=-1)
    visibility = np.where(inside, keypoints[..., 2], 0)
    moved = np.concatenate([places, visibility[..., None]], axis=-1).astype(np.float32)
    return moved if swap is None else swap.swap_keypoints(moved)


def _counting(values: NDArray[np.float32], mask: NDArray[np.bool_] | None) -> NDArray[np.float32]:
    """Values that count, NaN elsewhere."""
    return values if mask is None else np.where(mask, values, np.float32(np.nan))


def _albedo(albedo: NDArray[np.float32], grid: SourceGrid) -> NDArray[np.float32]:
    """Mean over the pixels that have an albedo, where they are at least half of those read."""
    known = np.asarray(np.isfinite(albedo).all(axis=0))
    read = grid.smooth(np.concatenate([known[None].astype(np.float32), np.where(known, albedo, np.float32(0))]))
    share = read[:1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(share >= _HALF, read[1:] / share, np.float32(np.nan))
    return mean.clip(0, 1)


def _normals(normals: NDArray[np.float32], axes: NDArray[np.float64], grid: SourceGrid) -> NDArray[np.float32]:
    right, below, across = normals[:, :-1, 1:], normals[:, 1:, :-1], normals[:, 1:, 1:]
    first = normals[:, :-1, :-1]
    joined = np.ones(first.shape[1:], np.bool_)
    for one, other in ((first, right), (first, below), (across, right), (across, below)):
        joined &= (one * other).sum(axis=0) > _SAME_DIRECTION  # false for NaN
    read = grid.on_surfaces(normals, joined)
    turned = np.concatenate([np.einsum("ij,jhw->ihw", axes.astype(np.float32), read[:2]), read[2:]])
    length = np.sqrt((turned * turned).sum(axis=0))
    return np.asarray(turned / length, np.float32)


def _depth(depth: NDArray[np.float32], grid: SourceGrid) -> NDArray[np.float32]:
    """Depth of the new pixels: a plane's 1 / Z is linear in the pixels, its Z is not."""
    with np.errstate(divide="ignore"):
        nearness = np.float32(1) / depth
    cells = np.stack([nearness[:-1, :-1], nearness[:-1, 1:], nearness[1:, :-1], nearness[1:, 1:]])
    joined = cells.max(axis=0) < _SAME_DEPTH * cells.min(axis=0)  # false for NaN
    read: NDArray[np.float32] = 1 / grid.on_surfaces(nearness[None], joined)[0]
    return read


def _pointmap(depth: NDArray[np.float32], intrinsics: NDArray[np.float64]) -> NDArray[np.float32]:
    return unproject(torch.from_numpy(depth), torch.from_numpy(intrinsics))[0].numpy()
