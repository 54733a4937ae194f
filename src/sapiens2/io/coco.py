"""Poses as COCO-style keypoint JSON.

The document has COCO's ``images``, ``annotations`` and ``categories``. Beyond COCO an annotation carries
``keypoint_scores`` and, when they are known, ``bbox_score`` and ``track_id``.

Source: COCO data format (cocodataset.org/#format-data), keypoint detection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, real_array
from sapiens2.io.json_file import read_json, write_json
from sapiens2.types import PathLike, SizeHW

__all__ = ["PosedImage", "coco_pose_document", "read_coco_poses", "write_coco_poses"]

PERSON_ID = 1
POSITION_DECIMALS, SCORE_DECIMALS = 3, 5


@dataclass(frozen=True, eq=False)
class PosedImage:
    """The people of one image.

    Attributes:
        file_name: Name of the image.
        size_hw: Its ``(height, width)``.
        keypoints: ``(N, K, 2)`` x, y in pixels; NaN where there is no point. N may be 0.
        scores: ``(N, K)`` confidence of each point.
        boxes_xyxy: ``(N, 4)`` pixels.
        box_scores: ``(N,)``, or None.
        track_ids: ``(N,)`` integers, or None.

    Raises:
        InputError: Shapes that do not match.
    """

    file_name: str
    size_hw: SizeHW
    keypoints: NDArray[np.float32]
    scores: NDArray[np.float32]
    boxes_xyxy: NDArray[np.float32]
    box_scores: NDArray[np.float32] | None = None
    track_ids: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        keypoints = checked_array(self.keypoints, "keypoints", ("N", "K", 2))
        people = keypoints.shape[0]
        checked: dict[str, Any] = {
            "keypoints": keypoints,
            "scores": checked_array(self.scores, "scores", keypoints.shape[:2]),
            "boxes_xyxy": checked_array(self.boxes_xyxy, "boxes_xyxy", (people, 4), finite=True),
        }
        if self.box_scores is not None:
            checked["box_scores"] = checked_array(self.box_scores, "box_scores", (people,), finite=True)
        if self.track_ids is not None:
            ids = real_array(self.track_ids, "track_ids")
            if ids.shape != (people,) or ids.dtype.kind not in "iu":
                raise InputError(f"track_ids must be integers ({people},), got {ids.dtype} {ids.shape}")
            checked["track_ids"] = ids.astype(np.int64)
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def coco_pose_document(
    images: Sequence[PosedImage],
    *,
    keypoint_names: Sequence[str],
    skeleton: Sequence[tuple[int, int]] = (),
    info: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe posed images as a COCO-style document that JSON can hold.

    Args:
        images: The images, each with its own size; ids count from 1 in this order.
        keypoint_names: K names.
        skeleton: Links as pairs of indices from 0; COCO counts from 1, and so does the document.
        info: Anything to say about the whole, such as the model.

    Returns:
        ``info``, ``images``, ``annotations`` and ``categories``. A keypoint is ``x, y, v`` with v = 2; one that is not
        finite is ``0, 0, 0`` with score 0. ``bbox`` is x, y, width, height. Pixels have 3 decimals, scores 5.

    Raises:
        InputError: An image whose K is not the number of names.

    Convention: pixel centres at integers, x right, y down.
    """
    annotations: list[dict[str, Any]] = []
    for image_id, image in enumerate(images, start=1):
        if image.keypoints.shape[1] != len(keypoint_names):
            raise InputError(
                f"{image.file_name} has {image.keypoints.shape[1]} keypoints per person, and there are "
                f"{len(keypoint_names)} keypoint_names"
            )
        for person in range(len(image.keypoints)):
            annotations.append(_annotation(image, person, image_id, annotation_id=len(annotations) + 1))
    return {
        "info": dict(info or {}),
        "images": [
            {
                "id": number,
                "file_name": image.file_name,
                "height": int(image.size_hw[0]),
                "width": int(image.size_hw[1]),
            }
            for number, image in enumerate(images, start=1)
        ],
        "annotations": annotations,
        "categories": [
            {
                "id": PERSON_ID,
                "name": "person",
                "supercategory": "person",
                "keypoints": list(keypoint_names),
                "skeleton": [[start + 1, end + 1] for start, end in skeleton],
            }
        ],
    }


