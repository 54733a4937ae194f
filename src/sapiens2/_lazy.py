"""Public names of a package that load on first use (PEP 562)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, namespace: dict[str, Any], homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: Its name, for errors.
        namespace: Its ``globals()``; a name that was loaded stays there.
        homes: Module -> names that come from it.

    Returns:
        The two functions; the first raises AttributeError for other names.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home_of[name]), name)
        namespace[name] = value
        return value

    def listed() -> list[str]:
        return sorted({*namespace, *home_of})

    return load, listed
