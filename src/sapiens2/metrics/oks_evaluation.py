"""COCO's evaluation of keypoints, done by faster-coco-eval, which reproduces pycocotools and takes any sigmas."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2._optional import require

__all__ = ["FIGURES", "PosedPeople", "evaluate_oks"]

FIGURES = (
    "oks_ap",
    "oks_ap_50",
    "oks_ap_75",
    "oks_ap_medium",
    "oks_ap_large",
    "oks_ar",
    "oks_ar_50",
    "oks_ar_75",
    "oks_ar_medium",
    "oks_ar_large",
)
"""Names of what :func:`evaluate_oks` returns, in COCO's order."""

ALL, MEDIUM, LARGE = 0, 1, 2  # COCO's ranges of areas for keypoints
IOU_50, IOU_75 = 0, 5  # among the thresholds 0.50, 0.55, ..., 0.95
_FAR = -1e8  # a place so far from every picture that the similarity is 0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PosedPeople:
    """Predicted and true people of one image, all float64 but for the flags.

    Attributes:
        keypoints: ``(N, K, 2)`` predicted; NaN where a keypoint was not found.
        scores: ``(N,)``.
        targets: ``(M, K, 2)``; NaN allowed where not labelled.
        labelled: ``(M, K)`` bool.
        boxes: ``(M, 4)`` x, y, w, h.
        areas: ``(M,)``.
        crowd: ``(M,)`` bool.
        areas_known: Whether the areas were given.
    """

    keypoints: NDArray[np.float64]
    scores: NDArray[np.float64]
    targets: NDArray[np.float64]
    labelled: NDArray[np.bool_]
    boxes: NDArray[np.float64]
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    areas_known: bool

    def state(self) -> dict[str, Any]:
        """Everything, as JSON can hold it; NaN coordinates become None."""
        fields = asdict(self)
        for name in ("keypoints", "targets"):
            values = fields[name]
            fields[name] = np.where(np.isnan(values), None, values.astype(object))
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], num_keypoints: int) -> PosedPeople:
        """Restore what :meth:`state` gave.

        Raises:
            KeyError: An entry is missing.
            ValueError: Entries do not fit each other.
        """

        def array(name: str, *shape: int, dtype: Any = np.float64) -> NDArray[Any]:
            return np.array(state[name], dtype).reshape(shape)

        detections, people = len(state["scores"]), len(state["areas"])
        return cls(
            keypoints=array("keypoints", detections, num_keypoints, 2),
            scores=array("scores", detections),
            targets=array("targets", people, num_keypoints, 2),
            labelled=array("labelled", people, num_keypoints, dtype=np.bool_),
            boxes=array("boxes", people, 4),
            areas=array("areas", people),
            crowd=array("crowd", people, dtype=np.bool_),
            areas_known=bool(state["areas_known"]),
        )


def evaluate_oks(
    images: Sequence[PosedPeople],
    indices: NDArray[np.int64],
    sigmas: NDArray[np.float64],
    max_people: int,
) -> list[float]:
    """Average precision and recall of some of the keypoints.

    Args:
        images: The people of each image.
        indices: Which keypoints count.
        sigmas: ``(K,)`` falloffs of all keypoints.
        max_people: How many predictions of an image count.

    Returns:
        One value for each of :data:`FIGURES`; NaN where no person is to be found.

    Raises:
        MissingDependencyError: faster-coco-eval is not installed.
    """
    library = require("faster_coco_eval", extra="train")
    truths = [truth for number, image in enumerate(images, 1) for truth in _truths(number, image, indices)]
    if not truths:
        return [math.nan] * len(FIGURES)
    found = [person for number, image in enumerate(images, 1) for person in _detections(number, image, indices)]
    evaluation = library.COCOeval_faster(
        _collection(library, len(images), truths),
        _collection(library, len(images), found),
        iouType="keypoints",
        kpt_oks_sigmas=sigmas[indices],
        print_function=_logger.debug,
    )
    evaluation.params.maxDets = [max_people]
    evaluation.evaluate()
    evaluation.accumulate()
    # (T, R, 1, A, 1) and (T, 1, A, 1): thresholds, recalls, categories, areas, limits of detections
    precision, recall = np.array(evaluation.eval["precision"]), np.array(evaluation.eval["recall"])
    return [*_summary(precision[:, :, 0, :, 0]), *_summary(recall[:, None, 0, :, 0])]


def _summary(values: NDArray[np.float64]) -> list[float]:
    """The five figures of precision or recall, from ``(T, R, A)``."""
    selections = (values[..., ALL], values[IOU_50, :, ALL], values[IOU_75, :, ALL])
    return [_mean(selected) for selected in (*selections, values[..., MEDIUM], values[..., LARGE])]


def _mean(values: NDArray[np.float64]) -> float:
    known = values[values > -1]  # COCO's mark of "nobody to be found"
    return float(known.mean()) if known.size else math.nan


def _collection(library: Any, num_images: int, annotations: list[dict[str, Any]]) -> Any:
    for number, annotation in enumerate(annotations, 1):  # 0 would mean "not matched"
        annotation["id"] = number
    images = [{"id": number} for number in range(1, num_images + 1)]
    categories = [{"id": 1, "name": "person"}]
    document = {"images": images, "annotations": annotations, "categories": categories}
    return library.COCO(document, print_function=_logger.debug)


def _truths(number: int, image: PosedPeople, indices: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    for person in range(len(image.targets)):
        labelled = image.labelled[person, indices]
        points = np.where(labelled[:, None], image.targets[person, indices], 0.0)
        yield {
            "image_id": number,
            "category_id": 1,
            "keypoints": _flat(points, 2.0 * labelled),
            "num_keypoints": int(labelled.sum()),
            "bbox": image.boxes[person].tolist(),
            "area": float(image.areas[person]),
            "iscrowd": int(image.crowd[person]),
        }


def _detections(number: int, image: PosedPeople, indices: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    for points, score in zip(image.keypoints, image.scores, strict=True):
        found = points[~np.isnan(points).any(axis=1)]
        extent = np.ptp(found, axis=0) if len(found) else np.zeros(2)
        chosen = points[indices]
        missing = np.isnan(chosen).any(axis=1, keepdims=True)
        yield {
            "image_id": number,
            "category_id": 1,
            "keypoints": _flat(np.where(missing, _FAR, chosen), np.ones(len(indices))),
            "area": float(extent.prod()),
            "score": float(score),
        }


def _flat(points: NDArray[np.float64], flags: NDArray[np.float64]) -> NDArray[np.float64]:
    """COCO's x1, y1, v1, x2, y2, v2, ..."""
    return np.concatenate([points, flags[:, None]], axis=1).ravel()
