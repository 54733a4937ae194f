"""Figures on held-out samples of the pool while training goes on; the report uses ``sapiens2 eval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scripts.nano.batches import MEAN, STD, compose, make_batch
from scripts.nano.pool import SIZE_HW, Pool
from torch import Tensor, nn

from sapiens2.codecs import decode_heatmaps
from sapiens2.metrics import (
    ImageMetric,
    MattingMetric,
    Metric,
    NormalMetric,
    PckMetric,
    PointmapMetric,
    SegmentationMetric,
    keypoint_groups,
)
from sapiens2.types import Task

__all__ = ["measure"]

SHOWN: dict[Task, tuple[str, ...]] = {
    "pose": ("body/pck_0.05_percent", "body/pck_0.1_percent"),
    "seg": ("foreground_class_agreement", "mean_iou"),
    "normal": ("mean_angular_error_deg",),
    "pointmap": ("relief_gain_percent",),
    "matting": ("mad", "mask_iou", "empty_images_below_0.02_percent"),
    "albedo": ("mae",),
}
"""Figures that the log gets."""


def measure(
    network: nn.Module, weights: Mapping[str, Tensor], tasks: Sequence[Task], pool: Pool, indices: NDArray[np.int64]
) -> dict[str, float]:
    """Figures of averaged weights; the network has its own again afterwards."""
    own = {key: value.clone() for key, value in network.state_dict().items()}
    network.load_state_dict(dict(weights))
    network.eval()
    metrics = {task: _metric(task) for task in tasks}
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for start in range(0, len(indices), 16):
            chosen = indices[start : start + 16]
            batch = make_batch(pool, chosen, rng, None, tasks)
            batch.update(compose(batch))
            image = batch["image"].mul(255).round().div(255)
            with torch.autocast("cpu", torch.bfloat16):
                outputs = network((image - MEAN) / STD)
            batch["boxes"] = torch.from_numpy(pool.arrays["boxes"][chosen, 0])
            for task, metric in metrics.items():
                _update(metric, outputs[task].float(), batch)
    network.load_state_dict(own)
    network.train()
    figures = {task: metric.compute() for task, metric in metrics.items()}
    return {f"{task}/{name}": round(figures[task][name], 4) for task in tasks for name in SHOWN[task]}


def _metric(task: Task) -> Metric:
    metrics: dict[Task, Metric] = {
        "pose": PckMetric(308, groups=keypoint_groups()),
        "seg": SegmentationMetric.for_body_parts(),
        "normal": NormalMetric(),
        "pointmap": PointmapMetric(),
        "matting": MattingMetric(),
        "albedo": ImageMetric(),
    }
    return metrics[task]


def _update(metric: Any, maps: Tensor, batch: dict[str, Tensor]) -> None:
    if isinstance(metric, PckMetric):
        points, _ = decode_heatmaps(maps)
        sides = torch.tensor([SIZE_HW[1] - 1, SIZE_HW[0] - 1]) / torch.tensor([maps.shape[3] - 1, maps.shape[2] - 1])
        one = (batch["keypoints"][..., 2] > 0).any(1)  # pictures of one person have keypoints
        seen = batch["keypoints"][one]
        metric.update((points * sides)[one], seen[..., :2], seen[..., 2] > 0, boxes=batch["boxes"][one])
        return
    full = F.interpolate(maps, size=SIZE_HW, mode="bilinear", align_corners=False)
    match metric:
        case SegmentationMetric():
            metric.update(full.argmax(1), batch["parts"].long())
        case NormalMetric():
            metric.update(full, batch["normals"], batch["known"][:, None])
        case PointmapMetric():
            metric.update(full, batch["points"], batch["known"][:, None])
        case MattingMetric():
            metric.update(full[:, 3:].sigmoid(), batch["matte"][:, 3:])
        case ImageMetric():
            metric.update(full, batch["albedo"], batch["known"][:, None])
