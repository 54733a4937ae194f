"""Arguments that several commands take, checked before anything heavy is loaded."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sapiens2.cli.console import UsageError

__all__ = ["given_name", "require_folder", "seed"]

MAX_SEED = 2**63 - 1


def given_name(text: str) -> str:
    """A path or an id that is not empty: to most programs an empty path is the current folder, which nobody typed."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; write . for the current folder")
    return text


def seed(text: str) -> int:
    """A seed that random generators take."""
    if not text.isdecimal() or int(text) > MAX_SEED:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to {MAX_SEED}, got {text}")
    return int(text)


def require_folder(path: str | Path) -> None:
    """Refuse a folder that cannot be made or written to, since a run that finds out at its end is lost.

    Raises:
        UsageError: ``path``, or what is above it, is no folder, or is closed to us.
    """
    folder = Path(path)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise UsageError(f"{path} cannot be a folder, since {folder} is a file; name another folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written to: no permission in {folder}")
