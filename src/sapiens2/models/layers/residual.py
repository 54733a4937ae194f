"""What happens to a branch before it is added to the residual stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Sapiens2DropPath", "Sapiens2LayerScale"]


class Sapiens2LayerScale(nn.Module):
    """Multiply by one learned factor for each channel.

    Source: Touvron et al. 2021, "Going deeper with Image Transformers", arXiv 2103.17239.
    """

    def __init__(self, size: int, value: float) -> None:
        super().__init__()
        self.value = value
        self.lambda1 = nn.Parameter(torch.full((size,), value))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """``(..., size)`` to the same shape."""
        return hidden_states * self.lambda1


class Sapiens2DropPath(nn.Module):
    """Drop the whole branch of a sample with probability ``rate`` in training, and scale the rest up.

    Source: Huang et al. 2016, "Deep Networks with Stochastic Depth", arXiv 1603.09382.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        """``(batch, ...)`` to the same shape; the identity in evaluation."""
        if not self.training or self.rate == 0.0:
            return branch
        keep = 1.0 - self.rate
        mask = branch.new_empty((branch.shape[0],) + (1,) * (branch.ndim - 1)).bernoulli_(keep)
        return branch * mask.div_(keep)

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"rate={self.rate}"
