"""YAML as people write it: a key that occurs twice is a fault, and 1e-3 is a number."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

from sapiens2.errors import ConfigurationError

__all__ = ["parse_yaml"]

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
                raise ConfigurationError(
                    f"line {key_node.start_mark.line + 1}: the key {key!r} occurs twice in one mapping"
                )
            keys.append(key)
        return super().construct_mapping(node, deep=deep)


_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d[\d_]*(?:\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse_yaml(text: str) -> Any:
    """Read a document of plain values.

    Args:
        text: The document; a single value is one, too.

    Raises:
        ConfigurationError: It is no YAML, is nested too deeply, or has a key twice; the message names the line.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except RecursionError as error:
        raise ConfigurationError("no usable YAML: lists or mappings in it are nested too deeply") from error
    except ConfigurationError:
        raise
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2020-99-99
        raise ConfigurationError(f"no usable YAML: {' '.join(str(error).split())}") from error
