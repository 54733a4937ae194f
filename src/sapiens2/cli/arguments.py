"""Arguments that several commands take, checked before anything heavy is loaded."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sapiens2.cli.console import UsageError
from sapiens2.types import TASKS

__all__ = ["add_compute_options", "add_task_option", "count", "given_name", "positive", "require_folder", "seed"]

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


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def count(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("expected a whole number from 0")
    return int(text)


def add_task_option(parser: argparse._ActionsContainer, explanation: str, *, required: bool = False) -> None:
    """Add ``--task``, repeatable, as ``tasks``."""
    parser.add_argument(
        "-t",
        "--task",
        dest="tasks",
        action="append",
        choices=(*TASKS, "all"),
        metavar="TASK",
        required=required,
        help=explanation,
    )


def add_compute_options(parser: argparse._ActionsContainer) -> None:
    """Add ``--device``, ``--dtype`` and ``--batch-size``, as :func:`sapiens2.load` and predictors take them."""
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, cuda:1, mps")
    parser.add_argument(
        "--dtype", default="auto", help="auto (default: bfloat16 on CUDA, else float32), fp32, bf16, fp16"
    )
    parser.add_argument("--batch-size", type=positive, default=1, metavar="N", help="inputs in one pass (default: 1)")


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
