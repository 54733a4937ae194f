"""Comparison of directions: vectors of which only the orientation counts."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["cosine_distances", "unit_vectors"]

_MIN_LENGTH = 1e-3


def unit_vectors(vectors: Tensor, min_length: float = _MIN_LENGTH) -> Tensor:
    """Scale vectors to length 1, those shorter than ``min_length`` by ``1 / min_length``.

    The derivative of a direction grows as 1 / length. The floor bounds it, so that vectors near zero neither explode
    (in float16 an unbounded gradient overflows) nor lose their gradient; a zero vector stays zero.

    Args:
        vectors: ``(B, C, H, W)``, vectors along dimension 1.
        min_length: Length below which vectors are no longer scaled to 1.

    Returns:
        ``(B, C, H, W)``.
    """
    # squares of components above 1e19 overflow, so such vectors are scaled down first; others stay as they are
    excess: Tensor | float = 1.0
    if vectors.numel():
        excess = vectors.detach().abs().amax(dim=1, keepdim=True).clamp_min(1.0)
    scaled = vectors / excess
    lengths: Tensor = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)  # (B, 1, H, W)
    return scaled / lengths.clamp_min(min_length)


def cosine_distances(predicted: Tensor, target: Tensor) -> Tensor:
    """Return 1 − cos of the angle between unit vectors: 0 along each other, 1 at right angles, 2 when opposed.

    Args:
        predicted: ``(B, C, H, W)`` unit vectors.
        target: ``(B, C, H, W)`` unit vectors.

    Returns:
        ``(B, 1, H, W)``.
    """
    return 1 - (predicted * target).sum(dim=1, keepdim=True)
