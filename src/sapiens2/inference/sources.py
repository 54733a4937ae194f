"""Which checkpoint serves which task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sapiens2.assets.sizes import size_names
from sapiens2.checkpoints import infer_config, published_id, read_shapes
from sapiens2.checkpoints.load import weight_files
from sapiens2.errors import CheckpointError, ConfigurationError
from sapiens2.models import TASK_MODELS, Sapiens2Config
from sapiens2.types import TASKS, PathLike, Task

__all__ = ["Sources", "Tasks", "checkpoint_sources", "packaged_checkpoint"]

Tasks: TypeAlias = Task | Sequence[Task] | Literal["all"]
Sources: TypeAlias = dict[Task, str]
"""Task -> folder, file or hub id."""


def checkpoint_sources(
    tasks: Tasks, *, size: str | None = None, model: PathLike | Mapping[Task, PathLike] | None = None
) -> Sources:
    """Find a checkpoint for each task, without reading weights.

    Args:
        tasks: The tasks, or ``"all"``: every task that ``size`` or ``model`` has a checkpoint for.
        size: Published size; the checkpoints are the hub's (``nano``: those that come with this package).
        model: One checkpoint (folder, file or hub id), a mapping from task to checkpoint, or a folder that holds one
            checkpoint for each task. The name of a size means the size, unless there is something of that name.

    Returns:
        Task -> checkpoint, in the order of :data:`sapiens2.types.TASKS`.

    Raises:
        ConfigurationError: No or unknown tasks; both ``size`` and ``model`` or neither; an empty ``model``; a size that
            is not published.
        CheckpointError: ``model`` has no checkpoint for a task, or two for one, or is a checkpoint of other models.
    """
    if (size is None) == (model is None):
        raise ConfigurationError(
            "give either size='0.4b' (published weights) or model='folder' (weights of your own); "
            + ("both were given" if model is not None else "neither was given")
        )
    if size is not None and not isinstance(size, str):
        raise ConfigurationError(f"size={size!r} is no text; choose one of {', '.join(size_names())}")
    wanted = _checked_tasks(tasks)
    if isinstance(model, str) and model.lower() in size_names() and not Path(model).exists():
        size = model.lower()
    if size is not None:
        return _published(wanted, size)
    assert model is not None
    found = _own(wanted, model)
    for source in found.values():
        if (Path(source) / "config.json").is_file():
            _read_config(Path(source) / "config.json")
    return found


def packaged_checkpoint(size: str, task: Task) -> Path | None:
    """The checkpoint of a task that comes with this package, if there is one."""
    folder = Path(str(files("sapiens2.assets"))) / "checkpoints" / f"{size.lower()}-{task}"
    return folder if (folder / "config.json").is_file() else None


def _checked_tasks(tasks: Tasks) -> tuple[Task, ...] | None:
    """The tasks in their usual order, each once; None for all."""
    if tasks == "all":
        return None
    if not isinstance(tasks, str | Iterable):
        raise ConfigurationError(f"task={tasks!r} is not known; choose some of {', '.join(TASKS)}, or 'all'")
    names = [tasks] if isinstance(tasks, str) else list(tasks)
    if not names:
        raise ConfigurationError(f"no task was given; name at least one of {', '.join(TASKS)}")
    given = {_checked_task(name) for name in names}
    return tuple(task for task in TASKS if task in given)


def _checked_task(name: str) -> Task:
    if name not in TASKS:
        raise ConfigurationError(f"task={name!r} is not known; choose one of {', '.join(TASKS)}")
    return name


def _published(wanted: tuple[Task, ...] | None, size: str) -> Sources:
    if wanted is not None:
        return {task: _published_source(task, size) for task in wanted}
    found: Sources = {}
    reasons = []
    for task in TASKS:
        try:
            found[task] = _published_source(task, size)
        except ConfigurationError as error:
            reasons.append(error)
    if not found:
        raise reasons[0]
    return found


def _published_source(task: Task, size: str) -> str:
    packaged = packaged_checkpoint(size, task)
    return published_id(task, size) if packaged is None else str(packaged)


def _own(wanted: tuple[Task, ...] | None, model: PathLike | Mapping[Task, PathLike]) -> Sources:
    if isinstance(model, Mapping):
        return _select(wanted, {_checked_task(task): _named(path) for task, path in model.items()}, "model")
    source = _named(model)
    if Path(source).is_dir() and not _is_checkpoint(Path(source)):
        return _select(wanted, _checkpoints_in(Path(source)), source)
    return _single(wanted, source)


def _named(path: PathLike) -> str:
    """The path as text. An empty one would be the current folder, which nobody named."""
    source = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(source, str):
        raise ConfigurationError(
            f"model is {path!r}; name a folder, a .safetensors file or a hub id, or give a mapping from task to these"
        )
    if not source.strip():
        raise ConfigurationError("model is empty; name a folder, a .safetensors file or a hub id")
    return source


def _single(wanted: tuple[Task, ...] | None, source: str) -> Sources:
    if wanted is not None and len(wanted) > 1:
        raise CheckpointError(
            f"{source} is one checkpoint, and the tasks are {', '.join(wanted)}; give a folder that holds one "
            "checkpoint for each task, or a mapping from task to checkpoint"
        )
    if wanted is not None:
        return {wanted[0]: source}
    if not Path(source).exists():
        raise ConfigurationError(
            f"model {source!r} was not found on this machine. Check the path; or, if it is an id on the hub, name the "
            "task too (task='pose', or --task pose), since what it holds is not known before it is downloaded"
        )
    task = _task_of(Path(source))
    if task is None:
        raise CheckpointError(f"{source} is a bare backbone, which has no task; give a task checkpoint")
    return {task: source}


def _select(wanted: tuple[Task, ...] | None, found: Sources, place: str) -> Sources:
    tasks = wanted if wanted is not None else tuple(task for task in TASKS if task in found)
    missing = [task for task in tasks if task not in found]
    if missing or not tasks:
        held = "; ".join(f"{task}: {path}" for task, path in found.items()) or "no task checkpoint"
        raise CheckpointError(f"{place} holds no checkpoint for {', '.join(missing) or 'any task'}; found {held}")
    return {task: found[task] for task in tasks}


def _is_checkpoint(folder: Path) -> bool:
    return (
        (folder / "config.json").is_file()
        or any(folder.glob("*.safetensors.index.json"))
        or len(list(folder.glob("*.safetensors"))) == 1
    )


def _checkpoints_in(folder: Path) -> Sources:
    """The task checkpoints in a folder: sub-folders and files, told apart by what they hold and not by their names."""
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and _is_checkpoint(path))
    found: Sources = {}
    for path in [*inner, *sorted(folder.glob("*.safetensors"))]:
        task = _task_of(path)
        if task is None:
            continue
        if task in found:
            raise CheckpointError(
                f"{folder} holds two {task} checkpoints, {Path(found[task]).name} and {path.name}; "
                "give a mapping from task to checkpoint"
            )
        found[task] = str(path)
    return found


def _task_of(path: Path) -> Task | None:
    """The task of a checkpoint, told from its configuration or, in the original layout, from its weights."""
    if (path / "config.json").is_file():
        return _task_of_config(path / "config.json")
    shapes = {name: shape for file in weight_files(path) for name, shape in read_shapes(file).items()}
    return infer_config(shapes, source=str(path))[1]


def _task_of_config(path: Path) -> Task | None:
    architectures = _read_config(path).get("architectures") or []
    tasks = {model.__name__: task for task, model in TASK_MODELS.items()}
    return next((tasks[name] for name in architectures if name in tasks), None)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        model_type = config.get("model_type", Sapiens2Config.model_type)
    except (ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is no configuration: {error}") from error
    if model_type != Sapiens2Config.model_type:
        raise CheckpointError(
            f"{path.parent} is no Sapiens2 checkpoint: its config.json has model_type {model_type!r}, and "
            f"{Sapiens2Config.model_type!r} is expected"
        )
    return config
