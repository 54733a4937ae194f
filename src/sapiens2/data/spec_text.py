"""Descriptions of data as text: YAML files, and ``kind:key=value,...`` for the command line."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from sapiens2.data.source_kinds import KINDS
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.types import PathLike

__all__ = ["is_inline", "read_sample_spec"]


_MERGE = "tag:yaml.org,2002:merge"


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key that occurs twice, and reads 1e-3 as a number, which YAML 1.1 takes for text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys differ: the last value would hide the others."""
        keys: list[Any] = []
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:  # "<<", whose keys may be given anew
                continue
            key = self.construct_object(key_node, deep=True)
            if key in keys:
                message = f"the key {key!r} occurs twice in one mapping"
                raise yaml.constructor.ConstructorError(problem=message, problem_mark=key_node.start_mark)
            keys.append(key)
        return super().construct_mapping(node, deep=deep)


_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(?:\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


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
        return {"kind": kind, **{key: _yaml(value, f"data {source!r}: {key}") for key, _, value in pairs}}
    path = Path(source)
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    document = _yaml(text, str(path))
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path} describes no data; expected a mapping with kind: {', '.join(KINDS)}")
    return document


def is_inline(spec: PathLike) -> bool:
    """Whether a text describes data; a word before a colon that is no path is meant as a kind."""
    return isinstance(spec, str) and re.match(r"[a-z]+:\w+=", spec) is not None and not Path(spec).exists()


def _yaml(text: str, place: str) -> Any:
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except RecursionError as error:
        raise ConfigurationError(
            f"{place} is not usable YAML: lists or mappings in it are nested too deeply"
        ) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2020-99-99
        raise ConfigurationError(f"{place} is not usable YAML: {error}") from error
