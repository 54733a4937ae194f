"""The interface of everything that is compared."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor


class Baseline(Protocol):
    """A model of one task, built from configuration fields.

    Both arms of a comparison get the same fields and the same weights.
    """

    name: str
    model: Any

    def __init__(self, task: str, fields: dict[str, Any]) -> None: ...

    def forward(self, pixel_values: Tensor) -> Tensor:
        """The task's main map for ``(batch, 3, height, width)``."""
        ...
