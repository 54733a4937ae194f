"""Multi-head and grouped-query self-attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.layers.rms_norm import Sapiens2RMSNorm
from sapiens2.models.layers.rope import RopeTables, rotate

__all__ = ["Sapiens2Attention", "eager_attention"]


def eager_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Plain attention that returns its weights.

    Args:
        module: The attention layer; its ``num_key_value_groups`` query heads share each key head.
        query: ``(batch, heads, tokens, head_dim)``.
        key: ``(batch, kv_heads, tokens, head_dim)``.
        value: As ``key``.
        attention_mask: Added to the scores, or ``None``.
        scaling: Factor of the scores.
        dropout: Probability of dropping a weight in training.

    Returns:
        Output ``(batch, tokens, heads, head_dim)`` and weights ``(batch, heads, tokens, tokens)``.
    """
    groups = module.num_key_value_groups
    if groups > 1:
        key, value = (states.repeat_interleave(groups, dim=1) for states in (key, value))
    scores = (query @ key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    weights = F.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2), weights


class Sapiens2Attention(nn.Module):
    """Self-attention with normalised queries and keys; fewer key heads than query heads where the layer is grouped.

    Args:
        config: The model's configuration.
        num_key_value_heads: Key and value heads of this layer.
        use_qk_norm: Normalise queries and keys over the head dimension, before rotation.

    Source: Ainslie et al. 2023, arXiv 2305.13245 (grouped queries); Henry et al. 2020, arXiv 2010.04245 (QK norm).
    """

    is_causal = False

    def __init__(self, config: Sapiens2Config, num_key_value_heads: int, use_qk_norm: bool) -> None:
        super().__init__()
        width = config.hidden_size
        self.config = config
        self.num_heads = config.num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.num_key_value_groups = self.num_heads // num_key_value_heads
        self.head_dim = width // self.num_heads
        self.scaling = self.head_dim**-0.5
        self.attention_dropout = config.attention_dropout
        kv_width = num_key_value_heads * self.head_dim
        self.q_proj = nn.Linear(width, width, bias=config.query_bias)
        self.k_proj = nn.Linear(width, kv_width, bias=config.key_bias)
        self.v_proj = nn.Linear(width, kv_width, bias=config.value_bias)
        self.o_proj = nn.Linear(width, width, bias=config.proj_bias)
        self.q_norm = Sapiens2RMSNorm(self.head_dim, config.rms_norm_eps) if use_qk_norm else nn.Identity()
        self.k_norm = Sapiens2RMSNorm(self.head_dim, config.rms_norm_eps) if use_qk_norm else nn.Identity()

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: RopeTables | None = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            hidden_states: ``(batch, tokens, hidden_size)``.
            position_embeddings: Tables of :class:`Sapiens2RopePositionEmbedding`; ``None`` rotates nothing.
            attention_mask: Passed to the attention function.
            **kwargs: Passed to the attention function.

        Returns:
            ``(batch, tokens, hidden_size)``, and the weights where the attention function gives them.
        """
        batch, tokens, _ = hidden_states.shape
        query = self.q_norm(self.q_proj(hidden_states).view(batch, tokens, self.num_heads, self.head_dim))
        key = self.k_norm(self.k_proj(hidden_states).view(batch, tokens, self.num_key_value_heads, self.head_dim))
        value = self.v_proj(hidden_states).view(batch, tokens, self.num_key_value_heads, self.head_dim)
        query, key, value = (states.transpose(1, 2) for states in (query, key, value))
        if position_embeddings is not None:
            query, key = rotate(query, position_embeddings), rotate(key, position_embeddings)
        # no people is no error, but transformers' attention functions cannot reshape an empty batch
        implementation = self.config._attn_implementation if batch > 0 else "eager"
        attend: Callable[..., tuple[Tensor, Tensor | None]] = ALL_ATTENTION_FUNCTIONS.get_interface(
            implementation, eager_attention
        )
        output, weights = attend(
            self,
            query,
            key,
            value,
            attention_mask,
            dropout=self.attention_dropout if self.training else 0.0,
            scaling=self.scaling,
            **kwargs,
        )
        return self.o_proj(output.reshape(batch, tokens, self.num_heads * self.head_dim)), weights
