"""Runs the code of a Markdown page as it is written: ``python doc_pages.py PAGE``, in the folder to work in.

Python blocks share one namespace, from the top of the page to its end. In bash blocks every line that begins with
``sapiens2`` goes to the command line's ``main``; others (``pip``, ``make``) are left out.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Code of a page: its language, its text, and the number of the line before it."""

    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(match[1], match[2], text.count("\n", 0, match.start()) + 1) for match in FENCE.finditer(text)]


def run_page(page: Path) -> None:
    """Raises what the page's code raises; its tracebacks have the page's line numbers."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
        elif block.language == "bash":
            for number, line in enumerate(block.code.splitlines(), start=block.line + 1):
                if line.startswith("sapiens2 "):
                    _run_command(line, f"{page.name}:{number}")


def _run_command(line: str, place: str) -> None:
    from sapiens2.cli.main import main

    words = shlex.split(line, comments=True)[1:]
    with contextlib.ExitStack() as stack:
        if ">" in words:
            words, (target,) = words[: words.index(">")], words[words.index(">") + 1 :]
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(Path(target).open("w"))))
        code = main(words)
    assert code == 0, f"{place}: {line!r} ended with exit code {code}"


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
