"""The 4K variant's tokenizer: a window of patches becomes one token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.layers.layer import Sapiens2Layer

__all__ = ["Sapiens2WindowTokenizer"]

WINDOWS_PER_CHUNK = 1024  # bounds the feed-forward activations: 17 tokens a window, 4 x hidden_size each


class Sapiens2WindowTokenizer(nn.Module):
    """Summarise each window of patches by the class token of a small transformer that sees that window alone.

    Each window gets a shared class token and learned positions; its layers have full attention, no rotation, no QK norm
    and no layer scale. A 4096x3072 image (256x192 patches, windows of 4x4) gives the trunk the 64x48 grid of 1024x768.

    Source: Sapiens2, arXiv 2604.21681 (hierarchical 4K variant).
    """

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        assert config.num_tokenizer_layers is not None
        self.window_size = config.tokenizer_window_size
        width = config.hidden_size
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.position_embeddings = nn.Parameter(torch.zeros(1, 1 + self.window_size**2, width))
        self.layer = nn.ModuleList(
            Sapiens2Layer(config, config.num_attention_heads, use_qk_norm=False, use_layer_scale=False)
            for _ in range(config.num_tokenizer_layers)
        )

    def forward(self, grid: Tensor, **kwargs: Any) -> Tensor:
        """``(batch, width, rows, columns)`` patches to ``(batch, width, rows / window, columns / window)``."""
        batch, width, rows, columns = grid.shape
        size = self.window_size
        rows, columns = rows // size, columns // size
        windows = grid.view(batch, width, rows, size, columns, size).permute(0, 2, 4, 3, 5, 1)
        windows = windows.reshape(batch * rows * columns, size * size, width)
        if torch.compiler.is_compiling():  # a loop over a batch-dependent number of chunks cannot be exported
            tokens = self._summarise(windows, **kwargs)
        else:
            chunks = windows.split(WINDOWS_PER_CHUNK)
            tokens = torch.cat([self._summarise(chunk, **kwargs) for chunk in chunks])
        return tokens.view(batch, rows, columns, width).permute(0, 3, 1, 2)

    def _summarise(self, windows: Tensor, **kwargs: Any) -> Tensor:
        tokens = torch.cat((self.cls_token.expand(windows.shape[0], -1, -1), windows), dim=1)
        tokens = tokens + self.position_embeddings
        for layer in self.layer:
            tokens = layer(tokens, **kwargs)
        return tokens[:, 0]
