"""What a description of data can say: the kinds of data, the keys of each, and how their values are read."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sapiens2.data.datasets import SampleSource
from sapiens2.data.loaders import (
    AlbedoFolder,
    ClassMapFolder,
    CocoKeypoints,
    DepthFolder,
    GeneratedFolder,
    HubRows,
    MatteFolder,
    NormalFolder,
    SyntheticPeople,
)
from sapiens2.errors import MissingDependencyError
from sapiens2.types import TASKS, Task

__all__ = ["COMMON_KEYS", "KINDS", "SourceKind", "SpecKey"]


@dataclass(frozen=True)
class SpecKey:
    """A key of a description.

    Attributes:
        expected: What a value is, in words.
        read: Makes the argument from what YAML gives; raises ValueError or TypeError when it cannot.
        argument: The argument's name where it is not the key's.
        required: Whether the key has to be there.
        is_path: Whether the value, or each text among possible values, is a path.
    """

    expected: str
    read: Callable[[Any], Any]
    argument: str | None = None
    required: bool = False
    is_path: bool = False


@dataclass(frozen=True)
class SourceKind:
    """A kind of data.

    Attributes:
        make: Gives the samples for the arguments.
        keys: The keys that describe them.
        tasks: Tasks whose truth they have.
    """

    make: Callable[..., SampleSource]
    keys: Mapping[str, SpecKey]
    tasks: tuple[Task, ...] = field(default=TASKS)


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _positive_whole(value: Any) -> int:
    if _whole_number(value) == 0:
        raise ValueError
    return int(value)


def _positive_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise TypeError
    return tuple(_text(name) for name in value)


def _names_or_file(value: Any) -> Any:
    return _names(value) if isinstance(value, list | tuple) else _text(value)


def _pair(value: Any, separator: str) -> tuple[int, int]:
    if isinstance(value, str):
        match = re.fullmatch(rf"(\d+){separator}(\d+)", value.strip())
        value = [int(text) for text in match.groups()] if match else []
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise TypeError
    return _whole_number(value[0]), _whole_number(value[1])


def _size(value: Any) -> tuple[int, int]:
    return _pair(value, "x")


def _people(value: Any) -> tuple[int, int]:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return (_whole_number(value), value) if isinstance(value, int) else _pair(value, "-")


def _range(value: Any) -> tuple[int, int]:
    start, stop = _pair(value, "-")
    if start >= stop:
        raise ValueError
    return start, stop


def _signs(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) != 3 or any(sign not in (1, -1) for sign in value):
        raise TypeError
    return tuple(int(sign) for sign in value)


def _columns(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not value:
        raise TypeError
    return {_text(key): _text(column) for key, column in value.items()}


def _path(*, required: bool = False) -> SpecKey:
    return SpecKey("a path", _text, required=required, is_path=True)


def _hub_rows(dataset: str, columns: Mapping[str, str], split: str, name: str | None = None, **options: Any) -> HubRows:
    try:
        datasets = importlib.import_module("datasets")
    except ModuleNotFoundError as error:  # no extra brings it: nothing else here needs it
        raise MissingDependencyError(
            "the library datasets is not installed, and data of kind hub need it: pip install datasets"
        ) from error
    return HubRows(datasets.load_dataset(dataset, name, split=split), columns, **options)


_STRICT = {"strict": SpecKey("true or false", _flag)}
_IMAGES = {"images": _path(required=True)}
_MASKS = {"masks": _path()}
_UNIT = {"unit_m": SpecKey("metres per unit, above zero and finite", _positive_number)}

COMMON_KEYS: dict[str, SpecKey] = {
    "subset": SpecKey("[start, stop], counted from 0, stop left out", _range),
    "limit": SpecKey("a whole number of samples, at least 1", _positive_whole),
}
"""Keys that every kind of data takes."""

KINDS: dict[str, SourceKind] = {
    "synthetic": SourceKind(
        SyntheticPeople,
        {
            "count": SpecKey("a whole number of pictures", _whole_number, required=True),
            "size": SpecKey("HEIGHTxWIDTH such as 1024x768, or [height, width]", _size, "size_hw"),
            "people": SpecKey("a number or a range such as 1-3", _people),
            "seed": SpecKey("a whole number from 0", _whole_number),
            "framing": SpecKey("the name of a framing", _text),
        },
    ),
    "generated": SourceKind(
        GeneratedFolder,
        {"root": _path(required=True), "truths": SpecKey("a list of kinds of truth", _names), **_STRICT},
    ),
    "coco": SourceKind(
        CocoKeypoints,
        {
            "images": _path(),
            "annotations": _path(required=True),
            "per_person": SpecKey("true or false", _flag),
            **_STRICT,
        },
        ("pose",),
    ),
    "classes": SourceKind(
        ClassMapFolder,
        {
            **_IMAGES,
            "labels": _path(required=True),
            "classes": SpecKey("a list of names, or a file of them", _names_or_file, is_path=True),
            **_STRICT,
        },
        ("seg",),
    ),
    "normals": SourceKind(
        NormalFolder,
        {
            **_IMAGES,
            "normals": _path(required=True),
            **_MASKS,
            "signs": SpecKey("three signs such as [1, -1, -1]", _signs),
            "parts": _path(),
            "excluded_parts": SpecKey("a list of names", _names),
            **_STRICT,
        },
        ("normal",),
    ),
    "depth": SourceKind(
        DepthFolder,
        {**_IMAGES, "depth": _path(required=True), "intrinsics": _path(required=True), **_MASKS, **_UNIT, **_STRICT},
        ("pointmap",),
    ),
    "mattes": SourceKind(
        MatteFolder,
        {
            **_IMAGES,
            "alpha": _path(),
            "foreground": _path(),
            "trimap": _path(),
            "premultiplied": SpecKey("true or false", _flag),
            **_STRICT,
        },
        ("matting",),
    ),
    "albedo": SourceKind(AlbedoFolder, {**_IMAGES, "albedo": _path(required=True), **_MASKS, **_STRICT}, ("albedo",)),
    "hub": SourceKind(
        _hub_rows,
        {
            "dataset": SpecKey("a dataset on the hub, or a folder that `datasets` reads", _text, required=True),
            "name": SpecKey("the name of a configuration of the dataset", _text),
            "split": SpecKey("a split such as train or test[:100]", _text, required=True),
            "columns": SpecKey("fields and their columns, {image: ..., ...}", _columns, required=True),
            "class_names": SpecKey("a list of names", _names),
            **_UNIT,
        },
    ),
}
"""Kind -> how it is described and made."""
