"""Accuracy of mattes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.metrics.components import largest_component
from sapiens2.metrics.dense_metric import DenseMetric
from sapiens2.metrics.inputs import batch_mask, check_finite, check_range, paired_maps
from sapiens2.metrics.separable_filter import separable_filter
from sapiens2.types import ArrayLike

__all__ = ["MattingMetric"]

GRADIENT_SIGMA = 1.4
GRADIENT_CUT = 1e-2
"""Value of the Gaussian where its kernel ends: with sigma 1.4, 4 pixels from the centre."""

CONNECTIVITY_LEVELS = 10
CONNECTIVITY_TOLERANCE = 0.15

_PER_IMAGE = ("mad", "mse", "sad_per_1000", "grad_per_1000", "conn_per_1000")
_SLACK = 1e-3  # rounding of half-precision mattes


class MattingMetric(DenseMetric):
    """Differences of opacity, measured per image and averaged over images, as is the custom of the field.

    Figures:

    * ``mad``, ``mse``: mean absolute and mean squared difference of alpha in [0, 1] (papers print both times 1000);
    * ``sad_per_1000``: sum of absolute differences, in thousands;
    * ``grad_per_1000``: sum of squared differences of the gradient magnitude, in thousands. The gradient is that of a
      Gaussian with sigma 1.4, its kernels of unit L2 norm, border pixels repeated. Alpha is taken as it is, where the
      benchmark's script first stretches every matte to [0, 1];
    * ``conn_per_1000``: sum of differences of connectivity, in thousands: theta 0.15, steps of 0.1, exponent 1;
    * ``mask_iou``: IoU of alpha >= 0.5, over the images in which either side has such a pixel;
    * ``empty_images``: images whose true alpha is 0 everywhere, and ``empty_images_below_<a>_percent``: those among
      them whose predicted alpha is below a on average; ``images``, ``pixels``.

    A pixel counts when its mask is True and its target is finite; outside, both sides are taken as 0. A trimap's
    unknown region limits where differences count, but not what gradients and connectivity see.

    Args:
        empty_alpha_limit: a, in (0, 1].
        mask_description: What the masks and trimap regions select, in words.

    Raises:
        InputError: The limit is out of range.

    Source: Rhemann et al., A Perceptually Motivated Online Benchmark for Image Matting, CVPR 2009, section 4.
    """

    def __init__(self, *, empty_alpha_limit: float = 0.02, mask_description: str = "") -> None:
        super().__init__(mask_description=mask_description)
        self._empty_alpha_limit = float(empty_alpha_limit)
        if not 0 < self._empty_alpha_limit <= 1:
            raise InputError(f"empty_alpha_limit must lie in (0, 1], got {empty_alpha_limit}")

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {"empty_alpha_limit": self._empty_alpha_limit, **super().settings()}

    def update(
        self,
        prediction: ArrayLike,
        target: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        unknown_region: ArrayLike | None = None,
    ) -> None:
        """Add an image or a batch.

        Args:
            prediction: ``(H, W)``, ``(B, H, W)`` or ``(B, 1, H, W)`` alpha in [0, 1].
            target: The same shape.
            mask: ``(H, W)`` or ``(B, H, W)`` bool, True where the target is known.
            unknown_region: The same shape, bool, True where differences count: the unknown pixels of a trimap.

        Raises:
            InputError: Shapes that do not fit, masks that are not bool, alpha out of range, or NaN in a prediction
                that counts.
        """
        predicted, true, masked = paired_maps(prediction, target, mask, channels=1)
        known = torch.isfinite(true) & masked
        counted = known & batch_mask(unknown_region, predicted, "unknown_region")
        check_finite(predicted, known, "prediction")
        check_range(predicted, known, "prediction", -_SLACK, 1 + _SLACK)
        check_range(true, known, "target", -_SLACK, 1 + _SLACK)
        nothing = torch.zeros_like(true)
        predicted, true = torch.where(known, predicted, nothing), torch.where(known, true, nothing)
        self._count_images(counted, masked=mask is not None or unknown_region is not None)
        self._totals.count("images_with_unknown_region", len(counted) if unknown_region is not None else 0)
        for alpha, truth, counts in zip(predicted[:, 0], true[:, 0], counted[:, 0], strict=True):
            if counts.any():
                self._add_matte(alpha, truth, counts)

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; NaN where there is nothing to measure."""
        totals = self._totals
        limit = f"{self._empty_alpha_limit:g}"
        return {
            **{name: totals.mean(name, "measured") for name in _PER_IMAGE},
            "mask_iou": totals.mean("mask_iou", "with_mask"),
            f"empty_images_below_{limit}_percent": 100 * totals.share("empty_passed", "empty"),
            "empty_images": float(totals.count_of("empty")),
            **self._counts(),
        }

    def notes(self) -> tuple[str, ...]:
        """Sentences about trimaps and images that have no mask IoU, and what all metrics of maps say."""
        found, totals = super().notes(), self._totals
        measured, images = totals.count_of("measured"), totals.count_of("images")
        if trimaps := totals.count_of("images_with_unknown_region"):
            found += (f"in {trimaps} of {images} images only the unknown region of a trimap counts",)
        if without := measured - totals.count_of("with_mask"):
            found += (f"{without} of {measured} images have no alpha >= 0.5 on either side, and no mask_iou",)
        return found

    def _add_matte(self, alpha: Tensor, truth: Tensor, counts: Tensor) -> None:
        """Add one image: ``(H, W)`` float64 twice, and ``(H, W)`` bool with a True pixel."""
        totals, errors = self._totals, (alpha - truth)[counts]
        totals.count("measured", 1)
        totals.add("mad", errors.abs().mean().item())
        totals.add("mse", errors.square().mean().item())
        totals.add("sad_per_1000", errors.abs().sum().item() / 1000)
        slopes = _gradient_magnitudes(torch.stack([alpha, truth]))
        totals.add("grad_per_1000", (slopes[0] - slopes[1])[counts].square().sum().item() / 1000)
        totals.add("conn_per_1000", _connectivity_error(alpha, truth, counts) / 1000)
        inside, truly_inside = (alpha >= 0.5)[counts], (truth >= 0.5)[counts]
        if union := int((inside | truly_inside).sum()):
            totals.add("mask_iou", int((inside & truly_inside).sum()) / union)
            totals.count("with_mask", 1)
        if not (truth[counts] > 0).any():
            totals.count("empty", 1)
            totals.count("empty_passed", int(alpha[counts].mean().item() < self._empty_alpha_limit))


