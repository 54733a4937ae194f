"""Building blocks of the trunk, one kind a file."""

from sapiens2.models.layers.attention import Sapiens2Attention
from sapiens2.models.layers.embeddings import Sapiens2Embeddings
from sapiens2.models.layers.layer import Sapiens2Layer
from sapiens2.models.layers.mlp import Sapiens2GatedMLP, Sapiens2MLP
from sapiens2.models.layers.residual import Sapiens2DropPath, Sapiens2LayerScale
from sapiens2.models.layers.rms_norm import Sapiens2RMSNorm
from sapiens2.models.layers.rope import Sapiens2RopePositionEmbedding
from sapiens2.models.layers.window_tokenizer import Sapiens2WindowTokenizer

__all__ = [
    "Sapiens2Attention",
    "Sapiens2DropPath",
    "Sapiens2Embeddings",
    "Sapiens2GatedMLP",
    "Sapiens2Layer",
    "Sapiens2LayerScale",
    "Sapiens2MLP",
    "Sapiens2RMSNorm",
    "Sapiens2RopePositionEmbedding",
    "Sapiens2WindowTokenizer",
]
