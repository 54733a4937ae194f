"""One transformer layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.layers.attention import Sapiens2Attention
from sapiens2.models.layers.mlp import Sapiens2GatedMLP, Sapiens2MLP
from sapiens2.models.layers.residual import Sapiens2DropPath, Sapiens2LayerScale
from sapiens2.models.layers.rms_norm import Sapiens2RMSNorm
from sapiens2.models.layers.rope import RopeTables

__all__ = ["Sapiens2Layer"]


class Sapiens2Layer(GradientCheckpointingLayer):
    """Pre-norm attention and feed-forward; only the attention branch has a layer scale, as in the original.

    Args:
        config: The model's configuration.
        num_key_value_heads: Key and value heads of this layer.
        use_qk_norm: Normalise queries and keys.
        use_layer_scale: Scale the attention branch by learned factors.
    """

    def __init__(
        self, config: Sapiens2Config, num_key_value_heads: int, *, use_qk_norm: bool, use_layer_scale: bool = True
    ) -> None:
        super().__init__()
        width = config.hidden_size
        self.norm1 = Sapiens2RMSNorm(width, config.rms_norm_eps)
        self.attention = Sapiens2Attention(config, num_key_value_heads, use_qk_norm)
        self.layer_scale1 = Sapiens2LayerScale(width, config.layerscale_value) if use_layer_scale else nn.Identity()
        self.drop_path = Sapiens2DropPath(config.drop_path_rate) if config.drop_path_rate > 0 else nn.Identity()
        self.norm2 = Sapiens2RMSNorm(width, config.rms_norm_eps)
        self.mlp = Sapiens2GatedMLP(config) if config.use_gated_mlp else Sapiens2MLP(config)

    def forward(self, hidden_states: Tensor, position_embeddings: RopeTables | None = None, **kwargs: Any) -> Tensor:
        """``(batch, tokens, hidden_size)`` to the same shape."""
        attended, _ = self.attention(self.norm1(hidden_states), position_embeddings=position_embeddings, **kwargs)
        hidden_states = hidden_states + self.drop_path(self.layer_scale1(attended))
        output: Tensor = hidden_states + self.drop_path(self.mlp(self.norm2(hidden_states)))
        return output
