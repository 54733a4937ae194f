"""Samples from a description: a path, a mapping such as recipes hold, or a short text for the command line."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from sapiens2.data.datasets import SampleSource
from sapiens2.data.loaders.coco import CocoKeypoints
from sapiens2.data.loaders.generated import (
    FOLDER_NAMES,
    GeneratedFolder,
    coco_file_alone,
    coco_files_in,
    find_folder,
    pictures_of,
)
from sapiens2.data.sample import Sample
from sapiens2.data.source_kinds import COMMON_KEYS, KINDS, SpecKey
from sapiens2.data.spec_text import is_inline, read_sample_spec
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.types import TASKS, PathLike, Task

__all__ = ["SampleRange", "SampleSpec", "open_samples", "read_sample_spec"]

SampleSpec = PathLike | Mapping[str, Any]
"""A path, ``kind:key=value,...``, or a mapping with ``kind``."""

_TRUTH_OF_TASK: dict[Task, str] = {
    "pose": "keypoints",
    "seg": "parts",
    "normal": "normals",
    "pointmap": "depth",
    "matting": "alpha",
    "albedo": "albedo",
}
"""Kind of truth in folders, and field of rows, that a task cannot do without."""

_WITH_MASKS = ("normal", "pointmap", "albedo")


class SampleRange(Dataset[Sample]):
    """Consecutive samples of others.

    Args:
        samples: The others.
        start: Index of the first.
        stop: Index after the last.

    Attributes:
        keypoint_names: Those of the others, None where they have none; so are ``class_names``.

    Raises:
        ConfigurationError: There are no such samples.
    """

    def __init__(self, samples: SampleSource, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= len(samples):
            raise ConfigurationError(f"samples {start} to {stop} were asked for, and there are {len(samples)}")
        self.samples, self.start, self.stop = samples, start, stop
        self.keypoint_names: tuple[str, ...] | None = getattr(samples, "keypoint_names", None)
        self.class_names: tuple[str, ...] | None = getattr(samples, "class_names", None)

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, index: int) -> Sample:
        """Read a sample.

        Raises:
            IndexError: There is no such sample.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} samples")
        return self.samples[self.start + index % len(self)]


def open_samples(
    spec: SampleSpec,
    *,
    task: Task | Sequence[Task] | None = None,
    base: PathLike | None = None,
    per_person: bool = True,
) -> SampleSource:
    """Open the samples that a description means.

    Args:
        spec: One of:

            - a folder as ``sapiens2 synth`` writes it, or with any of these kinds of truth beside the pictures;
            - a COCO keypoint file, or a folder with one;
            - a ``.yaml`` file with a mapping;
            - a mapping: ``kind``, one of synthetic, generated, coco, classes, normals, depth, mattes, albedo and hub,
              and the arguments of the loader; with ``subset: [start, stop]`` and ``limit: number`` for fewer samples;
            - the same as text: ``synthetic:count=500,seed=9,size=256x192``.
        task: The task, or tasks, that truth is needed for. What others need is not read where that saves time.
        base: What relative paths are relative to; that of a ``.yaml`` file is its own folder.
        per_person: Whether samples of COCO files are single people, where the description does not say.

    Returns:
        The samples; those with keypoints have ``keypoint_names``, those with parts ``class_names``.

    Raises:
        ConfigurationError: The description has an unknown kind or key, lacks one, or a value cannot be used.
        InputError: There are no such files, or something is wrong with them.
    """
    _check_types(spec, base)
    tasks = _checked_tasks(task)
    if isinstance(spec, Mapping):
        return _from_mapping(spec, tasks, Path(base or "."), per_person)
    if is_inline(spec):
        return _from_mapping(read_sample_spec(spec), tasks, Path(base or "."), per_person)
    path = Path(base or ".") / Path(spec).expanduser()
    if path.suffix.lower() in (".yaml", ".yml"):
        return _from_mapping(read_sample_spec(path), tasks, path.parent, per_person)
    return _from_path(path, tasks, per_person)


def _check_types(spec: object, base: object) -> None:
    if not isinstance(spec, str | os.PathLike | Mapping):
        raise ConfigurationError(
            f"data is {spec!r}; expected a path, a mapping with kind, or a text such as synthetic:count=100"
        )
    if base is not None and not isinstance(base, str | os.PathLike):
        raise ConfigurationError(f"base is {base!r}; expected a path")


def _checked_tasks(task: Task | Sequence[Task] | None) -> tuple[Task, ...]:
    if not isinstance(task, str | Iterable | None):
        raise ConfigurationError(f"there is no task {task!r}; expected one of {', '.join(TASKS)}")
    tasks: tuple[Task, ...] = () if task is None else (task,) if isinstance(task, str) else tuple(task)
    for name in tasks:
        if name not in TASKS:
            raise ConfigurationError(f"there is no task {name!r}; expected one of {', '.join(TASKS)}")
    return tasks


