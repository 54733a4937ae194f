"""The result of albedo estimation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.io.arrays import checked_mask
from sapiens2.io.npz import write_npz
from sapiens2.results.base import Result, unit_range
from sapiens2.types import Task
from sapiens2.visualization.albedo import draw_albedo

__all__ = ["AlbedoResult"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AlbedoResult(Result):
    """The colour of surfaces without light and shade.

    Attributes:
        albedo: ``(3, H, W)`` float32 RGB in [0, 1].
        foreground_mask: ``(H, W)`` bool, pixels of people, when known. The picture shows these alone.

    Files: ``<stem>_albedo.png`` (picture) and ``<stem>_albedo.npz`` (``albedo``).

    Raises:
        InputError: Another size than the image's, or values out of range.
    """

    task: ClassVar[Task] = "albedo"

    albedo: NDArray[np.float32]
    foreground_mask: NDArray[np.bool_] | None = None

    def draw(self) -> NDArray[np.uint8]:
        """The albedo as it is; grey outside the mask."""
        return draw_albedo(self.albedo, mask=self.foreground_mask)

    def _check(self) -> None:
        self._freeze("albedo", unit_range(self.albedo, "albedo", (3, *self.size_hw)))
        if self.foreground_mask is not None:
            self._freeze("foreground_mask", checked_mask(self.foreground_mask, self.size_hw, "foreground_mask"))

    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        return [write_npz(folder / f"{stem}_albedo.npz", {"albedo": self.albedo, **self.provenance})]

    def _summary(self) -> dict[str, Any]:
        """``mean_rgb``: mean colour of the pixels of people, or of all when they are not known; None without any."""
        shown = checked_mask(self.foreground_mask, self.size_hw)
        return {"mean_rgb": self.albedo[:, shown].mean(axis=1, dtype=np.float64).tolist() if shown.any() else None}
