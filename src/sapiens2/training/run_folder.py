"""The folder of a training: what is in it, and whether a training may begin or go on there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapiens2.errors import CheckpointError, ConfigurationError
from sapiens2.io import read_json, write_json
from sapiens2.training.lengths import EarlierLength, lengths_note, require_length, with_change
from sapiens2.training.recipe import Recipe
from sapiens2.training.recipe_files import read_recipe, write_recipe
from sapiens2.training.resume_points import CheckpointNeeds, ResumePoints, step_of
from sapiens2.training.strict_fields import plain

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

    def opening(self, recipe: Recipe, *, resume: bool, needs: CheckpointNeeds) -> ResumePoints:
        """See whether a training may begin or go on here, and from what; nothing is written.

        Args:
            recipe: The recipe.
            resume: Whether to go on with what is there.
            needs: What a checkpoint has to hold.

        Raises:
            ConfigurationError: It is not empty; or, when resuming, holds no training, one of another recipe, or one
                that is over.
            CheckpointError: There are checkpoints, and none is whole.
        """
        if not (self.path.is_dir() and any(self.path.iterdir())):
            return ResumePoints(None, {})
        if not resume:
            raise ConfigurationError(f"{self.path} is not empty; give another folder, or go on in it with --resume")
        if not self._recipe.is_file():
            raise ConfigurationError(
                f"{self.path} is not empty and has no recipe.yaml, so no training can go on in it; give another folder"
            )
        if not self._was_begun():
            return ResumePoints(None, {})
        there = read_recipe(self._recipe)
        _check_same(there, recipe)
        points = ResumePoints.in_folder(self.checkpoints, needs)
        if points.whole is None:
            raise self._nothing_to_go_on_from(points)
        require_length(there, recipe, points.whole)
        return points

    def claim(self, recipe: Recipe, points: ResumePoints) -> None:
        """Make the folder and write the recipe; checkpoints that are damaged get out of the way."""
        self.path.mkdir(parents=True, exist_ok=True)
        for path in points.damaged:
            aside = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)  # later steps write anew what this one was to hold
        earlier: tuple[EarlierLength, ...] = ()
        if points.whole is not None:
            there = read_recipe(self._recipe)
            earlier = with_change(self.earlier_lengths(), there, recipe, step_of(points.whole))
        self._lengths.unlink(missing_ok=True)
        if earlier:
            write_json(self._lengths, [length.plain() for length in earlier])
        write_recipe(self._recipe, recipe, remark=lengths_note(earlier, recipe))

    def last_checkpoint(self, needs: CheckpointNeeds) -> Path | None:
        """The latest whole checkpoint."""
        return ResumePoints.in_folder(self.checkpoints, needs).whole

    def earlier_lengths(self) -> tuple[EarlierLength, ...]:
        """Lengths that this training had before."""
        if not self._lengths.is_file():
            return ()
        return tuple(EarlierLength(**entry) for entry in read_json(self._lengths))

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
    def _recipe(self) -> Path:
        return self.path / "recipe.yaml"

    @property
    def _first_look(self) -> Path:
        return self.path / "before.json"

    @property
    def _lengths(self) -> Path:
        return self.path / "lengths.json"

    def _was_begun(self) -> bool:
        """Whether any step may be kept here; if not, another recipe may begin in the folder."""
        return any(self.checkpoints.glob("checkpoint-*")) or any(
            path.exists() for path in (self.model, self.adapter, self.path / "report.json")
        )

    def _nothing_to_go_on_from(self, points: ResumePoints) -> CheckpointError | ConfigurationError:
        if not points.damaged:
            return ConfigurationError(
                f"the training in {self.path} is over and kept no checkpoint to go on from; begin in another folder"
            )
        faults = "; ".join(f"{path.name}: {fault}" for path, fault in points.damaged.items())
        again = "" if self.model.exists() else ", or delete these to begin anew here"
        return CheckpointError(
            f"no checkpoint in {self.checkpoints} is whole ({faults}), so there is nothing to go on from; begin in "
            f"another folder{again}"
        )


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
