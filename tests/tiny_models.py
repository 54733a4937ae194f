"""Tiny configurations that cover full, grouped and multi-query layers, and heads of both families."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)

IMAGE_HW = (96, 64)

TRUNK: dict[str, Any] = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "intermediate_size": 96,
    "image_size": list(IMAGE_HW),
    "num_first_full_attention_layers": 1,
    "num_last_full_attention_layers": 1,
    "num_key_value_attention_heads": 2,
    "layerscale_value": 0.7,
}
DECONV_HEAD: dict[str, Any] = {"upsample_out_channels": [12, 8], "conv_out_channels": [6, 6]}
SHUFFLE_HEAD: dict[str, Any] = {
    "use_pixel_shuffle": True,
    "upsample_out_channels": [12, 8],
    "upsample_kernel_sizes": [3, 3],
    "conv_out_channels": [6, 6],
    "conv_kernel_sizes": [3, 3],
}
SCALE_BRANCH: dict[str, Any] = {"scale_conv_out_channels": [16, 8], "scale_final_hidden_sizes": [7, 5]}

# head and number of labels by class
HEADS: dict[str, tuple[dict[str, Any] | None, int]] = {
    "Sapiens2Model": (None, 2),
    "Sapiens2Backbone": (None, 2),
    "Sapiens2ForPoseEstimation": (DECONV_HEAD, 5),
    "Sapiens2ForSemanticSegmentation": (DECONV_HEAD, 7),
    "Sapiens2ForNormalEstimation": (SHUFFLE_HEAD, 3),
    "Sapiens2ForPointmapEstimation": ({**SHUFFLE_HEAD, **SCALE_BRANCH}, 3),
    "Sapiens2ForImageMatting": (SHUFFLE_HEAD, 4),
    "Sapiens2ForAlbedoEstimation": ({**SHUFFLE_HEAD, "norm_type": "rms"}, 3),
}
UPSTREAM_CLASSES = [name for name in HEADS if name != "Sapiens2ForAlbedoEstimation"]
TASK_CLASSES = [name for name in HEADS if "For" in name]
OUTPUT_FIELD = {
    "Sapiens2ForPoseEstimation": "heatmaps",
    "Sapiens2ForSemanticSegmentation": "logits",
    "Sapiens2ForNormalEstimation": "normals",
    "Sapiens2ForPointmapEstimation": "pointmaps",
    "Sapiens2ForImageMatting": "alphas",
    "Sapiens2ForAlbedoEstimation": "albedos",
}


def fields_of(class_name: str, **changes: Any) -> dict[str, Any]:
    """Configuration fields of a tiny model; three stages for the backbone."""
    head, num_labels = HEADS[class_name]
    fields = {**TRUNK, "head_config": head, "num_labels": num_labels}
    if class_name == "Sapiens2Backbone":
        fields["out_indices"] = [0, 2, 4]
    if "id2label" in changes:
        del fields["num_labels"]
    return {**fields, **changes}


def randomised(model: M, seed: int = 0) -> M:
    """Move every parameter away from its initial value, so that each one matters to the output."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model


def pixels(batch: int = 2, size_hw: tuple[int, int] = IMAGE_HW, seed: int = 1) -> Tensor:
    """Random normalised images ``(batch, 3, height, width)``."""
    return torch.randn(batch, 3, *size_hw, generator=torch.Generator().manual_seed(seed))


def labels_of(class_name: str, output: Any) -> dict[str, Tensor]:
    """Labels that a task model can train on, for an output of it."""
    maps: Tensor = output[OUTPUT_FIELD[class_name]]
    generator = torch.Generator().manual_seed(2)
    batch, channels, height, width = maps.shape
    if class_name == "Sapiens2ForSemanticSegmentation":
        return {"labels": torch.randint(0, channels, (batch, height, width), generator=generator)}
    if class_name == "Sapiens2ForImageMatting":
        return {"labels": torch.rand(batch, 4, height, width, generator=generator)}
    targets = torch.rand(batch, channels, height, width, generator=generator)
    if class_name == "Sapiens2ForPointmapEstimation":
        return {"labels": targets + 1, "label_scales": torch.rand(batch, 1, generator=generator) + 0.5}
    return {"labels": targets}
