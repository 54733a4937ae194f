"""Samples with truth, and results that say the truth or what a baseline says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sapiens2.assets import keypoint_table, part_table
from sapiens2.data import Sample
from sapiens2.metrics.baselines import mean_pose, pose_in_boxes
from sapiens2.results import (
    AlbedoResult,
    MattingResult,
    NormalResult,
    PointmapResult,
    PoseResult,
    SegmentationResult,
)

SIZE = (24, 20)
INTRINSICS = np.array([[30.0, 0, 9.5], [0, 30.0, 11.5], [0, 0, 1]])


def sample(seed: int, people: int = 2) -> Sample:
    """A picture with random truth of every task."""
    rng = np.random.default_rng(seed)
    height, width = SIZE
    person = np.zeros(SIZE, bool)
    person[4:20, 3:17] = people > 0
    normals = rng.normal(size=(3, *SIZE)).astype(np.float32) - [[[0]], [[0]], [[2]]]
    normals = (normals / np.linalg.norm(normals, axis=0)).astype(np.float32)
    depth = rng.uniform(2, 3, SIZE).astype(np.float32)
    rows, columns = np.mgrid[:height, :width]
    rays = np.stack([(columns - 9.5) / 30, (rows - 11.5) / 30, np.ones(SIZE)]).astype(np.float32)
    alpha = np.where(person, rng.uniform(0.6, 1, SIZE), 0).astype(np.float32)
    keypoints = np.concatenate(
        [rng.uniform((2, 3), (17, 20), (people, 308, 2)), rng.integers(1, 3, (people, 308, 1))], axis=2
    )
    return Sample(
        image=rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8),
        keypoints=keypoints.astype(np.float32),
        boxes_xywh=np.array([[1, 2, 17, 19]] * people, np.float32).reshape(people, 4),
        parts=np.where(person, rng.integers(1, 29, SIZE), 0).astype(np.uint8),
        normals=np.where(person, normals, np.float32(np.nan)),
        pointmap=np.where(person, rays * depth, np.float32(np.nan)),
        intrinsics=INTRINSICS,
        alpha=alpha,
        foreground=(rng.uniform(0, 1, (3, *SIZE)) * alpha).astype(np.float32),
        albedo=np.where(person, rng.uniform(0, 1, (3, *SIZE)), np.nan).astype(np.float32),
        name=f"folder/{seed:03d}.png",
    )


def truth(task: str, own: Any) -> Any:
    """The result of a model that knows everything."""
    boxes = own.boxes_xywh.copy()
    boxes[:, 2:] += boxes[:, :2]
    image = own.image
    if task == "pose":
        points = own.keypoints
        return PoseResult(image=image, keypoints=points[..., :2], scores=np.ones(points.shape[:2]), boxes_xyxy=boxes)
    return {
        "seg": lambda: SegmentationResult(image=image, segmentation=own.parts),
        "normal": lambda: NormalResult(image=image, normals=np.nan_to_num(own.normals)),
        "pointmap": lambda: PointmapResult(image=image, pointmap=np.nan_to_num(own.pointmap), is_metric=True, scale=1),
        "matting": lambda: MattingResult(image=image, alpha=own.alpha, foreground=own.foreground),
        "albedo": lambda: AlbedoResult(image=image, albedo=np.nan_to_num(own.albedo)),
    }[task]()


def trivial(task: str, own: Any, samples: list[Any]) -> Any:
    """The result of a model that knows what the baseline knows; of classes one that the truth has most often."""
    perfect = truth(task, own)
    if task == "pose":
        points = np.concatenate([each.keypoints for each in samples])
        pose = mean_pose(points[..., :2], np.concatenate([each.boxes_xywh for each in samples]), points[..., 2] > 0)
        return replace(perfect, keypoints=pose_in_boxes(pose, own.boxes_xywh).numpy())
    if task == "normal":
        facing = np.zeros_like(perfect.normals)
        facing[2] = -1
        return replace(perfect, normals=facing)
    if task == "pointmap":
        depth = own.pointmap[2]
        rays = np.nan_to_num(own.pointmap / depth)
        return replace(perfect, pointmap=rays * np.nanmean(depth.astype(np.float64)).astype(np.float32))
    if task == "matting":
        return replace(perfect, alpha=np.zeros_like(own.alpha), foreground=np.zeros_like(own.foreground))
    if task == "albedo":
        return replace(perfect, albedo=own.image.transpose(2, 0, 1).astype(np.float32) / 255)
    return replace(perfect, segmentation=np.zeros_like(own.parts))


def names() -> dict[str, tuple[str, ...]]:
    """Names that model and data agree on."""
    return {"pose": keypoint_table().names, "seg": part_table().names}
