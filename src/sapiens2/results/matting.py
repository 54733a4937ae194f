"""The result of image matting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.io.png import write_png
from sapiens2.results.base import Result, unit_range
from sapiens2.types import Task
from sapiens2.visualization.matting import draw_matte, straight_foreground

__all__ = ["MattingResult"]

TRANSPARENT, OPAQUE = 0.05, 0.95


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MattingResult(Result):
    """How much each pixel belongs to people, and the people's colour.

    Attributes:
        alpha: ``(H, W)`` float32 in [0, 1].
        foreground: ``(3, H, W)`` float32 RGB in [0, 1], premultiplied: over a background it is
            ``foreground + (1 - alpha) * background``.

    Files: ``<stem>_matting.png`` (picture over a checkerboard), ``<stem>_matting_rgba.png`` (cut-out with straight
    alpha, as picture editors expect) and ``<stem>_matting_alpha.png`` (alpha as 8-bit grey).

    Raises:
        InputError: Another size than the image's, or values out of range.
    """

    task: ClassVar[Task] = "matting"

    alpha: NDArray[np.float32]
    foreground: NDArray[np.float32]

    def draw(self, *, background: Sequence[int] | NDArray[Any] | None = None) -> NDArray[np.uint8]:
        """The people over a background: an RGB colour in 0..255, a picture of the same size, or a checkerboard."""
        return draw_matte(self.alpha, self.foreground, background=background)

    def rgba(self) -> NDArray[np.uint8]:
        """The cut-out ``(H, W, 4)`` uint8 with straight (not premultiplied) colour."""
        straight = straight_foreground(self.alpha, self.foreground)
        channels = np.concatenate([straight, self.alpha[None]]).transpose(1, 2, 0)
        pixels: NDArray[np.uint8] = np.rint(channels * 255).astype(np.uint8)
        return pixels

    def _check(self) -> None:
        self._freeze("alpha", unit_range(self.alpha, "alpha", self.size_hw))
        self._freeze("foreground", unit_range(self.foreground, "foreground", (3, *self.size_hw)))

    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        text, rgba = self.provenance, self.rgba()
        return [
            write_png(folder / f"{stem}_matting_rgba.png", rgba, text=text),
            write_png(folder / f"{stem}_matting_alpha.png", rgba[..., 3], text=text),
        ]

    def _summary(self) -> dict[str, Any]:
        """``coverage``: mean alpha; ``opaque`` and ``soft``: shares of pixels above 0.95, and between 0.05 and that."""
        opaque, transparent = self.alpha > OPAQUE, self.alpha < TRANSPARENT
        return {
            "coverage": float(self.alpha.mean(dtype=np.float64)),
            "opaque": float(opaque.mean()),
            "soft": float((~opaque & ~transparent).mean()),
        }