def _gradient_magnitudes(mattes: Tensor) -> Tensor:
    """Length of the Gaussian gradient of ``(N, H, W)`` mattes."""
    sigma = GRADIENT_SIGMA
    reach = math.ceil(sigma * math.sqrt(-2 * math.log(math.sqrt(2 * math.pi) * sigma * GRADIENT_CUT)))
    offsets = torch.arange(-reach, reach + 1, dtype=mattes.dtype, device=mattes.device)
    gaussian = torch.exp(-offsets.square() / (2 * sigma**2))
    derivative = offsets * gaussian
    # The two-dimensional kernels are outer products, so their norms are products of these.
    gaussian, derivative = gaussian / gaussian.norm(), derivative / derivative.norm()
    padded = F.pad(mattes, (reach, reach, reach, reach), mode="replicate")
    along_x, along_y = separable_filter(padded, gaussian, derivative), separable_filter(padded, derivative, gaussian)
    return torch.hypot(along_x, along_y)


def _connectivity_error(alpha: Tensor, truth: Tensor, counts: Tensor) -> float:
    mattes = [side.cpu().numpy() for side in (alpha, truth)]
    levels = _connected_levels(np.minimum(*mattes))
    distances = [matte - levels for matte in mattes]
    degrees = [1 - np.where(distance >= CONNECTIVITY_TOLERANCE, distance, 0) for distance in distances]
    return float(np.abs(degrees[0] - degrees[1])[counts.cpu().numpy()].sum())


def _connected_levels(common: NDArray[np.float64]) -> NDArray[np.float64]:
    """Highest level up to which each pixel hangs together with the largest region that both mattes share.

    Args:
        common: ``(H, W)``, the lower of the two alphas.

    Returns:
        ``(H, W)`` multiples of 0.1 in [0, 1].
    """
    levels = np.zeros_like(common)
    connected = np.ones(common.shape, np.bool_)
    for step in range(1, CONNECTIVITY_LEVELS + 1):
        level = step / CONNECTIVITY_LEVELS
        connected &= largest_component(common >= level)
        levels[connected] = level
    return levels
