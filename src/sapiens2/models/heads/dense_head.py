"""The decode head that all tasks share."""

from __future__ import annotations

from torch import Tensor, nn

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.heads.conv_layer import ConvKind, Sapiens2ConvLayer
from sapiens2.models.heads.head_init import head_layer

__all__ = ["Sapiens2Head"]


class Sapiens2Head(nn.Module):
    """Features to maps: x2 stages, refinement convolutions, a 1x1 predictor with ``config.num_labels`` channels."""

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        head = config.head
        channels = config.hidden_size
        upsampling: ConvKind = "pixel_shuffle" if head.use_pixel_shuffle else "transposed"
        refinement: ConvKind = "plain" if head.use_pixel_shuffle else "unpadded"
        self.input_conv = (
            Sapiens2ConvLayer(channels, channels, 3, norm_type=head.norm_type)
            if head.use_pixel_shuffle
            else nn.Identity()
        )
        self.upsample_layers = nn.ModuleList()
        self.conv_layers = nn.ModuleList()
        for width, kernel in zip(head.upsample_out_channels or [], head.upsample_kernel_sizes or [], strict=True):
            self.upsample_layers.append(Sapiens2ConvLayer(channels, width, kernel, upsampling, head.norm_type))
            channels = width
        for width, kernel in zip(head.conv_out_channels or [], head.conv_kernel_sizes or [], strict=True):
            self.conv_layers.append(Sapiens2ConvLayer(channels, width, kernel, refinement, head.norm_type))
            channels = width
        self.predictor = head_layer(nn.Conv2d(channels, config.num_labels, kernel_size=1))

    def forward(self, features: Tensor) -> Tensor:
        """``(batch, hidden_size, h, w)`` to ``(batch, num_labels, h * 2**stages, w * 2**stages)``."""
        maps = self.input_conv(features)
        for layer in self.upsample_layers:
            maps = layer(maps)
        for layer in self.conv_layers:
            maps = layer(maps)
        output: Tensor = self.predictor(maps)
        return output
