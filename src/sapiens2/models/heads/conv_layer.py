"""One stage of a decode head: convolution, normalisation, activation."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sapiens2.models.heads.head_init import head_layer

__all__ = ["ConvKind", "Sapiens2ConvLayer", "Sapiens2InstanceNorm", "Sapiens2PixelRMSNorm"]

ConvKind = Literal["plain", "unpadded", "transposed", "pixel_shuffle", "strided"]


class Sapiens2InstanceNorm(nn.Module):
    """Zero mean and unit variance over the pixels of each channel; no parameters.

    A map of one pixel becomes zero (torch's own module refuses it in training mode only).

    Source: Ulyanov et al. 2016, arXiv 1607.08022.
    """

    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, maps: Tensor) -> Tensor:
        """``(batch, channels, height, width)`` to the same shape."""
        return torch.instance_norm(maps, None, None, None, None, True, 0.0, self.eps, torch.backends.cudnn.enabled)


class Sapiens2PixelRMSNorm(nn.Module):
    """Root mean square normalisation across the channels of each pixel, with a learned weight (albedo heads)."""

    def __init__(self, channels: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def forward(self, maps: Tensor) -> Tensor:
        """``(batch, channels, height, width)`` to the same shape."""
        values = maps.float()
        scale = torch.rsqrt(values.square().mean(1, keepdim=True) + self.eps)
        return (values * scale).to(maps.dtype) * self.weight[:, None, None]


class Sapiens2ConvLayer(nn.Module):
    """Convolution, pixel shuffle where the stage asks for it, normalisation, SiLU.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Of the convolution.
        kind: ``"plain"`` keeps the size, ``"pixel_shuffle"`` doubles it, ``"strided"`` halves it (rounding up), all
            three with odd kernels; ``"transposed"`` doubles it with kernel 4; ``"unpadded"`` loses kernel - 1 pixels.
        norm_type: ``"instance"`` or ``"rms"``.

    Transposed convolutions of other kernels, and unpadded ones, are sized as transformers sizes them: a checkpoint
    trained there must give the same numbers here.

    Source: Shi et al. 2016, arXiv 1609.05158 (pixel shuffle).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        kind: ConvKind = "plain",
        norm_type: str = "instance",
    ) -> None:
        super().__init__()
        self.kind = kind
        self.convolution: nn.Conv2d | nn.ConvTranspose2d
        if kind == "transposed":
            self.convolution = head_layer(
                nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=2, padding=1, bias=False)
            )
        else:
            self.convolution = head_layer(
                nn.Conv2d(
                    in_channels,
                    4 * out_channels if kind == "pixel_shuffle" else out_channels,
                    kernel_size,
                    stride=2 if kind == "strided" else 1,
                    padding=0 if kind == "unpadded" else kernel_size // 2,
                )
            )
        self.norm = Sapiens2PixelRMSNorm(out_channels) if norm_type == "rms" else Sapiens2InstanceNorm()

    def forward(self, maps: Tensor) -> Tensor:
        """``(batch, in_channels, height, width)`` to ``(batch, out_channels, height', width')``."""
        maps = self.convolution(maps)
        if self.kind == "pixel_shuffle":
            maps = F.pixel_shuffle(maps, 2)
        maps = self.norm(maps)
        return F.silu(maps, inplace=not torch.is_grad_enabled())  # full-size maps: do not hold them twice
