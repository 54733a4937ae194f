"""Fail when a file is too large for the repository: ``check_large_files.py FILE ...``.

Weights that come with the package have a place of their own and a larger limit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

LIMIT_BYTES = 512 * 1024
WEIGHTS = "src/sapiens2/assets/checkpoints/"
WEIGHTS_LIMIT_BYTES = 32 * 1024 * 1024


def too_large(paths: Sequence[str], root: Path = Path()) -> list[str]:
    """One line for each file above its limit; paths are relative to ``root``, files that are gone do not count."""
    problems = []
    for path in paths:
        limit = WEIGHTS_LIMIT_BYTES if path.startswith(WEIGHTS) else LIMIT_BYTES
        file = root / path
        size = file.stat().st_size if file.is_file() else 0
        if size > limit:
            problems.append(f"{path}: {size:,} bytes, and {limit:,} is the most")
    return problems


def main() -> int:
    problems = too_large(sys.argv[1:])
    print("\n".join(problems) or "file sizes: fine")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
