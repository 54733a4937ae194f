"""One valid result of each task, on an image whose sides differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sapiens2.results import (
    AlbedoResult,
    MattingResult,
    NormalResult,
    PointmapResult,
    PoseResult,
    Result,
    SegmentationResult,
)

HEIGHT, WIDTH = 30, 40


def _pose(rng: np.random.Generator) -> dict[str, Any]:
    points = rng.uniform(0, 30, (2, 308, 2)).astype(np.float32)
    points[0, 7] = np.nan
    scores = rng.uniform(0, 1, (2, 308)).astype(np.float32)
    return {"keypoints": points, "scores": scores, "boxes_xyxy": np.float32([[1, 2, 20, 28], [5, 5, 39, 29]])}


def _normal(rng: np.random.Generator) -> dict[str, Any]:
    normals = rng.normal(size=(3, HEIGHT, WIDTH)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=0)
    normals[:, 0] = 0
    return {"normals": normals}


def _pointmap(rng: np.random.Generator) -> dict[str, Any]:
    pointmap = rng.uniform(1, 3, (3, HEIGHT, WIDTH)).astype(np.float32)
    pointmap[2, 0, 0], pointmap[2, 0, 1], pointmap[0, 0, 2] = np.nan, -1, np.inf
    return {"pointmap": pointmap, "scale": 0.5, "is_metric": True}


def _matting(rng: np.random.Generator) -> dict[str, Any]:
    alpha = rng.uniform(0, 1, (HEIGHT, WIDTH)).astype(np.float32)
    return {"alpha": alpha, "foreground": rng.uniform(0, 1, (3, HEIGHT, WIDTH)).astype(np.float32) * alpha}


CLASSES: dict[str, tuple[type[Result], Callable[[np.random.Generator], dict[str, Any]]]] = {
    "pose": (PoseResult, _pose),
    "seg": (SegmentationResult, lambda rng: {"segmentation": rng.integers(0, 29, (HEIGHT, WIDTH), np.uint8)}),
    "normal": (NormalResult, _normal),
    "pointmap": (PointmapResult, _pointmap),
    "matting": (MattingResult, _matting),
    "albedo": (AlbedoResult, lambda rng: {"albedo": rng.uniform(0, 1, (3, HEIGHT, WIDTH)).astype(np.float32)}),
}


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """Function (task, **changes) -> a result; changes replace its fields."""
    image = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)

    def make(task: str, **changes: Any) -> Result:
        kind, fields = CLASSES[task]
        defaults = {"image": image, "source": "in/a.b.jpg", "model": "nano-pose (random weights)"}
        return kind(**defaults | fields(np.random.default_rng(2)) | changes)

    return make
