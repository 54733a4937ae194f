"""Decode heads."""

from sapiens2.models.heads.conv_layer import Sapiens2ConvLayer, Sapiens2InstanceNorm, Sapiens2PixelRMSNorm
from sapiens2.models.heads.dense_head import Sapiens2Head
from sapiens2.models.heads.scale_head import Sapiens2PointmapScaleHead

__all__ = [
    "Sapiens2ConvLayer",
    "Sapiens2Head",
    "Sapiens2InstanceNorm",
    "Sapiens2PixelRMSNorm",
    "Sapiens2PointmapScaleHead",
]
