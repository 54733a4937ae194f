"""Root mean square normalisation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Sapiens2RMSNorm"]


class Sapiens2RMSNorm(nn.Module):
    """Scale by the root mean square over the last axis, then by a learned weight.

    The statistics are float32 whatever the input; the weight multiplies in the input's dtype.

    Source: Zhang & Sennrich 2019, arXiv 1910.07467.
    """

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        """``(..., size)`` to the same shape and dtype."""
        values = hidden_states.float()
        scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + self.eps)
        return (values * scale).to(hidden_states.dtype) * self.weight

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"{self.weight.shape[0]}, eps={self.eps}"
