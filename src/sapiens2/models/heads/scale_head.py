"""The pointmap's scale branch."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F
from transformers.activations import ACT2FN

from sapiens2.errors import ConfigurationError
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.heads.conv_layer import Sapiens2ConvLayer
from sapiens2.models.heads.head_init import head_layer

__all__ = ["Sapiens2PointmapScaleHead"]


class _ScaleBlock(nn.Module):
    """Linear and activation; the nesting gives the parameter names of the reference."""

    def __init__(self, in_features: int, out_features: int, activation: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList([head_layer(nn.Linear(in_features, out_features)), ACT2FN[activation]])

    def forward(self, features: Tensor) -> Tensor:
        for layer in self.layers:
            features = layer(features)
        return features


class _ScaleMLP(nn.Module):
    """Hidden blocks ``block1``, ``block2``, ... and a linear map to one number."""

    def __init__(self, in_features: int, hidden_sizes: list[int], activation: str) -> None:
        super().__init__()
        self.depth = len(hidden_sizes)
        for i, width in enumerate(hidden_sizes, start=1):
            self.add_module(f"block{i}", _ScaleBlock(in_features, width, activation))
            in_features = width
        self.proj = head_layer(nn.Linear(in_features, 1))

    def forward(self, features: Tensor) -> Tensor:
        for i in range(1, self.depth + 1):
            features = self.get_submodule(f"block{i}")(features)
        output: Tensor = self.proj(features)
        return output


class Sapiens2PointmapScaleHead(nn.Module):
    """One number for each image: canonical focal length (768 px) over the real one, both at the network's input size.

    The MLP fixes the size of the grid. Features of another image size are brought to it by adaptive average pooling.

    Raises:
        ConfigurationError: ``scale_final_input_size`` does not fit ``image_size``.
    """

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        head = config.head
        channels = config.hidden_size
        self.conv_layers = nn.ModuleList()
        for width, kernel in zip(head.scale_conv_out_channels or [], head.scale_conv_kernel_sizes or [], strict=True):
            self.conv_layers.append(Sapiens2ConvLayer(channels, width, kernel, "strided", head.norm_type))
            channels = width
        self.grid_hw = config.scale_grid_hw(head)
        size = channels * self.grid_hw[0] * self.grid_hw[1]
        if head.scale_final_input_size not in (None, size):
            raise ConfigurationError(
                f"head_config.scale_final_input_size={head.scale_final_input_size} does not fit: {channels} channels "
                f"on the {self.grid_hw[0]}x{self.grid_hw[1]} grid of image_size={config.image_size} give {size}"
            )
        self.predictor = _ScaleMLP(size, head.scale_final_hidden_sizes or [], config.hidden_act)

    def forward(self, features: Tensor) -> Tensor:
        """``(batch, hidden_size, h, w)`` to ``(batch, 1)``, unbounded."""
        for layer in self.conv_layers:
            features = layer(features)
        if tuple(features.shape[2:]) != self.grid_hw:
            features = F.adaptive_avg_pool2d(features, self.grid_hw)
        output: Tensor = self.predictor(features.flatten(1))
        return output
