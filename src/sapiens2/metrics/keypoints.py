"""Accuracy of keypoints whose person is known: the percentage of correct ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from sapiens2.assets import KeypointTable, keypoint_table
from sapiens2.errors import InputError
from sapiens2.metrics.inputs import as_tensor
from sapiens2.metrics.metric import Metric
from sapiens2.types import ArrayLike

__all__ = ["PckMetric", "PckReference", "checked_groups", "keypoint_groups", "points_batch", "visibility"]

PckReference: TypeAlias = Literal["longer_side", "diagonal", "given"]
"""The length that distances are divided by: of the person's box, or one that the caller gives (a head, a torso)."""

WHOLE = "whole"
"""The group of all keypoints."""


def keypoint_groups(table: KeypointTable | None = None) -> dict[str, tuple[int, ...]]:
    """The groups in which keypoints are evaluated: body (COCO's 17), foot, face, left and right hand, and the whole.

    Args:
        table: The keypoints; None for the published 308.
    """
    table = keypoint_table() if table is None else table
    parts = {name: table.indices(name) for name in ("foot", "face", "left_hand", "right_hand")}
    return {"body": table.coco17, **parts, WHOLE: tuple(range(len(table)))}


class PckMetric(Metric):
    """Percentage of correct keypoints: those that lie near their truth, measured by the size of the person.

    Figures, for each group: ``<group>/pck_<t>_percent``: keypoints at a distance of at most t times the reference
    length; ``<group>/normalised_error``: mean distance in reference lengths; ``<group>/keypoints``: how many had a
    truth. And ``people``. Keypoints are pooled over all people. A predicted keypoint that is NaN was not found: it is
    wrong, and enters no mean distance; a note says how many there are.

    Args:
        num_keypoints: K.
        thresholds: t, above 0.
        reference: ``"longer_side"`` of the person's box, its ``"diagonal"``, or ``"given"`` lengths.
        groups: Indices of the keypoints of each group; all together when left out (:func:`keypoint_groups` for the
            published ones).

    Raises:
        InputError: Arguments out of range.

    Source: Yang and Ramanan, Articulated Human Detection with Flexible Mixtures of Parts, TPAMI 35, 2013, section 8
        (longer side of the box); Andriluka et al., 2D Human Pose Estimation, CVPR 2014 (PCKh: given head lengths).
    """

    def __init__(
        self,
        num_keypoints: int,
        *,
        thresholds: Sequence[float] = (0.05, 0.1),
        reference: PckReference = "longer_side",
        groups: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        super().__init__()
        self._num_keypoints = num_keypoints
        self._thresholds = tuple(float(limit) for limit in thresholds)
        self._reference: PckReference = reference
        self._groups = checked_groups(groups, num_keypoints)
        if not all(limit > 0 for limit in self._thresholds):
            raise InputError(f"thresholds must be above 0, got {self._thresholds}")
        if reference not in get_args(PckReference):
            raise InputError(f"reference must be one of {', '.join(get_args(PckReference))}; got {reference!r}")

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {
            "num_keypoints": self._num_keypoints,
            "thresholds": list(self._thresholds),
            "reference": self._reference,
            "groups": {name: list(indices) for name, indices in self._groups.items()},
        }

    def update(
        self,
        prediction: ArrayLike,
        target: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        boxes: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> None:
        """Add the people of an image; prediction and target are in the same order.

        Args:
            prediction: ``(N, K, 2)`` x, y in pixels; NaN where none was found.
            target: ``(N, K, 2)``.
            mask: ``(N, K)`` bool, True where the target counts; targets that are NaN never do.
            boxes: ``(N, 4)`` COCO ``(x, y, w, h)`` boxes of the people, unless lengths are given.
            lengths: ``(N,)`` reference lengths in pixels, for ``reference="given"``.

        Raises:
            InputError: Shapes that do not fit, a mask that is not bool, missing boxes or lengths, or a length that is
                not above 0.
        """
        predicted = points_batch(prediction, self._num_keypoints, "prediction")
        true = points_batch(target, self._num_keypoints, "target").to(predicted.device)
        if len(predicted) != len(true):
            raise InputError(f"prediction has {len(predicted)} people and target {len(true)}; they must be paired")
        counted = visibility(mask, true)
        sizes = self._lengths(boxes, lengths, len(true)).to(predicted.device)
        distances = torch.linalg.vector_norm(predicted - true, dim=-1) / sizes[:, None]  # (N, K)
        self._totals.count("images", 1)
        self._totals.count("people", len(true))
        for name, indices in self._groups.items():
            for person, counts in zip(distances[:, list(indices)], counted[:, list(indices)], strict=True):
                self._add_person(name, person[counts])

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen; NaN when a group had no keypoint that counts."""
        totals, figures = self._totals, dict[str, float]()
        for name in self._groups:
            for limit in self._thresholds:
                share = totals.share(f"{name}/within_{limit:g}", f"{name}/keypoints")
                figures[f"{name}/pck_{limit:g}_percent"] = 100 * share
            figures[f"{name}/normalised_error"] = totals.mean(f"{name}/distance", f"{name}/found")
            figures[f"{name}/keypoints"] = float(totals.count_of(f"{name}/keypoints"))
        return {**figures, "people": float(totals.count_of("people"))}

    def notes(self) -> tuple[str, ...]:
        """Sentences about groups without truth and keypoints that were not found."""
        found, totals = list(super().notes()), self._totals
        if totals.count_of("images"):
            for name in self._groups:
                keypoints = totals.count_of(f"{name}/keypoints")
                if not keypoints:
                    found.append(f"{name}: no keypoint has a truth")
                elif missing := keypoints - totals.count_of(f"{name}/found"):
                    found.append(f"{name}: {missing} of {keypoints} keypoints were not found, and count as wrong")
        return tuple(found)

    def _add_person(self, group: str, distances: Tensor) -> None:
        known = distances[torch.isfinite(distances)]
        self._totals.count(f"{group}/keypoints", len(distances))
        self._totals.count(f"{group}/found", len(known))
        self._totals.add(f"{group}/distance", known.sum().item())
        for limit in self._thresholds:
            self._totals.count(f"{group}/within_{limit:g}", int((known <= limit).sum()))

    def _lengths(self, boxes: ArrayLike | None, lengths: ArrayLike | None, people: int) -> Tensor:
        wanted, given = ("lengths", lengths) if self._reference == "given" else ("boxes", boxes)
        if given is None or (boxes is not None and lengths is not None):
            raise InputError(f"reference {self._reference!r} needs {wanted}, and only them")
        values = as_tensor(given, wanted).to(torch.float64)
        shape = (people,) if wanted == "lengths" else (people, 4)
        if people == 0 and values.numel() == 0:
            values = values.reshape(shape)
        if values.shape != shape:
            raise InputError(f"{wanted} must have shape {shape}, got {tuple(values.shape)}")
        if self._reference == "longer_side":
            values = values[:, 2:].amax(dim=1)
        elif self._reference == "diagonal":
            values = torch.linalg.vector_norm(values[:, 2:], dim=1)
        if not ((values > 0) & torch.isfinite(values)).all():
            raise InputError(f"reference lengths must be above 0 and finite, got {values.tolist()}")
        return values


def checked_groups(groups: Mapping[str, Sequence[int]] | None, num_keypoints: int) -> dict[str, tuple[int, ...]]:
    """Groups of indices into K keypoints; None makes one group of all, called ``"whole"``.

    Raises:
        InputError: K is below 1, or a group is empty, repeats an index or has one out of range.
    """
    if num_keypoints < 1:
        raise InputError(f"num_keypoints must be at least 1, got {num_keypoints}")
    if groups is None:
        return {WHOLE: tuple(range(num_keypoints))}
    checked = {name: tuple(int(index) for index in indices) for name, indices in groups.items()}
    for name, indices in checked.items():
        if not indices or len(set(indices)) != len(indices) or not all(0 <= i < num_keypoints for i in indices):
            raise InputError(f"group {name!r} must list indices 0 to {num_keypoints - 1}, each once, got {indices}")
    return checked


def points_batch(value: ArrayLike, num_keypoints: int, name: str) -> Tensor:
    """Keypoints of N people as ``(N, K, 2)`` float64; NaN stays.

    Raises:
        InputError: Another shape, or infinite coordinates.
    """
    points = as_tensor(value, name).to(torch.float64)
    if points.numel() == 0 and points.ndim > 0 and len(points) == 0:
        points = points.reshape(0, num_keypoints, 2)
    if points.ndim != 3 or points.shape[1:] != (num_keypoints, 2):
        raise InputError(f"{name} must have shape (N, {num_keypoints}, 2), got {tuple(points.shape)}")
    if torch.isinf(points).any():
        raise InputError(f"{name} has infinite coordinates; use NaN for a keypoint that is not there")
    return points


def visibility(mask: ArrayLike | None, targets: Tensor) -> Tensor:
    """Which targets count, ``(N, K)`` bool: where they are finite and the mask is True.

    Raises:
        InputError: The mask is not ``(N, K)`` bool.
    """
    finite = torch.isfinite(targets).all(dim=-1)
    if mask is None:
        return finite
    tensor = as_tensor(mask, "mask").to(targets.device)
    if len(targets) == 0 and tensor.numel() == 0:
        return finite
    if tensor.dtype != torch.bool or tensor.shape != finite.shape:
        raise InputError(
            f"mask must be bool {tuple(finite.shape)}, got {tensor.dtype} {tuple(tensor.shape)}; pass a comparison, "
            "such as visibility > 0"
        )
    return finite & tensor
