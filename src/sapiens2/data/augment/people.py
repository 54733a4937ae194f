"""Augmentations of single people: which one, half of the body, and the window around the box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from sapiens2.assets import keypoint_table
from sapiens2.data.augment.acceptance import UnusableSampleError
from sapiens2.data.augment.affine import Affine
from sapiens2.data.augment.chance import happens, truncated_normal
from sapiens2.data.sample import Sample
from sapiens2.errors import InputError
from sapiens2.geometry import CROP_PADDING, expand_to_aspect
from sapiens2.types import SizeHW

__all__ = ["HalfBody", "PersonWindow", "SelectPerson", "half_body_indices", "only_person"]


@dataclass(frozen=True)
class SelectPerson:
    """Keep one person of a picture, drawn at random among those with enough visible keypoints.

    Attributes:
        min_visible: Least number of visible keypoints; if nobody has as many, all people can be drawn.
    """

    min_visible: int = 1

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Keep one person.

        Raises:
            UnusableSampleError: There is nobody.
        """
        boxes = sample.boxes_xywh
        if boxes is None or len(boxes) == 0:
            raise UnusableSampleError(f"{sample.label('boxes_xywh')}: there is nobody to select.")
        candidates = np.arange(len(boxes))
        if sample.keypoints is not None:
            enough = (sample.keypoints[..., 2] > 0).sum(axis=1) >= self.min_visible
            candidates = candidates[enough] if enough.any() else candidates
        return only_person(sample, int(rng.choice(candidates)))


@dataclass(frozen=True)
class HalfBody:
    """Replace the box by one around the upper or the lower half of the visible keypoints.

    Attributes:
        upper: Indices of keypoints of the upper half.
        lower: Indices of keypoints of the lower half.
        p: Probability.
        min_visible: Least number of visible keypoints for it to happen at all.
        min_upper: Least number of visible keypoints of the upper half.
        min_lower: Least number of visible keypoints of the lower half.
        prefer_upper: Probability of the upper half where both have enough.
        padding: Side of the window over the extent of the keypoints.
    """

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    p: float = 0.3
    min_visible: int = 9
    min_upper: int = 2
    min_lower: int = 3
    prefer_upper: float = 0.7
    padding: float = 1.5

    @classmethod
    def from_names(cls, names: Sequence[str], *, p: float = 0.3) -> HalfBody:
        """Take the halves from the table of the published keypoints, by name.

        Args:
            names: Keypoints in order; those that the table does not know belong to no half.
            p: Probability.
        """
        upper, lower = half_body_indices(names)
        return cls(upper, lower, p=p)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Replace the box, or not.

        Raises:
            InputError: There are no keypoints, or fewer than the halves were built for.
        """
        if not happens(rng, self.p):
            return sample
        boxes, keypoints = _people(sample)
        if max((*self.upper, *self.lower), default=-1) >= keypoints.shape[1]:
            raise InputError(
                f"{sample.label('keypoints')}: {keypoints.shape[1]} keypoints, and the halves are those of a longer "
                "list. Build them from the names of these keypoints with HalfBody.from_names."
            )
        changed = [self._half(box, points, rng) for box, points in zip(boxes, keypoints, strict=True)]
        return replace(sample, boxes_xywh=np.array(changed, np.float32).reshape(-1, 4))

    def _half(
        self, box: NDArray[np.float32], points: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[np.floating]:
        visible = points[:, 2] > 0
        upper, lower = (np.array([i for i in half if visible[i]], np.intp) for half in (self.upper, self.lower))
        wants_upper = happens(rng, self.prefer_upper)
        halves = [half for half, least in ((upper, self.min_upper), (lower, self.min_lower)) if len(half) >= least]
        if visible.sum() < self.min_visible or not halves:
            return box
        chosen = points[halves[0] if wants_upper else halves[-1], :2]
        centre, extent = chosen.mean(axis=0), np.ptp(chosen, axis=0)
        if extent.min() <= 0:
            return box
        # The window will be CROP_PADDING times the box.
        size = extent * (self.padding / CROP_PADDING)
        return np.concatenate([centre - size / 2, size])


@dataclass(frozen=True)
class PersonWindow:
    """Cut out the one person of a sample by the UDP affine, with a shifted, scaled and turned window.

    With probabilities of 0 it is the window of :func:`sapiens2.geometry.crop_people`. Numbers are drawn from a normal
    distribution within one standard deviation.

    Attributes:
        size_hw: Size of the crop.
        shift: Largest shift, in sides of the window.
        shift_p: Probability of a shift.
        scale: Largest change of the window's side, relative to it.
        scale_p: Probability of a change.
        degrees: Largest angle.
        turn_p: Probability of a turn.
        padding: Side of the window over that of the box.
    """

    size_hw: SizeHW
    shift: float = 0.16
    shift_p: float = 0.3
    scale: float = 0.5
    scale_p: float = 1.0
    degrees: float = 80.0
    turn_p: float = 0.6
    padding: float = CROP_PADDING

    @classmethod
    def plain(cls, size_hw: SizeHW) -> PersonWindow:
        """The window without any change, for evaluation."""
        return cls(size_hw, shift_p=0.0, scale_p=0.0, turn_p=0.0)

    def __call__(self, frame: Affine, sample: Sample, rng: np.random.Generator) -> Affine:
        """Add the step.

        Raises:
            InputError: There is not exactly one person.
        """
        boxes = sample.boxes_xywh
        if boxes is None or len(boxes) != 1:
            count = 0 if boxes is None else len(boxes)
            raise InputError(
                f"{sample.label('boxes_xywh')}: {count} people; expected one. Use SelectPerson, or a data set that "
                "gives one person at a time."
            )
        moved = torch.from_numpy(frame.boxes(boxes))
        centres, sizes = expand_to_aspect(moved, self.size_hw[1] / self.size_hw[0], self.padding)
        centre, size = centres[0].numpy(), sizes[0].numpy()
        draws = [truncated_normal(rng) for _ in range(4)]
        if happens(rng, self.shift_p):
            centre = centre + self.shift * size * draws[:2]
        if happens(rng, self.scale_p):
            size = size * (1 + self.scale * draws[2])
        degrees = self.degrees * draws[3] if happens(rng, self.turn_p) else 0.0
        return frame.windowed((centre[0], centre[1]), (size[0], size[1]), self.size_hw, degrees)


def only_person(sample: Sample, index: int) -> Sample:
    """The sample with a single one of its people; maps of pixels stay as they are.

    Args:
        sample: The sample.
        index: Position of the person in ``boxes_xywh``.
    """
    assert sample.boxes_xywh is not None
    keypoints = None if sample.keypoints is None else sample.keypoints[index : index + 1]
    return replace(sample, boxes_xywh=sample.boxes_xywh[index : index + 1], keypoints=keypoints)


def half_body_indices(names: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Indices of the upper and of the lower body's keypoints, by the names of the published table."""
    table = keypoint_table()
    halves = [{table.names[index] for index in half} for half in (table.upper_body, table.lower_body)]
    upper, lower = (tuple(index for index, name in enumerate(names) if name in half) for half in halves)
    return upper, lower


def _people(sample: Sample) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    if sample.boxes_xywh is None or sample.keypoints is None:
        raise InputError(f"{sample.label('keypoints')}: a half-body crop needs keypoints and boxes.")
    return sample.boxes_xywh, sample.keypoints
