"""The augmentations that the published models were trained with, in their order, one recipe per task.

Source: the training configurations of Sapiens2. Differences, on purpose:

- Neighbouring geometric steps read the pixels once. In the recipe of parts, the photometric distortion comes after the
  last resize instead of before it.
- Labels outside the picture are ignored; the original takes them for background after a rotation.
- Limits on samples hold in training only; a rejected sample is drawn again and never replaced in silence.
- Matting has no published recipe. Here it is that of normals with backgrounds swapped first, without solarising.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sapiens2.assets import keypoint_table
from sapiens2.data.augment.acceptance import Acceptance
from sapiens2.data.augment.background import BackgroundSwap
from sapiens2.data.augment.chance import Compose, KeepTruth, Randomly, Transform
from sapiens2.data.augment.geometric import (
    Fit,
    Letterbox,
    RandomAspectCrop,
    RandomFit,
    RandomFlip,
    RandomPartCrop,
    RandomRotation,
    RandomScale,
)
from sapiens2.data.augment.mirror import Mirror
from sapiens2.data.augment.people import HalfBody, PersonWindow, SelectPerson
from sapiens2.data.augment.photometric import (
    BoxBlur,
    CoarseDropout,
    DownUpSample,
    GaussianBlur,
    GaussianNoise,
    MedianBlur,
    PhotometricDistortion,
    Solarize,
)
from sapiens2.data.augment.warp import GeometricStep, Warp
from sapiens2.errors import InputError
from sapiens2.types import TASKS, SizeHW, Task

__all__ = ["Recipe", "evaluation_recipe", "training_recipe"]

_VALID = Acceptance(min_valid_pixels=16, max_valid_share=0.96)
_LIMITS: dict[Task, Acceptance] = {
    "normal": _VALID,
    "pointmap": Acceptance(min_valid_pixels=16, max_valid_share=0.96, min_canonical_depth=0.04),
    "matting": Acceptance(),
    "albedo": Acceptance(min_valid_pixels=16, max_valid_share=0.96, min_albedo_spread=0.02),
}


@dataclass(frozen=True)
class Recipe:
    """What happens to a sample before it becomes targets.

    Attributes:
        transform: The augmentations; afterwards a sample has the size of the model's input.
        acceptance: Limits that the result has to keep, or it is drawn again.
    """

    transform: Transform
    acceptance: Acceptance = field(default_factory=Acceptance)


_TRUTHS: dict[Task, tuple[str, ...]] = {
    "pose": ("boxes_xywh", "keypoints"),
    "seg": ("parts",),
    "normal": ("normals",),
    "pointmap": ("pointmap", "intrinsics"),
    "matting": ("alpha", "foreground"),
    "albedo": ("albedo",),
}


def training_recipe(
    task: Task,
    size_hw: SizeHW = (1024, 768),
    *,
    keypoint_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    backgrounds: Sequence[Path] = (),
    also: Sequence[Task] = (),
) -> Recipe:
    """Build the recipe of a task.

    Args:
        task: The task.
        size_hw: Size of the model's input.
        keypoint_names: Own keypoints in order; None for the published 308.
        class_names: Own classes in order; None for the published 29.
        pairs: Names that mirror each other and do not say so.
        backgrounds: Pictures without people, for parts and matting. Without them backgrounds stay.
        also: Further tasks whose truth is carried along. That of all others is forgotten, which saves time.

    Raises:
        InputError: There is no such task.
        ConfigurationError: Names repeat.
    """
    for name in (task, *also):
        if name not in TASKS:
            raise _unknown(name)
    mirror = Mirror.from_names(keypoint_names, class_names, pairs=pairs)
    swap = tuple(Randomly(0.8, BackgroundSwap(tuple(backgrounds))) for _ in backgrounds[:1])
    truths = {*(truth for name in (task, *also) for truth in _TRUTHS[name]), *(_TRUTHS["matting"] if swap else ())}
    keep = KeepTruth(tuple(sorted(truths)))
    if task == "pose":
        names = keypoint_table().names if keypoint_names is None else keypoint_names
        return Recipe(Compose((keep, *_pose(size_hw, mirror, names))), Acceptance(min_visible_keypoints=1))
    if task == "seg":
        return Recipe(Compose((keep, *swap, *_parts(size_hw, mirror))), Acceptance(min_labelled_share=0.01))
    return Recipe(Compose((keep, *_maps(task, size_hw, mirror, swap))), _LIMITS[task])


def evaluation_recipe(task: Task, size_hw: SizeHW = (1024, 768), *, keep_aspect: bool | None = None) -> Recipe:
    """Bring samples to the size of the model's input, and do nothing else: nothing is random, nothing is rejected.

    Args:
        task: The task.
        size_hw: Size of the model's input.
        keep_aspect: Whether pictures are letterboxed rather than stretched; None as the published models were trained:
            parts are stretched, all other maps letterboxed. Poses are crops of people in any case.

    Raises:
        InputError: There is no such task.
    """
    if task not in TASKS:
        raise _unknown(task)
    if task == "pose":
        return Recipe(Warp((PersonWindow.plain(size_hw),), chosen="udp"))
    letterbox = task != "seg" if keep_aspect is None else keep_aspect
    step: GeometricStep = Letterbox(size_hw) if letterbox else Fit(size_hw)
    return Recipe(Warp((step,)))


def _pose(size_hw: SizeHW, mirror: Mirror, names: Sequence[str]) -> tuple[Transform, ...]:
    return (
        SelectPerson(),
        HalfBody.from_names(names),
        Warp((RandomFlip(), PersonWindow(size_hw)), mirror, chosen="udp"),
        Randomly(0.8, PhotometricDistortion()),
        Randomly(0.1, BoxBlur()),
        Randomly(0.1, MedianBlur()),
        CoarseDropout(),
    )


def _parts(size_hw: SizeHW, mirror: Mirror) -> tuple[Transform, ...]:
    return (
        Warp((RandomFit(size_hw), RandomPartCrop(size_hw)), mirror),
        Randomly(0.3, GaussianBlur()),
        Randomly(0.3, GaussianNoise()),
        Warp((RandomRotation(), RandomFlip(), Fit(size_hw)), mirror),
        PhotometricDistortion(),
    )


def _maps(task: Task, size_hw: SizeHW, mirror: Mirror, swap: tuple[Transform, ...]) -> tuple[Transform, ...]:
    crops = Warp((RandomScale(), RandomAspectCrop(), RandomFlip(0.3), Letterbox(size_hw)), mirror)
    blurred, noisy = Randomly(0.3, GaussianBlur()), Randomly(0.3, GaussianNoise())
    coarse = Randomly(0.2, DownUpSample())
    if task == "normal":
        return PhotometricDistortion(), coarse, crops, blurred, noisy, Randomly(0.3, Solarize())
    if task == "pointmap":
        return PhotometricDistortion(), crops
    if task == "albedo":
        return crops, Randomly(0.2, GaussianNoise())
    return (*swap, PhotometricDistortion(), coarse, crops, blurred, noisy)


def _unknown(task: str) -> InputError:
    return InputError(f"There is no task {task!r}; expected one of {', '.join(TASKS)}.")
