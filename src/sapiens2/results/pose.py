"""The result of pose estimation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets.tables import keypoint_table
from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array
from sapiens2.io.coco import PosedImage, write_coco_poses
from sapiens2.results.base import Result
from sapiens2.types import Task
from sapiens2.visualization.pose import draw_pose

__all__ = ["PoseResult"]

SCORE_FLOOR = 0.2
"""Keypoints with a lower score do not count in a person's score."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PoseResult(Result):
    """Keypoints of the N people of one image; N may be 0.

    Attributes:
        keypoints: ``(N, K, 2)`` float32 x, y in pixels of the image; NaN where there is no point.
        scores: ``(N, K)`` float32 confidence; a raw heatmap maximum, which may exceed 1.
        boxes_xyxy: ``(N, 4)`` float32 boxes in which the people were sought, in pixels.
        box_scores: ``(N,)`` float32 confidence of the detector; None when the boxes were given.
        track_ids: ``(N,)`` int64; None outside videos.
        keypoint_names: K unique names. Left out, the published names when K is 308, otherwise ``keypoint_0`` onwards.
        skeleton: Links as pairs of indices. Left out, the published links when K is 308, otherwise none.

    Files: ``<stem>_pose.png`` (picture) and ``<stem>_pose.json`` (COCO-style, :mod:`sapiens2.io.coco`).

    Raises:
        InputError: Shapes that do not match each other.

    Convention: pixel centres at integers, x right, y down.
    """

    task: ClassVar[Task] = "pose"

    keypoints: NDArray[np.float32]
    scores: NDArray[np.float32]
    boxes_xyxy: NDArray[np.float32]
    box_scores: NDArray[np.float32] | None = None
    track_ids: NDArray[np.int64] | None = None
    keypoint_names: tuple[str, ...] | None = None
    skeleton: tuple[tuple[int, int], ...] | None = None

    def __len__(self) -> int:
        return len(self.keypoints)

    def __bool__(self) -> bool:
        """A result without people is still a result."""
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The K names: those given, or those that ``keypoint_names`` stands for when left out."""
        if self.keypoint_names is not None:
            return self.keypoint_names
        if self._is_published_set:
            return keypoint_table().names
        return tuple(f"keypoint_{index}" for index in range(self.keypoints.shape[1]))

    @property
    def links(self) -> tuple[tuple[int, int], ...]:
        """The links: those given, or those that ``skeleton`` stands for when left out."""
        if self.skeleton is not None:
            return self.skeleton
        return keypoint_table().skeleton if self._is_published_set else ()

    @property
    def person_scores(self) -> NDArray[np.float32]:
        """``(N,)``: box score (1 when unknown) times the mean of the keypoint scores above 0.2."""
        counted = self.scores > SCORE_FLOOR
        total = np.where(counted, self.scores, 0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        boxes = np.float32(1) if self.box_scores is None else self.box_scores
        scores: NDArray[np.float32] = (total * boxes).astype(np.float32)
        return scores

    def draw(self, *, threshold: float = 0.3, boxes: bool = False) -> NDArray[np.uint8]:
        """Skeletons over the image; points under the threshold are left out, boxes are drawn on request."""
        return draw_pose(
            self.image,
            self.keypoints,
            self.scores,
            boxes_xyxy=self.boxes_xyxy if boxes else None,
            threshold=threshold,
            skeleton=self.skeleton,
        )

    @property
    def _is_published_set(self) -> bool:
        return int(self.keypoints.shape[1]) == len(keypoint_table())

    def _check(self) -> None:
        posed = self._posed_image()
        checked_array(posed.scores, "scores", posed.scores.shape, finite=True)
        for name in ("keypoints", "scores", "boxes_xyxy", "box_scores", "track_ids"):
            self._freeze(name, getattr(posed, name))
        num_keypoints = posed.keypoints.shape[1]
        if self.keypoint_names is not None:
            names = tuple(self.keypoint_names)
            if len(names) != num_keypoints or len(set(names)) != num_keypoints:
                raise InputError(f"keypoint_names must be {num_keypoints} unique names, got {len(set(names))}")
            self._freeze("keypoint_names", names)
        if self.skeleton is not None:
            links = tuple((int(start), int(end)) for start, end in self.skeleton)
            if not all(0 <= index < num_keypoints for link in links for index in link):
                raise InputError(f"skeleton must join keypoints 0..{num_keypoints - 1}")
            self._freeze("skeleton", links)

    def _posed_image(self) -> PosedImage:
        return PosedImage(
            file_name=Path(self.source).name if self.source else "",
            size_hw=self.size_hw,
            keypoints=self.keypoints,
            scores=self.scores,
            boxes_xyxy=self.boxes_xyxy,
            box_scores=self.box_scores,
            track_ids=self.track_ids,
        )

    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        path = folder / f"{stem}_pose.json"
        info = {key.lower(): value for key, value in self.provenance.items()}
        return [
            write_coco_poses(path, [self._posed_image()], keypoint_names=self.names, skeleton=self.links, info=info)
        ]

    def _summary(self) -> dict[str, Any]:
        """People with ``score``, ``box_xyxy``, ``keypoints`` ([x, y], None where there is none) and ``scores``."""
        return {"keypoint_names": list(self.names), "people": [self._person(index) for index in range(len(self))]}

    def _person(self, index: int) -> dict[str, Any]:
        points = self.keypoints[index]
        known = np.isfinite(points).all(axis=1)
        person: dict[str, Any] = {
            "score": float(self.person_scores[index]),
            "box_xyxy": self.boxes_xyxy[index].tolist(),
            "keypoints": [xy if there else None for xy, there in zip(points.tolist(), known.tolist(), strict=True)],
            "scores": self.scores[index].tolist(),
        }
        if self.box_scores is not None:
            person["box_score"] = float(self.box_scores[index])
        if self.track_ids is not None:
            person["track_id"] = int(self.track_ids[index])
        return person
