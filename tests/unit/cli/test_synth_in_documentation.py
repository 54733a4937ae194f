from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMMAND = re.compile(r"^sapiens2 synth -o (\S+) (.*)$", re.MULTILINE)


def test_pages__one_after_another__fill_a_folder_with_one_request() -> None:
    """Who reads all pages in one place must not meet a folder that another page filled otherwise."""
    requests = defaultdict(set)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for folder, options in COMMAND.findall(page.read_text(encoding="utf-8")):
            requests[folder].add(options)
    assert len(requests) >= 3
    assert {folder: options for folder, options in requests.items() if len(options) > 1} == {}
