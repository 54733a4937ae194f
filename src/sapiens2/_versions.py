"""Versions of what made a file, for reports."""

from __future__ import annotations

import importlib.metadata
import platform

from sapiens2 import __version__

__all__ = ["package_versions"]


def package_versions(*packages: str) -> dict[str, str]:
    """Versions of this package, of Python, and of those of ``packages`` that are installed."""
    found = {"sapiens2": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
