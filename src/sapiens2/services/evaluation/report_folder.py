"""Whether a folder may be given to the report of an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sapiens2.errors import InputError
from sapiens2.io import read_json
from sapiens2.types import PathLike

__all__ = ["PAGE_TITLE", "require_replaceable"]

PAGE_TITLE = "# Evaluation"
"""First line of the readable page, by which it is known."""

_NAMES = ("report.md", "report.json", "samples.jsonl", "worst")


def require_replaceable(folder: PathLike) -> None:
    """Refuse a folder in which a report would replace what no evaluation wrote.

    Args:
        folder: The folder; it need not exist. Other files in it are no matter.

    Raises:
        InputError: It holds such a file; the message names it.
    """
    root = Path(folder)
    if root.exists() and not root.is_dir():
        raise InputError(f"{root} is a file; name a folder for the report")
    there = [root / name for name in _NAMES if (root / name).exists()]
    if there and _is_report(root / "report.json"):
        there = [path for path in there if path.name == "report.md" and not _is_page(path)]
    if there:
        raise InputError(
            f"{', '.join(map(str, there))}: there already, and not of an earlier evaluation; name another folder for "
            "the report"
        )


def _is_report(path: Path) -> bool:
    try:
        document: Any = read_json(path)
    except (InputError, OSError):
        return False
    if not isinstance(document, dict) or not {"model", "data"} <= set(document):
        return False
    versions = document.get("versions")
    return isinstance(document.get("tasks"), dict) and isinstance(versions, dict) and "sapiens2" in versions


def _is_page(path: Path) -> bool:
    try:
        return path.read_bytes().startswith(f"{PAGE_TITLE}\n\nModel ".encode())
    except OSError:
        return False
