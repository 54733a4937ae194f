"""Types of configuration fields, checked against their annotations."""

from __future__ import annotations

import inspect
import types
import typing
from functools import cache
from typing import Any

from sapiens2.errors import ConfigurationError

__all__ = ["check_field_types"]


@cache
def _hints(owner: type) -> dict[str, Any]:
    hints = inspect.get_annotations(owner, eval_str=True)
    return {name: hint for name, hint in hints.items() if not str(hint).startswith("typing.ClassVar")}


def check_field_types(config: Any, owner: type) -> None:
    """Check the fields that a class declares; whole numbers become floats where only those fit.

    Args:
        config: The configuration.
        owner: The class of ``config`` whose annotated fields are checked.

    Raises:
        ConfigurationError: A field holds another type; the message names it.
    """
    for name, hint in _hints(owner).items():
        value = getattr(config, name)
        if _fits(value, hint):
            continue
        if isinstance(value, int) and not isinstance(value, bool) and _fits(float(value), hint):
            setattr(config, name, float(value))
            continue
        raise ConfigurationError(f"{name}={value!r} must be {_describe(hint)}, got {type(value).__name__}")


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is list:
        return isinstance(value, list) and all(_fits(item, typing.get_args(hint)[0]) for item in value)
    if origin is tuple:
        inner = typing.get_args(hint)
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_fits, value, inner))
    if hint is None or hint is type(None):
        return value is None
    if origin is dict:
        return isinstance(value, dict)
    return isinstance(value, hint) and not (isinstance(value, bool) and hint in (int, float))


def _describe(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "True or False", str: "a string", type(None): "None"}
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(_describe(option) for option in typing.get_args(hint)))
    if origin in (list, tuple):
        return f"a {origin.__name__} of {_describe(typing.get_args(hint)[0]).removeprefix('a ')}s"
    return names.get(hint, getattr(hint, "__name__", str(hint)))
