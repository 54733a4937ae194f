"""From pixels to tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sapiens2.errors import InputError
from sapiens2.models.configuration import Sapiens2Config

__all__ = ["Sapiens2Embeddings"]


class Sapiens2Embeddings(nn.Module):
    """Patches by a strided convolution, and the class and register tokens that go in front of them.

    Source: Darcet et al. 2024, "Vision Transformers Need Registers", arXiv 2309.16588.
    """

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        width, patch = config.hidden_size, config.patch_size_hw
        self.num_channels = config.num_channels
        self.stride_hw = config.feature_stride_hw
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.register_tokens = nn.Parameter(torch.zeros(1, config.num_register_tokens, width))
        if config.use_mask_token:
            self.mask_token = nn.Parameter(torch.zeros(1, 1, width))
        else:
            self.register_parameter("mask_token", None)
        self.patch_embeddings = nn.Conv2d(config.num_channels, width, kernel_size=patch, stride=patch)

    def forward(
        self,
        pixel_values: Tensor,
        bool_masked_pos: Tensor | None = None,
        tokenizer: nn.Module | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Embed images.

        Args:
            pixel_values: ``(batch, channels, height, width)``; any float dtype, cast to the weights'.
            bool_masked_pos: ``(batch, patches)``; true where the mask token stands in for the patch.
            tokenizer: Reduces the grid ``(batch, hidden_size, rows, columns)`` of patches (4K variant).
            **kwargs: Passed to the tokenizer.

        Returns:
            Class, register and patch tokens, ``(batch, tokens, hidden_size)``.

        Raises:
            InputError: Another number of axes or channels; a side that is no multiple of the patch (or of the window of
                patches); a mask of another shape, or for a model without mask token.
        """
        self._check(pixel_values)
        grid: Tensor = self.patch_embeddings(pixel_values.to(self.patch_embeddings.weight.dtype))
        if bool_masked_pos is not None:
            grid = self._masked(grid, bool_masked_pos)
        if tokenizer is not None:
            grid = tokenizer(grid, **kwargs)
        patches = grid.flatten(2).transpose(1, 2)
        prefix = torch.cat((self.cls_token, self.register_tokens), dim=1)
        return torch.cat((prefix.expand(patches.shape[0], -1, -1).to(patches.dtype), patches), dim=1)

    def _check(self, pixel_values: Tensor) -> None:
        shape = tuple(pixel_values.shape)
        if len(shape) != 4 or shape[1] != self.num_channels:
            raise InputError(f"pixel_values must be (batch, {self.num_channels}, height, width), got {shape}")
        if not pixel_values.is_floating_point():
            raise InputError(
                f"pixel_values must be floating point, got {pixel_values.dtype}; Sapiens2ImageProcessor makes them"
            )
        for side, stride, name in zip(shape[2:], self.stride_hw, ("height", "width"), strict=True):
            if side < stride or side % stride:
                raise InputError(
                    f"pixel_values are {shape[2]}x{shape[3]}: the {name} must be a multiple of {stride}; "
                    "resize or pad the image (Sapiens2ImageProcessor does)"
                )

    def _masked(self, grid: Tensor, bool_masked_pos: Tensor) -> Tensor:
        if self.mask_token is None:
            raise InputError("bool_masked_pos needs a mask token: set use_mask_token=True in the configuration")
        batch, width, rows, columns = grid.shape
        if bool_masked_pos.numel() != batch * rows * columns:
            raise InputError(
                f"bool_masked_pos must be (batch, patches) = ({batch}, {rows * columns}), "
                f"got {tuple(bool_masked_pos.shape)}"
            )
        mask = bool_masked_pos.reshape(batch, 1, rows, columns).to(device=grid.device, dtype=torch.bool)
        return torch.where(mask, self.mask_token.view(1, width, 1, 1).to(grid.dtype), grid)
