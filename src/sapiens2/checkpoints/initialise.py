"""Checkpoints with random weights, to try everything before there are trained ones."""

from __future__ import annotations

from pathlib import Path

import torch

from sapiens2.checkpoints.load import default_processor
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.tasks import TASK_MODELS
from sapiens2.types import PathLike, Task

__all__ = ["initialise_checkpoint"]


def initialise_checkpoint(size: str, task: Task, destination: PathLike, *, seed: int = 0) -> Path:
    """Write a checkpoint with random weights; its configuration says so (``sapiens2_weights: "random"``).

    Args:
        size: As in :meth:`Sapiens2Config.from_size`.
        task: The task.
        destination: Folder to write ``config.json``, ``model.safetensors`` and ``preprocessor_config.json`` to.
        seed: Same seed, same weights.

    Returns:
        The folder.

    Raises:
        ConfigurationError: No such size or task.
    """
    config = Sapiens2Config.from_size(size, task, sapiens2_weights="random")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = TASK_MODELS[task](config)
    folder = Path(destination)
    model.save_pretrained(folder)
    default_processor(config, task).save_pretrained(folder)
    return folder