def _from_path(path: Path, tasks: tuple[Task, ...], per_person: bool) -> SampleSource:
    if path.is_file():
        if path.suffix.lower() != ".json":
            raise InputError(f"{path} is no COCO file: expected a .json, a .yaml that describes data, or a folder.")
        _require_tasks("a COCO file", ("pose",), tasks)
        return CocoKeypoints(_pictures_beside(path), path, per_person=per_person)
    if not path.is_dir():
        raise InputError(f"There is no folder or file {path}, and it is no description such as synthetic:count=100.")
    if (alone := coco_file_alone(path)) is not None:
        return _from_path(alone, tasks, per_person)
    if find_folder(path, "images") is None:
        files = coco_files_in(path)
        found = f"{len(files)} COCO files; name the one that is meant" if files else "nothing that is recognised"
        raise InputError(
            f"{path} has {found}. Expected pictures in one of {', '.join(FOLDER_NAMES['images'])}, and truth beside "
            "them; `sapiens2 data check` says more."
        )
    return GeneratedFolder(path, _truths(path, tasks))


def _pictures_beside(file: Path) -> Path:
    root = file.parent.parent if file.parent.name == "annotations" else file.parent
    return pictures_of(root, file)


def _truths(root: Path, tasks: tuple[Task, ...]) -> tuple[str, ...] | None:
    """Kinds of truth to read for some tasks; None for all."""
    if not tasks:
        return None
    wanted = [_TRUTH_OF_TASK[task] for task in tasks]
    if "alpha" in wanted and find_folder(root, "alpha") is None and find_folder(root, "trimap") is not None:
        wanted[wanted.index("alpha")] = "trimap"
    if any(task in _WITH_MASKS for task in tasks) and find_folder(root, "masks") is not None:
        wanted.append("masks")
    return tuple(dict.fromkeys(wanted))


def _from_mapping(spec: Mapping[str, Any], tasks: tuple[Task, ...], base: Path, per_person: bool) -> SampleSource:
    kind = spec.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigurationError(f"data has kind {kind!r}{_nearest(str(kind), KINDS)}; expected {', '.join(KINDS)}")
    chosen = KINDS[kind]
    keys = {**chosen.keys, **COMMON_KEYS}
    if unknown := [key for key in spec if key != "kind" and key not in keys]:
        raise ConfigurationError(
            f"data of kind {kind} has no key {unknown[0]!r}{_nearest(str(unknown[0]), keys)}; expected "
            f"{', '.join(keys)}"
        )
    if missing := [key for key, known in keys.items() if known.required and spec.get(key) is None]:
        raise ConfigurationError(f"data of kind {kind} lacks {missing[0]}; expected {keys[missing[0]].expected}")
    # A key without a value, or null, is one that is not there.
    values = {key: _value(key, keys[key], spec[key], base) for key in keys if spec.get(key) is not None}
    subset, limit = values.pop("subset", None), values.pop("limit", None)
    tasks_there = _tasks_of_columns(values["columns"]) if kind == "hub" else chosen.tasks
    _require_tasks(f"data of kind {kind}", tasks_there, tasks)
    arguments = {keys[key].argument or key: value for key, value in values.items()}
    if kind == "coco":
        arguments.setdefault("per_person", per_person)
        arguments.setdefault("images", _pictures_beside(arguments["annotations"]))
    if kind == "generated":
        needed = _truths(arguments["root"], tasks)
        chosen_truths = arguments.setdefault("truths", needed)
        lacking = set(needed or ()) - set(chosen_truths or ()) - {"masks"}
        if chosen_truths is not None and lacking:
            raise ConfigurationError(
                f"data: truths is {list(chosen_truths)}, and {', '.join(tasks)} needs {', '.join(sorted(lacking))}"
            )
    return _chosen_part(chosen.make(**arguments), subset, limit)


def _value(key: str, known: SpecKey, value: Any, base: Path) -> Any:
    try:
        read = known.read(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"data: {key} is {value!r}; expected {known.expected}") from error
    if not known.is_path or isinstance(read, tuple):
        return read
    path = base / Path(read).expanduser()
    if not path.exists():
        raise InputError(f"data: {key} is {value!r}, and there is no {path}.")
    return path


def _chosen_part(samples: SampleSource, subset: tuple[int, int] | None, limit: int | None) -> SampleSource:
    if subset is None and limit is None:
        return samples
    start, stop = subset or (0, len(samples))
    if stop > len(samples):
        raise ConfigurationError(f"data: subset is [{start}, {stop}], and there are {len(samples)} samples")
    return SampleRange(samples, start, stop if limit is None else min(stop, start + limit))


def _tasks_of_columns(columns: Mapping[str, str]) -> tuple[Task, ...]:
    return tuple(task for task in TASKS if _TRUTH_OF_TASK[task] in columns)


def _require_tasks(what: str, there: tuple[Task, ...], wanted: tuple[Task, ...]) -> None:
    if missing := [task for task in wanted if task not in there]:
        raise ConfigurationError(
            f"{what} has no truth for {', '.join(missing)}; it has that of {', '.join(there) or 'no task'}"
        )


def _nearest(name: str, names: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
