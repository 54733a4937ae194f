"""What the models return. Field order is that of the reference: it decides the tuples of ``return_dict=False``."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers.modeling_outputs import BackboneOutput
from transformers.utils import ModelOutput

__all__ = [
    "Sapiens2AlbedoEstimatorOutput",
    "Sapiens2BackboneOutput",
    "Sapiens2ImageMattingOutput",
    "Sapiens2NormalEstimatorOutput",
    "Sapiens2PointmapEstimatorOutput",
    "Sapiens2PoseEstimatorOutput",
]

Maps = tuple[Tensor, ...]


@dataclass
class Sapiens2BackboneOutput(BackboneOutput):
    """Features of the stages asked for.

    Attributes:
        feature_maps: One for each stage, ``(batch, hidden_size, h, w)``; with ``reshape_hidden_states=False``
            ``(batch, h * w, hidden_size)``.
        hidden_states: Of every layer, ``(batch, tokens, hidden_size)``, when asked for.
        attentions: Weights of every layer, when asked for.
        cls_tokens: One for each stage, ``(batch, hidden_size)``, with ``return_class_token``.
    """

    cls_tokens: Maps | None = None


@dataclass
class Sapiens2PoseEstimatorOutput(ModelOutput):
    """Heatmaps.

    Attributes:
        loss: Scalar, when labels are given.
        heatmaps: ``(batch, num_keypoints, height, width)``; a visible keypoint peaks near 1.
        hidden_states: Of every layer, ``(batch, tokens, hidden_size)``, when asked for.
        attentions: Weights of every layer, when asked for.
    """

    loss: Tensor | None = None
    heatmaps: Tensor | None = None
    hidden_states: Maps | None = None
    attentions: Maps | None = None


@dataclass
class Sapiens2NormalEstimatorOutput(ModelOutput):
    """Surface normals.

    Attributes:
        loss: Scalar, when labels are given.
        normals: ``(batch, 3, height, width)``: x, y, z, not of unit length.
        hidden_states: Of every layer, ``(batch, tokens, hidden_size)``, when asked for.
        attentions: Weights of every layer, when asked for.
    """

    loss: Tensor | None = None
    normals: Tensor | None = None
    hidden_states: Maps | None = None
    attentions: Maps | None = None


@dataclass
class Sapiens2PointmapEstimatorOutput(ModelOutput):
    """Pointmaps.

    Attributes:
        loss: Scalar, when labels are given.
        pointmaps: ``(batch, 3, height, width)``: X, Y, Z in the canonical camera (focal length 768 px); metres after
            division by ``scales``.
        scales: ``(batch, 1)``: canonical over real focal length; ``None`` without scale branch.
        hidden_states: Of every layer, ``(batch, tokens, hidden_size)``, when asked for.
        attentions: Weights of every layer, when asked for.
    """

    loss: Tensor | None = None
    pointmaps: Tensor | None = None
    scales: Tensor | None = None
    hidden_states: Maps | None = None
    attentions: Maps | None = None


@dataclass
class Sapiens2ImageMattingOutput(ModelOutput):
    """Mattes.

    Attributes:
        loss: Scalar, when labels are given.
        alphas: ``(batch, 1, height, width)`` in [0, 1].
        hidden_states: Of every layer, ``(batch, tokens, hidden_size)``, when asked for.
        attentions: Weights of every layer, when asked for.
        foregrounds: ``(batch, 3, height, width)``: RGB premultiplied by alpha, in [0, 1].
    """

    loss: Tensor | None = None
    alphas: Tensor | None = None
    hidden_states: Maps | None = None
    attentions: Maps | None = None
    foregrounds: Tensor | None = None


@dataclass
class Sapiens2AlbedoEstimatorOutput(ModelOutput):
    """Albedo.

    Attributes:
        loss: Scalar, when labels are given.
        albedos: ``(batch, 3, height, width)``: sRGB, meant for [0, 1] but not bounded.
        hidden_states: Of every layer, ``(batch, tokens, hidden_size)``, when asked for.
        attentions: Weights of every layer, when asked for.
    """

    loss: Tensor | None = None
    albedos: Tensor | None = None
    hidden_states: Maps | None = None
    attentions: Maps | None = None
