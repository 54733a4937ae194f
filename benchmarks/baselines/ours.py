"""This library's torch models."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from sapiens2.models import TASK_MODELS, Sapiens2Config


class Ours:
    """``sapiens2`` in eager torch."""

    name = "ours-torch"

    def __init__(self, task: str, fields: dict[str, Any]) -> None:
        self.model = TASK_MODELS[task](Sapiens2Config(**fields)).eval()  # type: ignore[index]

    def forward(self, pixel_values: Tensor) -> Tensor:
        """First map of the output."""
        return self.model(pixel_values, return_dict=False)[0]
