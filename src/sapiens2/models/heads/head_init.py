"""Which layers of a head are initialised by the head's own rule."""

from __future__ import annotations

from typing import TypeVar

from torch import nn
from transformers import initialization as init

__all__ = ["head_layer", "init_head_layer", "is_head_layer"]

Layer = TypeVar("Layer", nn.Conv2d, nn.ConvTranspose2d, nn.Linear)


def head_layer(layer: Layer) -> Layer:
    """Mark a layer, so that :func:`init_head_layer` and not the trunk's rule initialises it."""
    layer.is_head_layer = True  # type: ignore[assignment]
    return layer


def is_head_layer(module: nn.Module) -> bool:
    """Whether :func:`head_layer` marked the module."""
    return bool(getattr(module, "is_head_layer", False))


def init_head_layer(module: nn.Module) -> None:
    """Kaiming normal: fan-out with ReLU gain for convolutions, fan-in with unit gain for linear layers; biases zero.

    Source: He et al. 2015, arXiv 1502.01852; the original's heads.
    """
    assert isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear)
    if isinstance(module, nn.Linear):
        init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="linear")
    else:
        init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    if module.bias is not None:
        init.zeros_(module.bias)
