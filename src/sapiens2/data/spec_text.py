"""Descriptions of data as text: YAML files, and ``kind:key=value,...`` for the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sapiens2.data.source_kinds import KINDS
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.io.yaml_text import parse_yaml
from sapiens2.types import PathLike

__all__ = ["is_inline", "read_sample_spec"]


def read_sample_spec(source: PathLike) -> dict[str, Any]:
    """Read a description that is a ``.yaml`` file or a text ``kind:key=value,...``.

    Args:
        source: The file or the text; values of the text are read as YAML reads them.

    Returns:
        The mapping, not yet checked.

    Raises:
        ConfigurationError: It is no mapping, no YAML, or has a key twice.
        InputError: There is no such file.
    """
    if is_inline(source):
        kind, _, rest = str(source).partition(":")
        pairs = [part.partition("=") for part in re.split(r",(?=\w+=)", rest) if part]
        if bad := [key for key, sign, _ in pairs if not sign]:
            raise ConfigurationError(f"data {source!r} has {bad[0]!r}; expected kind:key=value,key=value")
        keys = [key for key, _, _ in pairs]
        if repeated := [key for key in keys if keys.count(key) > 1]:
            raise ConfigurationError(f"data {source!r} has the key {repeated[0]!r} twice; leave one of them out")
        return {"kind": kind, **{key: _parsed(value, f"data {source!r}: {key}") for key, _, value in pairs}}
    path = Path(source)
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    document = _parsed(text, str(path))
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path} describes no data; expected a mapping with kind: {', '.join(KINDS)}")
    return document


def is_inline(spec: PathLike) -> bool:
    """Whether a text describes data; a word before a colon that is no path is meant as a kind."""
    return isinstance(spec, str) and re.match(r"[a-z]+:\w+=", spec) is not None and not Path(spec).exists()


def _parsed(text: str, place: str) -> Any:
    try:
        return parse_yaml(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error}") from error
