"""Pictures that come with the package, for demos and tests."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["sample_photo"]


def sample_photo() -> Path:
    """A 512x512 portrait of astronaut Eileen Collins (NASA, public domain): one person, from the waist up."""
    return Path(str(files("sapiens2.assets") / "samples" / "astronaut.jpg"))
