"""From plain YAML values to frozen dataclasses, with an error for everything that is not exactly right."""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sapiens2.errors import ConfigurationError

__all__ = ["key_of", "known_keys", "plain", "read_section"]

Section = TypeVar("Section")
_LIMITS = {"at_least": ">=", "at_most": "<=", "above": ">", "below": "<"}
_OTHER_NAMES = {
    "learning_rate": "lr",
    "wd": "weight_decay",
    "batch": "batch_size",
    "max_steps": "steps",
    "num_train_epochs": "epochs",
    "gradient_accumulation_steps": "accumulation",
    "max_grad_norm": "clip",
    "r": "rank",
    "lora_alpha": "alpha",
    "target_modules": "targets",
    "num_workers": "workers",
    "classes": "labels",
    "keypoints": "labels",
    "warmup": "warmup_steps",
}
"""What other programs call a key."""
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def key_of(item: Field[Any]) -> str:
    """What a recipe calls a field."""
    return str(item.metadata.get("key", item.name))


def read_section(section: type[Section], document: Any, path: str = "", *, root: type[Any] | None = None) -> Section:
    """Build a dataclass from a mapping.

    Args:
        section: The dataclass.
        document: What YAML gave.
        path: Where it stands, such as ``optimizer``; named in messages.
        root: The dataclass of the whole document, whose keys are suggested for unknown ones; this one when left out.

    Raises:
        ConfigurationError: A key is unknown or missing, or a value has the wrong type or is out of range. The message
            names the path, what was got and what was expected.
    """
    if not isinstance(document, Mapping):
        raise ConfigurationError(
            f"{path or 'the recipe'}: got {_shown(document)}; expected a mapping of {_keys(section)}"
        )
    items = {key_of(item): item for item in fields(section)}  # type: ignore[arg-type]
    for key in document:
        if key not in items:
            raise ConfigurationError(_unknown(str(key), path, section, root or section))
    hints = _hints(section)
    values: dict[str, Any] = {}
    for key, item in items.items():
        place = f"{path}.{key}" if path else key
        if key in document:
            values[item.name] = _read(hints[item.name], document[key], place, item.metadata, root or section)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ConfigurationError(f"{place} is missing; expected {_expected(hints[item.name], item.metadata)}")
    return section(**values)


