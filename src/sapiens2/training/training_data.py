"""The data of a recipe, on its way to the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from sapiens2.data import AugmentedSamples, SampleSource, Targets, collate_targets
from sapiens2.data.augment import Acceptance, Compose, Recipe as AugmentationRecipe, SelectPerson, training_recipe
from sapiens2.data.augment.recipes import evaluation_recipe
from sapiens2.data.sources import open_samples
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.models import Sapiens2Config
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.training.recipe import AugmentationSection, DataSection, ModelSection, Recipe
from sapiens2.types import SizeHW, Task

__all__ = [
    "INDEX",
    "Batch",
    "SampleOrder",
    "TrainingSamples",
    "chosen_labels",
    "collate",
    "open_data",
    "require_labels",
    "training_samples",
]

Batch: TypeAlias = dict[str, Tensor]

INDEX = "sample_index"
"""Name of the tensor that says which samples a batch holds."""

_PICTURES = {".jpg", ".jpeg", ".png", ".webp"}


def open_data(section: DataSection, task: Task) -> tuple[SampleSource, SampleSource | None]:
    """The samples to train on and to measure on.

    Raises:
        InputError: There are no samples, or no such files; the message names the key.
        ConfigurationError: A description that cannot be understood.
    """
    train = _open("data.train", section.train, task)
    return train, None if section.eval is None else _open("data.eval", section.eval, task)


def chosen_labels(section: ModelSection, task: Task, samples: SampleSource) -> tuple[str, ...] | None:
    """Names of the classes or keypoints that a recipe asks for; None where it leaves them to the model.

    Raises:
        ConfigurationError: ``data`` is asked for, and the data has no names.
    """
    if section.labels is None or isinstance(section.labels, tuple):
        return section.labels
    if (names := _names_of(samples, task)) is None:
        raise ConfigurationError("model.labels is data, and the training data has no names; list them in the recipe")
    return names


class TrainingSamples(Dataset[Batch]):
    """Augmented samples that say which sample they were made from, in tensors and in errors.

    Args:
        augmented: The tensors of samples.
    """

    def __init__(self, augmented: AugmentedSamples) -> None:
        self.augmented = augmented

    def __len__(self) -> int:
        return len(self.augmented)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; accelerate, and so ``Trainer``, calls this."""
        self.augmented.set_epoch(epoch)

    def __getitem__(self, index: int) -> Batch:
        """Make the tensors of one sample.

        Raises:
            InputError: The sample cannot be read or used; the message names it.
        """
        try:
            tensors: Batch = self.augmented[index]
        except (InputError, OSError) as error:
            raise InputError(f"training sample {index} cannot be used: {error}") from error
        return {**tensors, INDEX: torch.tensor(index)}

    def names(self, indices: Sequence[int]) -> list[str]:
        """What to call samples in a message."""
        return [self._name(int(index)) for index in indices]

    def _name(self, index: int) -> str:
        try:
            name = self.augmented.samples[index].name
        except (InputError, OSError):
            name = ""
        return f"{index} ({name})" if name else str(index)


class SampleOrder(Sampler[int]):
    """All samples in an order that depends on the seed and the epoch of the data alone.

    Args:
        samples: The samples; their epoch is looked up when an order begins.
        seed: The seed.
    """

    def __init__(self, samples: TrainingSamples, seed: int) -> None:
        self.samples, self.seed = samples, seed

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng([self.seed, self.samples.augmented.epoch])
        return iter(rng.permutation(len(self.samples)).tolist())


def training_samples(
    recipe: Recipe,
    samples: SampleSource,
    processor: Sapiens2ImageProcessor,
    config: Sapiens2Config,
    labels: Sequence[str] | None,
) -> TrainingSamples:
    """The data set that a training iterates over.

    Args:
        recipe: The whole recipe.
        samples: The training data.
        processor: Of the model.
        config: Of the model.
        labels: Names of the model's classes or keypoints; None for tasks that have none.

    Raises:
        ConfigurationError: The data has other classes or keypoints than the model.
    """
    require_labels(recipe.task, samples, labels)
    targets = Targets(recipe.task, processor, label_stride=_label_stride(recipe.task, config))
    augmentation = _augmentation(recipe, targets.size_hw, labels)
    return TrainingSamples(AugmentedSamples(samples, augmentation, targets, seed=recipe.training.seed))


def require_labels(task: Task, samples: SampleSource, labels: Sequence[str] | None, *, key: str = "data.train") -> None:
    """Refuse data whose ids mean something else: figures would be of nothing, and flips swap the wrong sides.

    Args:
        task: The task.
        samples: The data.
        labels: Names of the model's classes or keypoints; None for tasks that have none.
        key: What a recipe calls the data.

    Raises:
        ConfigurationError: Other names, or the same in another order. Data without names are taken at their word.
    """
    names = None if labels is None else _names_of(samples, task)
    if names is None or labels is None or names == tuple(labels):
        return
    what = "keypoints" if task == "pose" else "classes"
    if len(names) != len(labels):
        difference = f"{len(names)} and {len(labels)} of them"
    else:
        first = next(index for index, pair in enumerate(zip(names, labels, strict=True)) if pair[0] != pair[1])
        difference = f"number {first} is {names[first]!r} and {labels[first]!r}"
    advice = (
        "Give model.labels: data to train those of the data"
        if key == "data.train"
        else "Give data with those of the model, or leave the key out"
    )
    raise ConfigurationError(f"the {what} of {key} are not those of the model: {difference}. {advice}")


def collate(batch: Sequence[Batch]) -> Batch:
    """Stack the tensors of samples."""
    return collate_targets(batch)


def _open(key: str, spec: Any, task: Task) -> SampleSource:
    try:
        samples = open_samples(spec, task=task)
    except (InputError, ConfigurationError) as error:
        raise type(error)(f"{key}: {error}") from error
    if len(samples) == 0:
        raise InputError(f"{key}: there are no samples")
    return samples


def _names_of(samples: SampleSource, task: Task) -> tuple[str, ...] | None:
    names = getattr(samples, "keypoint_names" if task == "pose" else "class_names", None)
    return None if names is None else tuple(names)


def _augmentation(recipe: Recipe, size_hw: SizeHW, labels: Sequence[str] | None) -> AugmentationRecipe:
    section, task = recipe.augmentation, recipe.task
    if section.recipe == "none":
        plain = evaluation_recipe(task, size_hw)
        return AugmentationRecipe(Compose((SelectPerson(), plain.transform))) if task == "pose" else plain
    pairs = recipe.model.mirror_pairs
    full = training_recipe(
        task,
        size_hw,
        keypoint_names=labels if task == "pose" else None,
        class_names=labels if task == "seg" else None,
        pairs=pairs,
        backgrounds=_backgrounds(section),
    )
    return full if section.limits else AugmentationRecipe(full.transform, Acceptance())


def _backgrounds(section: AugmentationSection) -> tuple[Path, ...]:
    if section.backgrounds is None:
        return ()
    folder = Path(section.backgrounds)
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _PICTURES) if folder.is_dir() else []
    if not files:
        raise InputError(f"augmentation.backgrounds: {folder} holds no pictures")
    return tuple(files)


def _label_stride(task: Task, config: Sapiens2Config) -> int:
    """Pixels of the input for each pixel of the head's maps; published heads end at the input's size."""
    if task == "pose":
        return 1  # heatmaps have the processor's
    upsampling = 2 ** len(config.head.upsample_out_channels or ())
    return max(1, config.feature_stride_hw[0] // upsampling)
