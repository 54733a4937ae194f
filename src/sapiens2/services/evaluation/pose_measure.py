"""Evaluation of poses, one person at a time in the true boxes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets import keypoint_table
from sapiens2.data import Sample
from sapiens2.errors import InputError, MissingDependencyError
from sapiens2.metrics import Metric, OksMetric, PckMetric, keypoint_groups
from sapiens2.metrics.baselines import mean_pose, pose_in_boxes
from sapiens2.services.evaluation.task_measure import TaskMeasure
from sapiens2.visualization import draw_pose

__all__ = ["PoseMeasure"]

WHOLE = "whole"


@dataclass(frozen=True, eq=False)
class _People:
    """True people of a picture: points ``(N, K, 2)``, whether each counts ``(N, K)``, boxes ``(N, 4)``."""

    index: int
    points: NDArray[np.float32]
    counted: NDArray[np.bool_]
    boxes: NDArray[np.float32]


class PoseMeasure(TaskMeasure):
    """Keypoints that model and data have in common.

    Args:
        keypoint_names: Names of the data's keypoints in order; None takes those of the model for granted.
    """

    task = "pose"
    truth = ("keypoints", "boxes_xywh")
    ranked_by = "normalised_error"
    protocol = (
        "Each person alone, in the true box; no detector. Points that are labelled within the picture count, visible "
        "or occluded. PCK: distances of at most a share of the longer side of the true box, pooled over people. OKS: "
        "COCO's evaluation of these poses, with areas of boxes. full_figures/: people of whom all of COCO's 17 points "
        "lie in the picture."
    )
    baseline = "the mean pose of these data, put into each box"

    def __init__(self, keypoint_names: Sequence[str] | None = None) -> None:
        self._data_names = None if keypoint_names is None else tuple(keypoint_names)
        self._common: _CommonPoints | None = None
        self._people: list[_People] = []
        self._metrics: dict[str, Any] = {}
        self._without_oks = ""

    def add(self, sample: Sample, result: Any) -> dict[str, float]:
        """Take in a sample, and give its own figures."""
        truth: Any = sample
        if self._common is None:
            self._common = _CommonPoints.of(result.names, self._data_names, truth.keypoints.shape[1])
            self._metrics = _empty_metrics(self._common.names)
        common = self._common
        points = truth.keypoints[:, common.in_data]
        people = _People(len(self._people), points[..., :2], points[..., 2] > 0, truth.boxes_xywh)
        self._people.append(people)
        own = _pck(common.names)
        predicted = result.keypoints[:, common.in_model]
        own.update(predicted, people.points, people.counted, boxes=people.boxes)
        _add(self._metrics, people, predicted, result.person_scores, own)
        figures = own.compute()
        main = "body" if "body/keypoints" in figures else WHOLE
        return {**figures, "normalised_error": figures[f"{main}/normalised_error"]}

    def values(self) -> dict[str, float]:
        """The figures over all samples."""
        return self._computed(self._metrics)

    def baseline_values(self) -> dict[str, float]:
        """The same figures of the baseline."""
        if self._common is None or not any(len(own.boxes) for own in self._people):
            return {}
        points = np.concatenate([own.points for own in self._people])
        boxes = np.concatenate([own.boxes for own in self._people])
        pose = mean_pose(points, boxes, np.concatenate([own.counted for own in self._people]))
        metrics = _empty_metrics(self._common.names)
        for people in self._people:
            placed = _placed(pose, people)
            own = _pck(self._common.names)
            own.update(placed, people.points, people.counted, boxes=people.boxes)
            _add(metrics, people, placed, np.ones(len(placed), np.float32), own)
        return self._computed(metrics)

    def metrics(self) -> Sequence[Metric]:
        """The metrics behind the figures."""
        return list(self._metrics.values())

    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""
        places = {name: "full_figures, " if name == "full_figures" else "" for name in self._metrics}
        found = [places[name] + note for name, metric in self._metrics.items() for note in metric.notes()]
        if nobody := sum(not len(own.boxes) for own in self._people):
            found.append(f"{nobody} of {len(self._people)} pictures have nobody, and enter no figure of poses")
        if self._common is not None:
            found += self._common.notes
            if "oks" not in self._metrics:
                found.append("no OKS: the falloff of these keypoints is not known")
        if self._without_oks:
            found.append(f"no OKS: {self._without_oks}")
        return tuple(dict.fromkeys(found))

    def pictures(self, sample: Sample, result: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Truth and prediction as pictures ``(H, W, 3)``, of the points that model and data share."""
        assert self._common is not None
        truth: Any = sample
        common = self._common
        points = truth.keypoints[:, common.in_data]
        counted = (points[..., 2] > 0).astype(np.float32)
        boxes = truth.boxes_xywh.copy()
        boxes[:, 2:] += boxes[:, :2]
        look: dict[str, Any] = {"boxes_xyxy": boxes, "threshold": 0.5, "skeleton": common.skeleton}
        predicted = result.keypoints[:, common.in_model]
        return (
            draw_pose(sample.image, points[..., :2], counted, **look),
            draw_pose(sample.image, predicted, counted, **look),
        )

    def _computed(self, metrics: dict[str, Any]) -> dict[str, float]:
        values: dict[str, float] = {}
        for prefix, metric in metrics.items():
            try:
                own = metric.compute()
            except MissingDependencyError as error:
                self._without_oks = str(error)
                continue
            place = "" if prefix in ("pck", "oks") else f"{prefix}/"
            values |= {f"{place}{name}": value for name, value in own.items()}
        return values


