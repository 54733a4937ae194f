"""What commands share: exit codes, messages, and quiet libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

__all__ = ["ExitCode", "UsageError", "print_json_line", "print_table", "quiet_libraries", "say"]


class ExitCode(IntEnum):
    """What the program tells the shell."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INTERRUPTED = 130


class UsageError(Exception):
    """The command cannot be carried out as it was given: exit code 2."""


def say(message: str) -> None:
    """Write a line for people to stderr; a progress bar stays in one piece."""
    from tqdm import tqdm

    tqdm.write(message, file=sys.stderr)


def print_json_line(document: Any) -> None:
    """Write one line of strict JSON to stdout, in ASCII, since nobody knows the other side's encoding."""
    print(json.dumps(document, allow_nan=False), flush=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write columns to stdout; those whose header ends in a blank are aligned to the right."""
    table = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column].strip()) for row in table) for column in range(len(header))]
    for row in table:
        cells = [
            cell.strip().rjust(width) if name.endswith(" ") else cell.ljust(width)
            for cell, width, name in zip(row, widths, header, strict=True)
        ]
        print("  ".join(cells).rstrip())


def quiet_libraries() -> None:
    """Keep transformers and the hub from writing progress bars and reports of their own."""
    from huggingface_hub.utils import disable_progress_bars
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if not sys.stderr.isatty():
        disable_progress_bars()
