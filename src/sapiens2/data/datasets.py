"""Data sets of samples, and their augmentation on the way to a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import Dataset

from sapiens2.data.augment.acceptance import UnusableSampleError
from sapiens2.data.augment.recipes import Recipe
from sapiens2.data.sample import Sample
from sapiens2.errors import InputError

__all__ = ["AugmentedSamples", "SampleSource", "TargetSamples"]


class SampleSource(Protocol):
    """Anything with samples at indices from 0; every loader is one."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def __getitem__(self, index: int) -> Sample:
        """Read a sample."""
        ...


class TargetSamples(Dataset[Any]):
    """Samples as they are, made into what a model takes: for evaluation. Sample ``i`` is always sample ``i``.

    Args:
        samples: The samples.
        targets: What makes the tensors, normally :class:`~sapiens2.data.targets.Targets`.
    """

    def __init__(self, samples: SampleSource, targets: Callable[[Sample], Any]) -> None:
        self.samples, self.targets = samples, targets

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        """Make the tensors of one sample."""
        return self.targets(self.samples[index])


class AugmentedSamples(Dataset[Any]):
    """Samples that are augmented anew in each epoch, for training.

    What comes out depends on the seed, the epoch and the index alone: not on the number of workers, not on the order,
    not on what was read before. Training that resumes in an epoch sees what it would have seen.

    A result that the recipe does not accept is augmented again, then replaced by another sample; a sample of which
    nothing can be made (a picture of nobody, for poses) is replaced at once. After ``tries`` that is an error, and
    never a sample that nobody asked for.

    Args:
        samples: The samples.
        recipe: Augmentations and limits.
        targets: What makes the tensors of a sample; None gives the samples themselves.
        seed: Seed of everything random.
        tries: Results to draw for one index, at most; the first half from the sample itself.

    Raises:
        InputError: There are no samples.
    """

    def __init__(
        self,
        samples: SampleSource,
        recipe: Recipe,
        targets: Callable[[Sample], Any] | None = None,
        *,
        seed: int = 0,
        tries: int = 20,
    ) -> None:
        if len(samples) == 0:
            raise InputError("There are no samples to augment.")
        self.samples, self.recipe, self.targets = samples, recipe, targets
        self.seed, self.tries = seed, tries
        # In shared memory, since workers that live on from epoch to epoch hold copies of this object.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self._replaced = torch.zeros((), dtype=torch.bool).share_memory_()

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def epoch(self) -> int:
        """The epoch that samples are drawn for."""
        return int(self._epoch)

    @property
    def replaced(self) -> bool:
        """Whether there was a sample of which nothing could be made, in this process or a worker."""
        return bool(self._replaced)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; accelerate, and so ``Trainer``, calls this."""
        self._epoch.fill_(epoch)

    def __getitem__(self, index: int) -> Any:
        """Augment a sample.

        Raises:
            IndexError: There is no such sample.
            InputError: No result was accepted.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} samples")
        rng = np.random.default_rng([self.seed, self.epoch, index % len(self)])
        faults: dict[str, str] = {}
        tries_of_own = (self.tries + 1) // 2
        for attempt in range(self.tries):
            chosen = index if attempt < tries_of_own else int(rng.integers(len(self)))
            source = self.samples[chosen]
            try:
                sample = self.recipe.transform(source, rng)
            except UnusableSampleError as error:
                self._replaced.fill_(True)
                tries_of_own = 0  # the same sample would fail again
                faults[source.name or f"sample {chosen}"] = str(error)
                continue
            fault = self.recipe.acceptance.fault(sample)
            if fault is None:
                return sample if self.targets is None else self.targets(sample)
            faults[source.name or f"sample {chosen}"] = fault
        listed = "; ".join(f"{name}: {fault}" for name, fault in list(faults.items())[:3])
        raise InputError(
            f"None of {self.tries} augmented results for sample {index} was accepted ({listed}). "
            "Check the truth of these samples, or loosen the limits: Recipe.acceptance, in a training recipe "
            "augmentation.limits: false."
        )
