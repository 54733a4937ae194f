"""All tasks on the photo that comes with the package."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sapiens2.assets import sample_photo
from sapiens2.checkpoints import initialise_checkpoint
from sapiens2.inference import load
from sapiens2.inference.sources import packaged_checkpoint
from sapiens2.types import TASKS, PathLike, Task

__all__ = ["DEMO_SIZE", "DemoReport", "run_demo"]

DEMO_SIZE = "nano"


@dataclass(frozen=True)
class DemoReport:
    """What the demo did.

    Attributes:
        files: Files that were written.
        untrained: Tasks for which no trained weights come with the package: their weights were random.
    """

    files: tuple[Path, ...]
    untrained: tuple[Task, ...]


def run_demo(output: PathLike, *, device: str = "auto") -> DemoReport:
    """Predict every task for the sample photo with the smallest models.

    Trained weights are taken where the package has them; the other tasks get random ones, which the metadata of their
    pictures says. All numbers depend on the seed alone, so two runs give the same pictures.

    Args:
        output: Folder to write to; it is made when it does not exist.
        device: As for :func:`sapiens2.inference.load`.
    """
    untrained = tuple(task for task in TASKS if packaged_checkpoint(DEMO_SIZE, task) is None)
    with _checkpoints() as models:
        prediction = load("all", model=models, device=device)(sample_photo())
    return DemoReport(tuple(prediction.save(output)), untrained)


@contextmanager
def _checkpoints() -> Iterator[dict[Task, PathLike]]:
    """A checkpoint for every task; those with random weights are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="sapiens2-demo-") as folder:
        models: dict[Task, PathLike] = {}
        for task in TASKS:
            packaged = packaged_checkpoint(DEMO_SIZE, task)
            models[task] = packaged or initialise_checkpoint(DEMO_SIZE, task, Path(folder) / f"{DEMO_SIZE}-{task}")
        yield models
