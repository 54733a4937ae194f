"""The folder of a training: what is in it, and whether a training may begin or go on there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapiens2.errors import ConfigurationError
from sapiens2.io import read_json, write_json
from sapiens2.training.recipe import Recipe
from sapiens2.training.recipe_files import read_recipe, write_recipe
from sapiens2.training.strict_fields import plain
from sapiens2.training.trainer import last_checkpoint

__all__ = ["FirstLook", "RunFolder"]

_MAY_CHANGE = ("log", "data.workers", "data.eval", "training.device", "training.steps", "training.epochs", "overfit")
"""Keys of a recipe that may differ when a training is resumed."""


@dataclass(frozen=True)
class FirstLook:
    """What was found before the first step.

    Attributes:
        figures: Of the model as it began; None without evaluation data.
        overfit: ``first_loss``, ``last_loss`` and ``steps`` of the check of one batch; None without it.
    """

    figures: dict[str, Any] | None
    overfit: dict[str, Any] | None


@dataclass(frozen=True)
class RunFolder:
    """Paths in the folder of a training.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints to resume from."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """Folder of the final model."""
        return self.path / "model"

    @property
    def adapter(self) -> Path:
        """Folder of the small matrices alone, with LoRA."""
        return self.path / "adapter"

    def begin(self, recipe: Recipe, *, resume: bool) -> None:
        """Make the folder and write the recipe.

        Raises:
            ConfigurationError: It is not empty; or, when resuming, holds a training of another recipe.
        """
        written = self.path / "recipe.yaml"
        if resume and written.is_file():
            _check_same(read_recipe(written), recipe)
        elif not resume and self.path.is_dir() and any(self.path.iterdir()):
            raise ConfigurationError(f"{self.path} is not empty; give another folder, or go on in it with --resume")
        self.path.mkdir(parents=True, exist_ok=True)
        write_recipe(written, recipe)

    def last_checkpoint(self) -> Path | None:
        """The latest whole checkpoint."""
        return last_checkpoint(self.checkpoints)

    def first_look(self) -> FirstLook | None:
        """What an earlier sitting found before its first step."""
        if not self._first_look.is_file():
            return None
        document = read_json(self._first_look)
        return FirstLook(document["figures"], document["overfit"])

    def keep_first_look(self, found: FirstLook) -> None:
        """Keep it for later sittings."""
        write_json(self._first_look, {"figures": found.figures, "overfit": found.overfit})

    @property
    def _first_look(self) -> Path:
        return self.path / "before.json"


def _check_same(there: Recipe, now: Recipe) -> None:
    """Refuse to resume another training under the same name."""
    old, new = _flat(plain(there)), _flat(plain(now))
    changed = [
        f"{key}: {old.get(key)!r} became {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and not key.startswith(_MAY_CHANGE)
    ]
    if changed:
        raise ConfigurationError(
            f"the recipe is not the one that this training began with: {'; '.join(changed[:5])}. "
            "Begin anew in another folder, or give the old values"
        )


def _flat(document: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(document, Mapping):
        return {path: document}
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{path}.{key}" if path else str(key))
    return flat
