"""Truth and prediction of a sample as pictures that can be compared by eye."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.data import IGNORE_LABEL, Sample
from sapiens2.results import Result
from sapiens2.visualization import (
    depth_range,
    draw_albedo,
    draw_matte,
    draw_normals,
    draw_pointmap,
    draw_pose,
    draw_segmentation,
)

__all__ = ["truth_and_prediction"]


def truth_and_prediction(sample: Sample, result: Result) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw both in the same way.

    Normals, points and albedo are shown where their truth is known, points on the scale of depths of the truth.

    Args:
        sample: With the truth of the result's task.
        result: What was predicted for its picture.

    Returns:
        Two pictures ``(H, W, 3)`` uint8 of the sample's size.
    """
    truth: Any = sample
    own: Any = result
    match result.task:
        case "pose":
            points = truth.keypoints
            return draw_pose(sample.image, points[..., :2], (points[..., 2] > 0).astype(np.float32)), own.draw()
        case "seg":
            look: dict[str, Any] = {"palette_rgb": own.palette, "class_names": own.names, "legend": False}
            return draw_segmentation(sample.image, truth.parts, ignore_index=IGNORE_LABEL, **look), own.draw()
        case "matting":
            colours = sample.image.transpose(2, 0, 1) / np.float32(255) * truth.alpha
            return draw_matte(truth.alpha, colours if sample.foreground is None else sample.foreground), own.draw()
        case "normal":
            known = _known(sample, truth.normals)
            return draw_normals(truth.normals, mask=known), draw_normals(own.normals, mask=known)
        case "albedo":
            known = _known(sample, truth.albedo)
            filled = np.where(known, truth.albedo, np.float32(0))
            return draw_albedo(filled, mask=known), draw_albedo(own.albedo, mask=known)
        case _:
            known = _known(sample, truth.pointmap)
            limits = depth_range(truth.pointmap[2][known]) if known.any() else None
            drawn = [
                draw_pointmap(points, mask=known, depth_limits=limits) for points in (truth.pointmap, own.pointmap)
            ]
            return drawn[0], drawn[1]


def _known(sample: Sample, values: NDArray[np.float32]) -> NDArray[np.bool_]:
    known = np.asarray(np.isfinite(values).all(axis=0))
    return known if sample.mask is None else known & sample.mask
