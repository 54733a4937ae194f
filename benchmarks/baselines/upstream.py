"""transformers' own Sapiens2 classes."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.models.sapiens2 import modeling_sapiens2
from transformers.models.sapiens2.configuration_sapiens2 import Sapiens2Config

CLASSES = {
    "pose": "Sapiens2ForPoseEstimation",
    "seg": "Sapiens2ForSemanticSegmentation",
    "normal": "Sapiens2ForNormalEstimation",
    "pointmap": "Sapiens2ForPointmapEstimation",
    "matting": "Sapiens2ForImageMatting",
}


class Upstream:
    """``transformers`` in eager torch."""

    name = "transformers"

    def __init__(self, task: str, fields: dict[str, Any]) -> None:
        self.model = getattr(modeling_sapiens2, CLASSES[task])(Sapiens2Config(**fields)).eval()

    def forward(self, pixel_values: Tensor) -> Tensor:
        """First map of the output."""
        return self.model(pixel_values, return_dict=False)[0]
