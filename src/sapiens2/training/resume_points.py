"""Checkpoints that a training can go on from, and what is wrong with the others."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from sapiens2.io import read_json
from sapiens2.training.averaging import FILE_NAME as AVERAGE
from sapiens2.training.recipe import Recipe

__all__ = ["CheckpointNeeds", "ResumePoints", "damage", "saved_processes", "step_of"]

_STATE = "trainer_state.json"
_INDEX = "model.safetensors.index.json"
_ONE_PROCESS = "rng_state.pth"
_SMALL = 64 * 2**20
"""Archives of up to so many bytes are read in full; of larger ones the table of contents, which is at their end."""


@dataclass(frozen=True)
class CheckpointNeeds:
    """What a checkpoint has to hold for a training to go on as if it had never stopped.

    Attributes:
        adapter: Small matrices instead of the whole model.
        average: A moving average.
        processes: That go on.
    """

    adapter: bool = False
    average: bool = False
    processes: int = 1

    @classmethod
    def of(cls, recipe: Recipe, processes: int) -> CheckpointNeeds:
        """What the checkpoints of a recipe hold."""
        return cls(recipe.lora is not None, recipe.ema is not None, processes)


@dataclass(frozen=True)
class ResumePoints:
    """The checkpoints in a folder.

    Attributes:
        whole: The latest that is whole; None if there is none.
        damaged: Folder to fault of those after it.
    """

    whole: Path | None
    damaged: dict[Path, str]

    @classmethod
    def in_folder(cls, folder: Path, needs: CheckpointNeeds) -> ResumePoints:
        """Look at checkpoints from the latest backwards until one is whole."""
        found = [path for path in folder.glob("checkpoint-*") if path.name.partition("-")[2].isdecimal()]
        damaged: dict[Path, str] = {}
        for path in sorted(found, key=step_of, reverse=True):
            fault = damage(path, needs)
            if fault is None:
                return cls(path, damaged)
            damaged[path] = fault
        return cls(None, damaged)


def damage(checkpoint: Path, needs: CheckpointNeeds) -> str | None:
    """Say what a checkpoint lacks, or None if it is whole.

    Every file that resuming reads has to be there and to end where it should; what it says is not compared with
    anything. Weights and large archives are not read for that.
    """
    for name, look in _files(checkpoint, needs):
        path = checkpoint / name
        if not path.is_file():
            return f"{name} is missing"
        try:
            look(path)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError, zipfile.BadZipFile) as error:
            return f"{name} is damaged ({str(error) or 'it is empty'})"
    return None


def saved_processes(checkpoint: Path) -> int:
    """How many processes wrote a checkpoint, by the random states in it; 0 if these are not all there."""
    if (checkpoint / _ONE_PROCESS).is_file():
        return 1
    count = sum(1 for _ in checkpoint.glob("rng_state_*.pth"))
    whole = count > 1 and all((checkpoint / f"rng_state_{rank}.pth").is_file() for rank in range(count))
    return count if whole else 0


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was saved."""
    return int(checkpoint.name.partition("-")[2])


def _files(checkpoint: Path, needs: CheckpointNeeds) -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """Names of files, each with what raises when the file is not whole."""
    yield _STATE, _look_at_state  # first, since it is written last: without it writing was broken off
    if needs.adapter:
        yield "adapter_config.json", _mapping_in
        yield "adapter_model.safetensors", _look_at_tensors
    else:
        yield "config.json", _mapping_in
        if (checkpoint / _INDEX).is_file():
            yield _INDEX, _shards_in
            for name in sorted(set(_shards_in(checkpoint / _INDEX))):
                yield name, _look_at_tensors
        else:
            yield "model.safetensors", _look_at_tensors
    yield "optimizer.pt", _look_at_archive
    yield "scheduler.pt", _look_at_archive
    # Another number of processes may go on, if it can be seen that this is what it is.
    processes = saved_processes(checkpoint) or needs.processes
    for name in [f"rng_state_{rank}.pth" for rank in range(processes)] if processes > 1 else [_ONE_PROCESS]:
        yield name, _look_at_archive
    if needs.average:
        yield AVERAGE, _look_at_tensors


def _mapping_in(path: Path) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise ValueError("it holds no mapping")
    return document


def _look_at_state(path: Path) -> None:
    step = _mapping_in(path)["global_step"]
    if step != step_of(path.parent):
        raise ValueError(f"it is of step {step}")


def _shards_in(path: Path) -> list[str]:
    return [str(name) for name in dict(_mapping_in(path)["weight_map"]).values()]


def _look_at_tensors(path: Path) -> None:
    with safe_open(path, "pt"):  # compares the size of the file with what its head says
        pass


def _look_at_archive(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        if path.stat().st_size <= _SMALL and (name := archive.testzip()) is not None:
            raise ValueError(f"{name} in it has another checksum")
