"""Average precision and recall of poses, by object keypoint similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from sapiens2.assets import keypoint_table
from sapiens2.errors import InputError
from sapiens2.metrics.inputs import as_tensor
from sapiens2.metrics.keypoints import checked_groups, keypoint_groups, points_batch, visibility
from sapiens2.metrics.metric import Metric
from sapiens2.metrics.oks_evaluation import FIGURES, PosedPeople, evaluate_oks
from sapiens2.types import ArrayLike, BoxesLike

__all__ = ["OksMetric"]


class OksMetric(Metric):
    """COCO's keypoint metric, for any number of keypoints and for groups of them.

    Figures, for each group, fractions in [0, 1]: ``<group>/oks_ap``, ``_ap_50``, ``_ap_75``, ``_ap_medium``,
    ``_ap_large``, ``<group>/oks_ar`` and the same four; NaN when no person has a truth there. ``people`` and
    ``detections`` are counts.

    The similarity of a prediction to a person is the mean over the keypoints with a truth of
    exp(−d² / (2 · area · (2σ)²)). A person without such a keypoint in a group is ignored there: what is predicted
    within the doubled box is then neither right nor wrong. The area is that of the person in all groups, and medium
    (32² to 96² pixels) and large people are told apart by it; a predicted person has that of the box around all its
    keypoints. On the same people the figures are those of pycocotools.

    Args:
        sigmas: Falloff of each of the K keypoints.
        groups: Indices of the keypoints of each group; all together when left out.
        max_people: How many predictions of an image count, the best first; 20 in COCO.

    Raises:
        InputError: Arguments out of range.

    Source: COCO keypoint evaluation, cocodataset.org/#keypoints-eval; Ronchi and Perona, Benchmarking and Error
        Diagnosis in Multi-Instance Pose Estimation, ICCV 2017.
    """

    def __init__(
        self,
        sigmas: Sequence[float],
        *,
        groups: Mapping[str, Sequence[int]] | None = None,
        max_people: int = 20,
    ) -> None:
        super().__init__()
        self._sigmas = tuple(float(sigma) for sigma in sigmas)
        self._groups = checked_groups(groups, len(self._sigmas))
        self._max_people = max_people
        self._images: dict[int | str, PosedPeople] = {}
        if not all(sigma > 0 for sigma in self._sigmas):
            raise InputError("every sigma must be above 0")
        if max_people < 1:
            raise InputError(f"max_people must be at least 1, got {max_people}")

    @classmethod
    def for_published_keypoints(cls, *, max_people: int = 20) -> Self:
        """A metric of the 308 published keypoints: body, foot, face, left and right hand, and the whole."""
        return cls(keypoint_table().sigmas, groups=keypoint_groups(), max_people=max_people)

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {
            "sigmas": list(self._sigmas),
            "groups": {name: list(indices) for name, indices in self._groups.items()},
            "max_people": self._max_people,
        }

    def update(
        self,
        prediction: ArrayLike,
        target: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        image_id: int | str,
        scores: ArrayLike,
        boxes: BoxesLike,
        areas: ArrayLike | None = None,
        crowd: ArrayLike | None = None,
    ) -> None:
        """Add one image; call it also for images where nobody is, or where nobody was found.

        Args:
            prediction: ``(N, K, 2)`` x, y in pixels; NaN where a keypoint was not found.
            target: ``(M, K, 2)``.
            mask: ``(M, K)`` bool, True where the target counts; targets that are NaN never do.
            image_id: Tells images apart. The same image may be added again, as samplers of several processes do to
                fill up their last batch; it counts once.
            scores: ``(N,)`` confidence of each predicted person.
            boxes: ``(M, 4)`` COCO ``(x, y, w, h)`` boxes of the true people.
            areas: ``(M,)`` area of each true person in square pixels; that of its box when left out, which COCO's
                own areas (of the outline) are not: figures are then lenient, and a note says so.
            crowd: ``(M,)`` bool, people to ignore.

        Raises:
            InputError: Shapes that do not fit, values that are NaN or negative, or other data for an image that was
                added before.
        """
        keypoints = points_batch(prediction, len(self._sigmas), "prediction")
        truths = points_batch(target, len(self._sigmas), "target")
        people = len(truths)
        corners = _numbers(boxes, "boxes", (people, 4))
        sizes = corners[:, 2] * corners[:, 3] if areas is None else _numbers(areas, "areas", (people,))
        if (corners[:, 2:] < 0).any() or (sizes < 0).any():
            raise InputError("areas and the extents of boxes must not be negative")
        self._add(
            image_id,
            PosedPeople(
                keypoints=keypoints.cpu().numpy(),
                scores=_numbers(scores, "scores", (len(keypoints),)),
                targets=truths.cpu().numpy(),
                labelled=visibility(mask, truths).cpu().numpy(),
                boxes=corners,
                areas=sizes,
                crowd=_flags(crowd, people),
                areas_known=areas is not None,
            ),
        )

    def compute(self) -> dict[str, float]:
        """The figures over all that was seen.

        Raises:
            MissingDependencyError: faster-coco-eval is not installed.
        """
        images = [self._images[image_id] for image_id in self._ordered_ids()]
        sigmas = np.array(self._sigmas)
        figures = {
            f"{name}/{figure}": value
            for name, indices in self._groups.items()
            for figure, value in zip(
                FIGURES, evaluate_oks(images, np.array(indices), sigmas, self._max_people), strict=True
            )
        }
        return {
            **figures,
            "images": float(len(images)),
            "people": float(sum(len(image.targets) for image in images)),
            "detections": float(sum(len(image.keypoints) for image in images)),
        }

    def notes(self) -> tuple[str, ...]:
        """Sentences about groups without truth and areas that were not given."""
        if not self._images:
            return ("no image was seen",)
        images, found = self._images.values(), []
        for name, indices in self._groups.items():
            if not any((image.labelled[:, list(indices)].any(axis=1) & ~image.crowd).any() for image in images):
                found.append(f"{name}: no person has a keypoint with a truth")
        if guessed := sum(len(image.targets) for image in images if not image.areas_known):
            found.append(f"the areas of {guessed} people are those of their boxes, not of their outlines")
        return tuple(found)

    def state(self) -> dict[str, Any]:
        """All of this metric, as JSON can hold it without loss: to be stored, or sent to another process."""
        images = [{"image_id": image_id, **self._images[image_id].state()} for image_id in self._ordered_ids()]
        return {"metric": type(self).__name__, "settings": self.settings(), "images": images}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for image in state["images"]:
            self._add(image["image_id"], PosedPeople.from_state(image, len(self._sigmas)))

    def _merge(self, other: Self) -> None:
        for image_id, people in other._images.items():
            self._add(image_id, people)

    def _add(self, image_id: int | str, people: PosedPeople) -> None:
        if not isinstance(image_id, int | str) or isinstance(image_id, bool):
            raise InputError(f"image_id must be an integer or a text, got {image_id!r}")
        known = self._images.setdefault(image_id, people)
        if known is not people and known.state() != people.state():
            raise InputError(f"image {image_id!r} was added before with other people; every image needs its own id")

    def _ordered_ids(self) -> list[int | str]:
        # Equal scores are ranked by image; the order must not depend on which process saw which image.
        return sorted(self._images, key=lambda image_id: (isinstance(image_id, str), image_id))


def _numbers(value: ArrayLike, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """``value`` as finite float64 on the CPU."""
    tensor: Tensor = as_tensor(value, name).to(torch.float64).cpu()
    if shape[0] == 0 and tensor.numel() == 0:
        tensor = tensor.reshape(shape)
    if tuple(tensor.shape) != shape:
        raise InputError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")
    if not torch.isfinite(tensor).all():
        raise InputError(f"{name} must be finite, got {tensor.tolist()}")
    return tensor.numpy()


def _flags(value: ArrayLike | None, people: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if value is None:
        return np.zeros(people, np.bool_)
    tensor = as_tensor(value, "crowd").cpu()
    if people == 0 and tensor.numel() == 0:
        return np.zeros(0, np.bool_)
    if tensor.dtype != torch.bool or tensor.shape != (people,):
        raise InputError(f"crowd must be bool ({people},), got {tensor.dtype} {tuple(tensor.shape)}")
    return tensor.numpy()
