"""Which samples are worth training on. Evaluation counts every sample, and asks none of this."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.sample import IGNORE_LABEL, Sample
from sapiens2.errors import InputError
from sapiens2.geometry import CANONICAL_FOCAL_PX

__all__ = ["Acceptance", "UnusableSampleError", "valid_pixels"]


class UnusableSampleError(InputError):
    """A whole sample of which an augmentation can make nothing, however often it is tried: of nobody, for example.

    :class:`~sapiens2.data.AugmentedSamples` takes another sample in its place.
    """


@dataclass(frozen=True)
class Acceptance:
    """Limits that an augmented sample has to keep; a limit of None, and one on what is not known, always holds.

    Attributes:
        min_labelled_share: Least share of all pixels with a class that is neither the background nor ignored.
        min_valid_pixels: Least number of pixels with truth, in the maps of float values.
        max_valid_share: Largest share of pixels with truth in these maps: if nearly all have it, the mask is suspect.
        min_canonical_depth: Least depth in the canonical frame, focal length 768 px.
        min_visible_keypoints: Least number of visible keypoints.
        min_albedo_spread: Least standard deviation of the albedo, in the channel where it is largest.
    """

    min_labelled_share: float | None = None
    min_valid_pixels: int | None = None
    max_valid_share: float | None = None
    min_canonical_depth: float | None = None
    min_visible_keypoints: int | None = None
    min_albedo_spread: float | None = None

    def fault(self, sample: Sample) -> str | None:
        """Say which limit a sample breaks, or None."""
        if self.min_visible_keypoints is not None and sample.keypoints is not None:
            visible = int((sample.keypoints[..., 2] > 0).sum())
            if visible < self.min_visible_keypoints:
                return f"{visible} visible keypoints, fewer than {self.min_visible_keypoints}"
        if self.min_labelled_share is not None and sample.parts is not None:
            share = float(((sample.parts != 0) & (sample.parts != IGNORE_LABEL)).mean())
            if share < self.min_labelled_share:
                return f"classes cover {share:.2%} of it, less than {self.min_labelled_share:.2%}"
        return self._fault_of_maps(sample)

    def _fault_of_maps(self, sample: Sample) -> str | None:
        valid = valid_pixels(sample)
        if valid is None:
            return None
        if self.min_valid_pixels is not None and valid.sum() < self.min_valid_pixels:
            return f"{int(valid.sum())} pixels with truth, fewer than {self.min_valid_pixels}"
        if self.max_valid_share is not None and valid.mean() > self.max_valid_share:
            return f"{valid.mean():.1%} of its pixels have truth, more than {self.max_valid_share:.1%}"
        if self.min_canonical_depth is not None and sample.pointmap is not None and valid.any():
            assert sample.intrinsics is not None
            nearest = float(sample.pointmap[2][valid].min()) * CANONICAL_FOCAL_PX / float(sample.intrinsics[0, 0])
            if nearest < self.min_canonical_depth:
                return f"its nearest point has a canonical depth of {nearest:.3g}, below {self.min_canonical_depth}"
        if self.min_albedo_spread is not None and sample.albedo is not None and valid.any():
            spread = float(sample.albedo[:, valid].std(axis=1).max())
            if spread < self.min_albedo_spread:
                return f"its albedo varies by {spread:.3g} only, less than {self.min_albedo_spread}"
        return None


def valid_pixels(sample: Sample) -> NDArray[np.bool_] | None:
    """Pixels where every known map of normals, points and albedo has a value and the mask is true.

    Returns:
        ``(H, W)`` bool; None if there is neither such a map nor a mask.
    """
    maps = [values for values in (sample.normals, sample.pointmap, sample.albedo) if values is not None]
    if not maps and sample.mask is None:
        return None
    valid = np.ones(sample.size_hw, np.bool_) if sample.mask is None else sample.mask.copy()
    for values in maps:
        valid &= np.isfinite(values).all(axis=0)
    return valid
