"""Axial rotary position embedding of the patch grid."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sapiens2.models.configuration import Sapiens2Config

__all__ = ["RopeTables", "Sapiens2RopePositionEmbedding", "rotate"]

RopeTables = tuple[Tensor, Tensor]
"""Cosines and sines, each ``(tokens, head_dim / 2)``; the rows of the prefix tokens hold 1 and 0."""


class Sapiens2RopePositionEmbedding(nn.Module):
    """Tables that rotate queries and keys by the position of their patch.

    A head dimension D has D/4 periods, ``theta ** (4 j / D)``. Row and column of a patch centre, each scaled to (-1,
    1), give D/4 angles each, ``2 pi coordinate / period``; dimension k turns with k + D/2.

    In training the coordinates may be shifted, stretched along each axis (jitter) or stretched together (rescale), as
    the configuration says.

    Convention: rows first (y), then columns (x), y down, x right.
    Source: Heo et al. 2024, arXiv 2403.13298 (axial RoPE for vision); Simeoni et al. 2025, arXiv 2508.10104 (box
    coordinates and their augmentation).
    """

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.theta = config.rope_theta
        self.shift = config.pos_embed_shift
        self.jitter = config.pos_embed_jitter
        self.rescale = config.pos_embed_rescale
        self.num_prefix_tokens = 1 + config.num_register_tokens
        self.table_dtype: torch.dtype = getattr(torch, config.rope_table_dtype)

    def periods(self, device: torch.device) -> Tensor:
        """Periods ``(head_dim / 4,)`` in the table's dtype.

        They are computed anew each time: as a buffer they would be rounded when the model is cast to half precision.
        """
        steps = torch.arange(self.head_dim // 4, device=device, dtype=self.table_dtype)
        return self.theta ** (2 * steps / (self.head_dim // 2))

    def forward(self, grid_hw: tuple[int, int], like: Tensor) -> RopeTables:
        """Tables for a grid of patches.

        Args:
            grid_hw: Patches along ``(height, width)``.
            like: Tensor whose device the tables take, and whose dtype unless ``rope_table_dtype`` is bfloat16.
        """
        dtype = self.table_dtype
        device = like.device
        with torch.autocast(device_type=device.type, enabled=False):
            rows, columns = (
                2.0 * ((torch.arange(side, device=device, dtype=torch.float32) + 0.5) / side).to(dtype) - 1.0
                for side in grid_hw
            )
            coordinates = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), dim=-1).flatten(0, 1)  # (hw, 2)
            coordinates = self._augment(coordinates)
            turns, periods = 2 * math.pi * coordinates[:, :, None], self.periods(device)
            # in float32 the reference multiplies by the inverse, in bfloat16 the original divides: same bits as each
            angles = turns * (1.0 / periods) if dtype == torch.float32 else turns / periods
            angles = angles.flatten(1)  # (hw, head_dim / 2)
            prefix = angles.new_zeros((self.num_prefix_tokens, angles.shape[1]))
            angles = torch.cat((prefix, angles))
            cosines, sines = angles.cos(), angles.sin()
        if dtype == torch.bfloat16:
            return cosines, sines
        return cosines.to(like.dtype), sines.to(like.dtype)

    def _augment(self, coordinates: Tensor) -> Tensor:
        if not self.training:
            return coordinates
        if self.shift is not None:
            coordinates = coordinates + coordinates.new_empty(2).uniform_(-self.shift, self.shift)
        if self.jitter is not None:
            bound = math.log(self.jitter)
            coordinates = coordinates * coordinates.new_empty(2).uniform_(-bound, bound).exp()
        if self.rescale is not None:
            bound = math.log(self.rescale)
            coordinates = coordinates * coordinates.new_empty(1).uniform_(-bound, bound).exp()
        return coordinates


def rotate(states: Tensor, tables: RopeTables) -> Tensor:
    """Turn dimension k with k + D/2 of ``(batch, heads, tokens, D)`` by the angle of the token.

    Prefix tokens have cosine 1 and sine 0 in the tables, so that the whole sequence is rotated in one pass.
    """
    cosines, sines = tables
    first, second = states.to(cosines.dtype).chunk(2, dim=-1)
    turned = torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
    return turned.to(states.dtype)