@dataclass(frozen=True)
class _CommonPoints:
    """Keypoints that model and data share: names in the data's order, and where they are on both sides."""

    names: tuple[str, ...]
    in_model: list[int]
    in_data: list[int]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, model: Sequence[str], data: Sequence[str] | None, count: int) -> _CommonPoints:
        numbered = all(re.fullmatch(r"keypoint_\d+", name) for name in model)
        if data is None or numbered:
            if len(model) != count:
                raise InputError(
                    f"the model has {len(model)} keypoints and the data have {count}, without names to match them by"
                )
            return cls(tuple(data or model), list(range(count)), list(range(count)), ())
        places = {name: index for index, name in enumerate(model)}
        names = tuple(name for name in data if name in places)
        if not names:
            raise InputError(
                f"the model and the data have no keypoint in common: {', '.join(model[:4])}, ... and "
                f"{', '.join(data[:4])}, ..."
            )
        notes: tuple[str, ...] = ()
        if len(names) < max(len(model), len(data)):
            notes = (f"{len(names)} keypoints are in both the model's {len(model)} and the data's {len(data)}",)
        return cls(names, [places[name] for name in names], [data.index(name) for name in names], notes)

    @property
    def skeleton(self) -> tuple[tuple[int, int], ...] | None:
        """Published links between these points; None draws points of the whole published list, or points alone."""
        table = keypoint_table()
        if self.names == table.names or not set(self.names) <= set(table.names):
            return None
        own = {table.names.index(name): index for index, name in enumerate(self.names)}
        return tuple((own[a], own[b]) for a, b in table.skeleton if a in own and b in own)


def _groups(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The published groups as far as these points belong to them, and the whole."""
    published = keypoint_table().names
    found: dict[str, tuple[int, ...]] = {}
    for group, indices in keypoint_groups().items():
        members = {published[index] for index in indices}
        own = tuple(index for index, name in enumerate(names) if name in members)
        if own and group != WHOLE:
            found[group] = own
    return {**found, WHOLE: tuple(range(len(names)))}


def _pck(names: Sequence[str]) -> PckMetric:
    return PckMetric(len(names), groups=_groups(names))


def _empty_metrics(names: Sequence[str]) -> dict[str, Any]:
    table = keypoint_table()
    metrics: dict[str, Any] = {"pck": _pck(names)}
    if {table.names[index] for index in table.coco17} <= set(names):
        groups = {name: own for name, own in _groups(names).items() if name in ("body", WHOLE)}
        metrics["full_figures"] = PckMetric(len(names), groups=groups)
    if set(names) <= set(table.names):
        sigmas = [table.sigmas[table.names.index(name)] for name in names]
        metrics["oks"] = OksMetric(sigmas, groups=_groups(names))
    return metrics


def _add(metrics: dict[str, Any], people: _People, predicted: Any, scores: Any, own: PckMetric) -> None:
    metrics["pck"].merge(own)
    if "full_figures" in metrics:
        body = list(metrics["full_figures"].settings()["groups"]["body"])
        full = people.counted[:, body].all(axis=1)
        metrics["full_figures"].update(
            predicted[full], people.points[full], people.counted[full], boxes=people.boxes[full]
        )
    if "oks" in metrics:
        metrics["oks"].update(
            predicted, people.points, people.counted, image_id=people.index, scores=scores, boxes=people.boxes
        )


def _placed(pose: Any, people: _People) -> NDArray[np.float32]:
    if not len(people.boxes):
        return np.zeros_like(people.points)
    placed: NDArray[np.float32] = pose_in_boxes(pose, people.boxes).cpu().numpy()
    return placed
