"""The result of body-part segmentation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets.tables import RGB, part_table
from sapiens2.errors import InputError
from sapiens2.io.arrays import real_array
from sapiens2.io.png import write_png
from sapiens2.results.base import Result
from sapiens2.types import Task
from sapiens2.visualization.palette import distinct_palette
from sapiens2.visualization.segmentation import draw_segmentation

__all__ = ["SegmentationResult"]

BACKGROUND = 0
WIDE_IGNORE_INDEX = 65535
"""Label of ignored pixels where 255 is a class."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SegmentationResult(Result):
    """The class of each pixel.

    Attributes:
        segmentation: ``(H, W)`` class ids, 0 for the background: uint8, 255 for ignored pixels; with more than 255
            classes uint16, 65535 for ignored pixels.
        class_names: Name of each class; left out, the published 29 parts.
        palette_rgb: Colour of each class; left out, the published ones for as many classes, otherwise generated ones.

    Files: ``<stem>_seg.png`` (picture with legend) and ``<stem>_seg_classes.png`` (ids as pixels, with the palette;
    with more than 255 classes 16-bit grey).

    Raises:
        InputError: Not integers of the image's size, an id without a class, or a palette of another length.
    """

    task: ClassVar[Task] = "seg"

    segmentation: NDArray[np.uint8] | NDArray[np.uint16]
    class_names: tuple[str, ...] | None = None
    palette_rgb: tuple[RGB, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The class names: those given, or the published ones."""
        return part_table().names if self.class_names is None else self.class_names

    @property
    def palette(self) -> tuple[RGB, ...]:
        """The class colours: those given, the published ones, or generated ones."""
        if self.palette_rgb is not None:
            return self.palette_rgb
        table = part_table()
        return table.palette_rgb if len(self.names) == len(table) else distinct_palette(len(self.names))

    @property
    def ignore_index(self) -> int:
        """Label of ignored pixels: 255, or 65535 where 255 is a class."""
        ignored = part_table().ignore_index
        return ignored if len(self.names) <= ignored else WIDE_IGNORE_INDEX

    @property
    def foreground_mask(self) -> NDArray[np.bool_]:
        """``(H, W)`` bool: pixels that belong to a person or to what is worn."""
        ids = self.segmentation
        mask: NDArray[np.bool_] = (ids != BACKGROUND) & (ids != self.ignore_index)
        return mask

    def draw(self, *, opacity: float = 0.5, legend: bool = False) -> NDArray[np.uint8]:
        """The image tinted by class; with the legend the picture grows."""
        return draw_segmentation(
            self.image,
            self.segmentation,
            opacity=opacity,
            palette_rgb=self.palette,
            class_names=self.names,
            ignore_index=self.ignore_index,
            legend=legend,
        )

    def _sheet(self) -> NDArray[np.uint8]:
        return self.draw(legend=True)

    def _check(self) -> None:
        ids = real_array(self.segmentation, "segmentation")
        if ids.shape != self.size_hw or ids.dtype.kind not in "iu":
            raise InputError(f"segmentation must be integers {self.size_hw}, got {ids.dtype} {ids.shape}")
        if self.class_names is not None:
            self._freeze("class_names", tuple(self.class_names))
        num_classes, ignored = len(self.names), self.ignore_index
        if not 0 < num_classes <= WIDE_IGNORE_INDEX:
            raise InputError(f"class_names must be 1 to {WIDE_IGNORE_INDEX} names, got {num_classes}")
        stray = ids[(ids != ignored) & ((ids < 0) | (ids >= num_classes))]
        if stray.size:
            raise InputError(f"segmentation has id {stray[0]}; expected 0..{num_classes - 1} or {ignored} (ignored)")
        if self.palette_rgb is not None:
            colors = np.asarray(self.palette_rgb)
            if colors.shape != (num_classes, 3) or colors.min() < 0 or colors.max() > 255:
                raise InputError(f"palette_rgb must be {num_classes} RGB colours in 0..255, got shape {colors.shape}")
            self._freeze("palette_rgb", tuple((int(r), int(g), int(b)) for r, g, b in colors))
        self._freeze("segmentation", ids.astype(np.uint8 if ignored < 256 else np.uint16, copy=False))

    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        path = folder / f"{stem}_seg_classes.png"
        if self.segmentation.dtype == np.uint16:
            return [write_png(path, self.segmentation, text=self.provenance)]
        palette = [*self.palette, *[(0, 0, 0)] * (256 - len(self.palette))]  # the ignored label needs an entry, too
        return [write_png(path, self.segmentation, palette_rgb=palette, text=self.provenance)]

    def _summary(self) -> dict[str, Any]:
        """Classes that are present, with their ``pixels`` and ``fraction`` of the image."""
        counts = np.bincount(self.segmentation.ravel(), minlength=self.ignore_index + 1).tolist()
        total = self.segmentation.size
        return {
            "classes": [
                {"id": index, "name": name, "pixels": counts[index], "fraction": counts[index] / total}
                for index, name in enumerate(self.names)
                if counts[index]
            ],
            "ignored_pixels": counts[self.ignore_index],
        }
