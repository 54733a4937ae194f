"""The result of surface normal estimation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_mask
from sapiens2.io.npz import write_npz
from sapiens2.io.png import write_normals_png
from sapiens2.results.base import RANGE_TOLERANCE, Result
from sapiens2.types import Task
from sapiens2.visualization.normal import draw_normals

__all__ = ["NormalResult"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NormalResult(Result):
    """The direction in which the surface under each pixel faces.

    Attributes:
        normals: ``(3, H, W)`` float32 unit vectors; zero where there is none.
        foreground_mask: ``(H, W)`` bool, pixels of people, when known. Pictures show these alone; data files hold all.

    Files: ``<stem>_normal.png`` (picture), ``<stem>_normal_16bit.png`` (see :func:`sapiens2.io.write_normals_png`) and
    ``<stem>_normal.npz`` (``normals``).

    Raises:
        InputError: Another size than the image's, values that are not finite, or vectors that are not normalised.

    Convention: OpenCV camera frame, x right, y down.
    """

    task: ClassVar[Task] = "normal"

    normals: NDArray[np.float32]
    foreground_mask: NDArray[np.bool_] | None = None

    def draw(self) -> NDArray[np.uint8]:
        """x, y, z as red, green, blue; black outside the mask."""
        return draw_normals(self.normals, mask=self.foreground_mask)

    def _check(self) -> None:
        normals = checked_array(self.normals, "normals", (3, *self.size_hw), finite=True)
        longest = float(np.sqrt(np.einsum("chw,chw->hw", normals, normals).max()))
        if longest > 1 + RANGE_TOLERANCE:
            raise InputError(f"normals must be unit vectors or zero, got one of length {longest:.4g}; normalise them")
        self._freeze("normals", normals)
        if self.foreground_mask is not None:
            self._freeze("foreground_mask", checked_mask(self.foreground_mask, self.size_hw, "foreground_mask"))

    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        text = self.provenance
        normals = self.normals.clip(-1, 1)
        # Deflating float32 normals saves a tenth of the size and takes most of the time.
        npz = write_npz(folder / f"{stem}_normal.npz", {"normals": self.normals, **text}, compress=False)
        return [write_normals_png(folder / f"{stem}_normal_16bit.png", normals, text=text), npz]

    def _summary(self) -> dict[str, Any]:
        """``coverage``: share of pixels with a normal; ``mean_normal``: mean vector of these, None without any."""
        there = self.normals.any(axis=0)
        if self.foreground_mask is not None:
            there &= self.foreground_mask
        mean = self.normals[:, there].mean(axis=1, dtype=np.float64).tolist() if there.any() else None
        return {"coverage": float(there.mean()), "mean_normal": mean}
