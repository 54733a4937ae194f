"""JSON files as the standard has them: UTF-8, and no NaN or Infinity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sapiens2.errors import InputError
from sapiens2.io.atomic import write_bytes
from sapiens2.types import PathLike

__all__ = ["read_json", "write_json"]


def write_json(path: PathLike, document: Any, *, indent: int | None = None) -> Path:
    """Write a document of dicts, lists, strings, numbers, booleans and None.

    Args:
        path: The file to make or replace.
        document: What to write.
        indent: Spaces per level; None writes one line.

    Returns:
        The path.

    Raises:
        InputError: The document holds NaN, an infinity or something that JSON has no form for; nothing is written.
    """
    separators = (",", ":") if indent is None else (",", ": ")
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    except (TypeError, ValueError) as error:
        raise InputError(f"cannot write {path} as JSON: {error}") from error
    return write_bytes(path, (text + "\n").encode())


def read_json(path: PathLike) -> Any:
    """Read a JSON file.

    Raises:
        InputError: The file is not valid JSON, or an object in it has a key twice; the message names the place.
    """
    try:  # some editors put a byte order mark in front, which says nothing in UTF-8
        return json.loads(Path(path).read_text(encoding="utf-8-sig"), object_pairs_hook=_unique)
    except RecursionError as error:
        raise InputError(f"{path} is not usable JSON: lists or objects in it are nested too deeply") from error
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: the decoder would keep the last value and drop the others unseen."""
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice in one object")
    return document
