"""The result of pointmap estimation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_mask
from sapiens2.io.npz import write_npz
from sapiens2.io.ply import PointCloud, write_ply
from sapiens2.results.base import Result
from sapiens2.types import Task
from sapiens2.visualization.pointmap import draw_pointmap, valid_depth

__all__ = ["PointmapResult"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PointmapResult(Result):
    """The point of the scene under each pixel.

    Attributes:
        pointmap: ``(3, H, W)`` float32 X, Y, Z in the camera frame. A pixel is valid when its values are finite and Z
            is positive; others may hold anything.
        scale: The scale that the model predicted, as it was predicted; None when there is none.
        is_metric: Whether the unit is the metre. Otherwise the map is right up to one factor.
        foreground_mask: ``(H, W)`` bool, pixels of people, when known. The picture and the point cloud show these
            alone; the NPZ file holds all.

    Files: ``<stem>_pointmap.png`` (picture of inverse depth), ``<stem>_pointmap.npz`` (``pointmap``, ``is_metric`` and,
    when known, ``scale``) and ``<stem>_pointmap.ply`` (valid points with the colours of the image, and nothing else).

    Raises:
        InputError: Another size than the image's, or a metric map whose scale is not finite and positive.

    Convention: OpenCV camera frame, x right, y down, z forward.
    """

    task: ClassVar[Task] = "pointmap"

    pointmap: NDArray[np.float32]
    scale: float | None = None
    is_metric: bool = False
    foreground_mask: NDArray[np.bool_] | None = None

    @property
    def depth(self) -> NDArray[np.float32]:
        """``(H, W)`` float32 Z; read :attr:`valid` with it."""
        depth: NDArray[np.float32] = self.pointmap[2]
        return depth

    @property
    def valid(self) -> NDArray[np.bool_]:
        """``(H, W)`` bool: finite points in front of the camera, within the mask when there is one."""
        mask = np.isfinite(self.pointmap).all(axis=0) & valid_depth(self.depth)
        return mask if self.foreground_mask is None else mask & self.foreground_mask

    def point_cloud(self) -> PointCloud:
        """The valid points, row by row: ``points (N, 3)`` float32 and ``colors_rgb (N, 3)`` uint8; N may be 0."""
        valid = self.valid
        return PointCloud(np.ascontiguousarray(self.pointmap[:, valid].T), self.image[valid], None)

    def draw(self, *, depth_limits: tuple[float, float] | None = None) -> NDArray[np.uint8]:
        """Inverse depth in colours, near red and far blue; see :func:`sapiens2.visualization.draw_pointmap`."""
        return draw_pointmap(self.pointmap, mask=self.valid, depth_limits=depth_limits)

    def _check(self) -> None:
        self._freeze("pointmap", checked_array(self.pointmap, "pointmap", (3, *self.size_hw)))
        if self.foreground_mask is not None:
            self._freeze("foreground_mask", checked_mask(self.foreground_mask, self.size_hw, "foreground_mask"))
        if self.scale is not None:
            self._freeze("scale", float(self.scale))
        if self.is_metric and self.scale is not None and not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"a metric pointmap needs a positive scale, got {self.scale}; pass is_metric=False")

    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        text = self.provenance
        arrays = {"pointmap": self.pointmap, "is_metric": self.is_metric, **text}
        if self.scale is not None:
            arrays["scale"] = self.scale
        cloud = self.point_cloud()
        comments = [
            *(f"{key}: {value}" for key, value in text.items()),
            f"unit: {'metre' if self.is_metric else 'unknown'}",
            "frame: OpenCV camera, x right, y down, z forward",
        ]
        return [
            write_npz(folder / f"{stem}_pointmap.npz", arrays),
            write_ply(folder / f"{stem}_pointmap.ply", cloud.points, colors_rgb=cloud.colors_rgb, comments=comments),
        ]

    def _summary(self) -> dict[str, Any]:
        """``coverage``: share of valid pixels; ``depth``: percentiles 1, 50 and 99 of their Z, None without any."""
        valid = self.valid
        depth = None
        if valid.any():
            near, median, far = np.percentile(self.depth[valid].astype(np.float64), (1, 50, 99)).tolist()
            depth = {"near": near, "median": median, "far": far}
        scale = self.scale if self.scale is not None and math.isfinite(self.scale) else None
        return {"coverage": float(valid.mean()), "is_metric": self.is_metric, "scale": scale, "depth": depth}
