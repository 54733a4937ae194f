"""From raw normal maps to unit vectors."""

from __future__ import annotations

from typing import Any

import torch

from sapiens2.processing.model_outputs import output_maps
from sapiens2.processing.restoration import Restoration
from sapiens2.processing.sizes import SizesLike

__all__ = ["post_process_normal_estimation", "unit_vectors"]

_SAFE_COMPONENT = 1e18
"""The square of three such components is finite in float32."""


def post_process_normal_estimation(
    outputs: Any,
    source_sizes: SizesLike | None = None,
    target_sizes: SizesLike | None = None,
    do_remove_padding: bool | None = None,
) -> list[dict[str, torch.Tensor]]:
    """Cut the padding, resize, and bring every normal to unit length.

    Interpolation shortens vectors, so lengths are set after the resize; they are set before it as well, because the
    lengths of raw normals mean nothing and should not weigh the interpolation.

    Convention: camera frame, x right, y down.

    Args:
        outputs: Output with ``normals`` ``(B, 3, H, W)``, raw, or a mapping.
        source_sizes: ``(height, width)`` of each image before preprocessing, or the images.
        target_sizes: ``(height, width)`` of each result; ``source_sizes`` if ``None``, and with neither the size of the
            model's output.
        do_remove_padding: Whether to cut the padding away; ``None`` means yes if ``source_sizes`` are given.

    Returns:
        Per image ``{"normals": (3, height, width)}``, float32, length 1. A zero vector stays zero.

    Raises:
        InputError: ``outputs`` has no such normals, or the sizes do not fit the batch.
    """
    normals = output_maps(outputs, "normals", channels=3)
    restoration = Restoration.plan(normals.shape[0], source_sizes, target_sizes, do_remove_padding)
    return [{"normals": unit_vectors(restored)} for restored in restoration.apply(normals, prepare=unit_vectors)]


def unit_vectors(vectors: torch.Tensor) -> torch.Tensor:
    """Scale the vectors along the first axis to length 1.

    Args:
        vectors: ``(3, H, W)``, float32, of any finite magnitude; half precision would lose the guard against
            division by zero.

    Returns:
        Same shape; vectors shorter than 1e-6 keep their direction but not unit length, zero stays zero.
    """
    if vectors.numel() and not bool(vectors.abs().max() <= _SAFE_COMPONENT):  # NaN goes the same way
        vectors = vectors / vectors.abs().amax(dim=0).clamp_min(1.0)
    x, y, z = vectors.unbind(0)
    squared = (x * x).addcmul_(y, y).addcmul_(z, z)  # one plane of memory where a norm over the axis takes three
    inverse_length: torch.Tensor = squared.clamp_(min=1e-12).rsqrt_()
    return vectors * inverse_length
