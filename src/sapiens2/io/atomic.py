"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sapiens2.errors import InputError
from sapiens2.types import PathLike

__all__ = ["atomic_path", "write_bytes"]


@contextmanager
def atomic_path(path: PathLike) -> Iterator[Path]:
    """Lend a temporary path beside ``path``, which becomes ``path`` when the block ends without an error.

    A reader sees the old file or the new one, never a part. After an error nothing is left and an older file is as it
    was. The temporary name keeps the suffix, since some writers choose the format by it.

    Args:
        path: The file to make or replace. Its folder must exist.

    Yields:
        The path to write to. The block must create the file.

    Raises:
        InputError: The folder does not exist, or ``path`` is a folder.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the path of a file")
    # Not built on the target's name, which may already be as long as the file system allows.
    temporary = target.parent / f".{secrets.token_hex(8)}{target.suffix}"
    try:
        yield temporary
        os.replace(temporary, target)  # noqa: PTH105 - the function that promises to be atomic
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: PathLike, content: bytes) -> Path:
    """Write ``content`` to a file at once.

    Returns:
        The path.

    Raises:
        InputError: As :func:`atomic_path`.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return Path(path)