def plain(value: Any) -> Any:
    """A dataclass as YAML can hold it, under the keys that :func:`read_section` reads."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key_of(item): plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def known_keys(section: type[Any], path: str = "") -> list[str]:
    """All key paths of a dataclass and the dataclasses in it."""
    found: list[str] = []
    hints = _hints(section)
    for item in fields(section):
        place = f"{path}.{key_of(item)}" if path else key_of(item)
        found.append(place)
        inner: Any = next((option for option in _options(hints[item.name]) if is_dataclass(option)), None)
        if inner is not None:
            found += known_keys(inner, place)
    return found


def _hints(section: type[Any]) -> dict[str, Any]:
    return get_type_hints(section)


def _keys(section: type[Any]) -> str:
    return ", ".join(key_of(item) for item in fields(section))


def _unknown(key: str, path: str, section: type[Any], root: type[Any]) -> str:
    place = f"{path}.{key}" if path else key
    guess = _nearest(key, path, section, root)
    hint = f" Did you mean {guess}?" if guess else ""
    return f"{place} is no key of a recipe.{hint} Expected {_keys(section)}"


def _nearest(key: str, path: str, section: type[Any], root: type[Any]) -> str:
    """The key path that was probably meant: one of this name elsewhere, a similar one here, a similar one elsewhere."""
    by_name = {known.rpartition(".")[2]: known for known in reversed(known_keys(root))}
    wanted = _OTHER_NAMES.get(key.lower(), key)
    if wanted in by_name:
        return by_name[wanted]
    if here := difflib.get_close_matches(key, [key_of(item) for item in fields(section)], n=1):
        return f"{path}.{here[0]}" if path else here[0]
    elsewhere = difflib.get_close_matches(key, list(by_name), n=1)
    return by_name[elsewhere[0]] if elsewhere else ""


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _read(hint: Any, value: Any, place: str, limits: Mapping[str, Any], root: type[Any]) -> Any:
    options = _options(hint)
    section: Any = next((option for option in options if is_dataclass(option)), None)
    if type(None) in options and (value is None or (section is not None and value is False)):
        return None
    if section is not None:
        return read_section(section, {} if value is True else value, place, root=root)
    for option in options:
        read = _read_one(option, value)
        if read is not _NOTHING:
            if broken := _broken_limit(read, limits):
                raise ConfigurationError(f"{place} is {_shown(value)}; expected {broken}")
            return read
    raise ConfigurationError(f"{place} is {_shown(value)}; expected {_expected(hint, limits)}")


_NOTHING = object()


def _read_one(option: Any, value: Any) -> Any:
    """The value as one type, or ``_NOTHING``."""
    origin = get_origin(option)
    if origin is Literal:
        return value if not isinstance(value, bool) and value in get_args(option) else _NOTHING
    if option is bool:
        return value if isinstance(value, bool) else _NOTHING
    if option is int:
        whole = isinstance(value, float) and value.is_integer()  # 1e4
        return int(value) if (isinstance(value, int) and not isinstance(value, bool)) or whole else _NOTHING
    if option is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _NOTHING
    if option is str:
        return value if isinstance(value, str) and value.strip() else _NOTHING
    if origin is tuple:
        return _read_tuple(get_args(option), value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(get_args(option)[1], value)
    return _NOTHING


def _read_tuple(kinds: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return _NOTHING
    many = kinds[-1] is Ellipsis
    if not many and len(value) != len(kinds):
        return _NOTHING
    each = [kinds[0]] * len(value) if many else list(kinds)
    read = [_read_one(kind, entry) for kind, entry in zip(each, value, strict=True)]
    return _NOTHING if any(entry is _NOTHING for entry in read) else tuple(read)


def _read_mapping(kind: Any, value: Any) -> Any:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return _NOTHING
    read = {key: entry if kind is Any else _read_one(kind, entry) for key, entry in value.items()}
    return _NOTHING if any(entry is _NOTHING for entry in read.values()) else read


def _broken_limit(value: Any, limits: Mapping[str, Any]) -> str | None:
    if isinstance(value, Mapping):
        return next((broken for entry in value.values() if (broken := _broken_limit(entry, limits))), None)
    if isinstance(value, tuple):
        return next((broken for entry in value if (broken := _broken_limit(entry, limits))), None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value):
        return "a finite number"
    tests = {
        "at_least": lambda limit: value >= limit,
        "at_most": lambda limit: value <= limit,
        "above": lambda limit: value > limit,
        "below": lambda limit: value < limit,
    }
    holds = all(test(limits[name]) for name, test in tests.items() if name in limits)
    return None if holds else f"a number {_range(limits)}"


def _range(limits: Mapping[str, Any]) -> str:
    return " and ".join(f"{sign} {limits[name]}" for name, sign in _LIMITS.items() if name in limits)


def _expected(hint: Any, limits: Mapping[str, Any]) -> str:
    options = [option for option in _options(hint) if option is not type(None)]
    words = ", or ".join(dict.fromkeys(_words(option) for option in options))
    bounds = f" {_range(limits)}" if any(option in (int, float) for option in options) and _range(limits) else ""
    return words + bounds + (", or null" if type(None) in _options(hint) else "")


def _words(option: Any) -> str:
    origin = get_origin(option)
    if is_dataclass(option):
        return f"a mapping of {_keys(option)}"  # type: ignore[arg-type]
    if origin is Literal:
        return " or ".join(map(str, get_args(option)))
    if origin is tuple:
        kinds = get_args(option)
        count = "" if kinds[-1] is Ellipsis else f"{len(kinds)} "
        return f"a list of {count}entries, each {_words(kinds[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping" if get_args(option)[1] is Any else f"a mapping to {_words(get_args(option)[1])}"
    return _NAMES.get(option, "a path")


def _shown(value: Any) -> str:
    kind = {bool: "", str: "the text ", type(None): ""}.get(type(value), "")
    text = {True: "true", False: "false", None: "null"}.get(value) if isinstance(value, bool | None) else None
    return text or f"{kind}{value!r:.80}"