def write_coco_poses(
    path: PathLike,
    images: Sequence[PosedImage],
    *,
    keypoint_names: Sequence[str],
    skeleton: Sequence[tuple[int, int]] = (),
    info: Mapping[str, Any] | None = None,
) -> Path:
    """Write what :func:`coco_pose_document` makes to one file.

    Returns:
        The path.

    Raises:
        InputError: As :func:`coco_pose_document`; nothing is written.
    """
    return write_json(path, coco_pose_document(images, keypoint_names=keypoint_names, skeleton=skeleton, info=info))


def read_coco_poses(path: PathLike) -> list[PosedImage]:
    """Read the images of a file that :func:`write_coco_poses` wrote, or of any COCO keypoint file.

    Points with v = 0 come back as NaN. Without ``keypoint_scores`` a labelled point has score 1. ``box_scores`` and
    ``track_ids`` are None unless each person of an image has one.

    Raises:
        InputError: The document lacks a part, or an annotation names an image that is not listed.
    """
    document = read_json(path)
    try:
        num_keypoints = len(document["categories"][0]["keypoints"])
        people: dict[int, list[dict[str, Any]]] = {image["id"]: [] for image in document["images"]}
        for annotation in document["annotations"]:
            people[annotation["image_id"]].append(annotation)
        return [_posed_image(image, people[image["id"]], num_keypoints) for image in document["images"]]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a COCO keypoint document: {type(error).__name__} {error}") from error


def _annotation(image: PosedImage, person: int, image_id: int, *, annotation_id: int) -> dict[str, Any]:
    points = image.keypoints[person].astype(np.float64)
    known = np.isfinite(points).all(axis=1)
    rows = np.where(known[:, None], np.column_stack([points, np.full(len(points), 2.0)]), 0.0)
    scores = np.where(known & np.isfinite(image.scores[person]), image.scores[person], 0.0)
    left, top, right, bottom = image.boxes_xyxy[person].astype(np.float64).round(POSITION_DECIMALS).tolist()
    width, height = round(right - left, POSITION_DECIMALS), round(bottom - top, POSITION_DECIMALS)
    annotation: dict[str, Any] = {
        "id": annotation_id,
        "image_id": image_id,
        "category_id": PERSON_ID,
        "iscrowd": 0,
        "bbox": [left, top, width, height],
        "area": round(width * height, POSITION_DECIMALS),
        "num_keypoints": int(known.sum()),
        "keypoints": [number for x, y, v in rows.round(POSITION_DECIMALS).tolist() for number in (x, y, int(v))],
        "keypoint_scores": scores.astype(np.float64).round(SCORE_DECIMALS).tolist(),
    }
    if image.box_scores is not None:
        annotation["bbox_score"] = round(float(image.box_scores[person]), SCORE_DECIMALS)
    if image.track_ids is not None:
        annotation["track_id"] = int(image.track_ids[person])
    return annotation


def _posed_image(image: Mapping[str, Any], people: Sequence[Mapping[str, Any]], num_keypoints: int) -> PosedImage:
    rows = np.array([person["keypoints"] for person in people], np.float64).reshape(len(people), num_keypoints, 3)
    labelled = rows[..., 2] > 0
    scores = [person.get("keypoint_scores", found) for person, found in zip(people, labelled, strict=True)]
    boxes = np.array([person["bbox"] for person in people], np.float64).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]

    def column(field: str, kind: type[np.generic]) -> NDArray[Any] | None:
        present = bool(people) and all(field in person for person in people)
        return np.array([person[field] for person in people], kind) if present else None

    return PosedImage(
        file_name=image["file_name"],
        size_hw=(image["height"], image["width"]),
        keypoints=np.where(labelled[..., None], rows[..., :2], np.nan).astype(np.float32),
        scores=np.array(scores, np.float32).reshape(len(people), num_keypoints),
        boxes_xyxy=boxes.astype(np.float32),
        box_scores=column("bbox_score", np.float32),
        track_ids=column("track_id", np.int64),
    )
