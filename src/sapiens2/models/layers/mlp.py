"""Feed-forward networks of a transformer layer."""

from __future__ import annotations

from torch import Tensor, nn
from transformers.activations import ACT2FN

from sapiens2.models.configuration import Sapiens2Config

__all__ = ["Sapiens2GatedMLP", "Sapiens2MLP"]


class Sapiens2MLP(nn.Module):
    """``down(act(up(x)))``."""

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)
        self.act_fn = ACT2FN[config.hidden_act]

    def forward(self, hidden_states: Tensor) -> Tensor:
        """``(..., hidden_size)`` to the same shape."""
        output: Tensor = self.down_proj(self.act_fn(self.up_proj(hidden_states)))
        return output


class Sapiens2GatedMLP(Sapiens2MLP):
    """``down(act(gate(x)) * up(x))``.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", arXiv 2002.05202.
    """

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__(config)
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """``(..., hidden_size)`` to the same shape."""
        output: Tensor = self.down_proj(self.act_fn(self.gate_proj(hidden_states)) * self.up_proj(hidden_states))
        return output
