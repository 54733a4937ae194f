"""How long a training was meant to be, where that changed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sapiens2.errors import ConfigurationError
from sapiens2.io import read_json
from sapiens2.training.recipe import Recipe
from sapiens2.training.resume_points import step_of

__all__ = ["EarlierLength", "lengths_note", "require_length", "with_change"]


@dataclass(frozen=True)
class EarlierLength:
    """A length that a training had until a step, after which it went on with another.

    Attributes:
        until_step: The last step that the schedule of this length decided on.
        steps: Of the recipe, as it was.
        epochs: Of the recipe, as it was.
    """

    until_step: int
    steps: int | None
    epochs: float | None

    def __str__(self) -> str:
        return f"{_said(self.steps, self.epochs)} until step {self.until_step}"

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def with_change(earlier: Sequence[EarlierLength], there: Recipe, now: Recipe, step: int) -> tuple[EarlierLength, ...]:
    """Earlier lengths when a training goes on after a step with a recipe that may have another length.

    Args:
        earlier: Those known before.
        there: The recipe so far.
        now: The recipe to go on with.
        step: The step of the checkpoint.
    """
    made = [length for length in earlier if length.until_step <= step]
    if _length(there) != _length(now) and (not made or made[-1].until_step < step):
        made.append(EarlierLength(step, *_length(there)))
    return tuple(made)


def lengths_note(earlier: Sequence[EarlierLength], recipe: Recipe) -> str | None:
    """Say that a recipe alone does not give the same weights again, or None if it does.

    Args:
        earlier: Lengths before.
        recipe: The recipe now.
    """
    others = [length for length in earlier if (length.steps, length.epochs) != _length(recipe)]
    if not others or recipe.schedule.kind == "constant":
        return None
    return (
        f"the length was changed on the way: {', '.join(map(str, others))}, then {_said(*_length(recipe))}. The "
        "learning rates follow the length, so training this recipe from its beginning gives other weights"
    )


def require_length(there: Recipe, now: Recipe, checkpoint: Path) -> None:
    """Refuse to go on to a length that lies behind.

    Raises:
        ConfigurationError: More is done than the recipe asks for.
    """
    if _length(there) == _length(now):
        return
    done, steps, epochs = step_of(checkpoint), *_length(now)
    epochs_done = float(read_json(checkpoint / "trainer_state.json").get("epoch") or 0)
    if steps is not None and steps < done:
        raise ConfigurationError(
            f"training.steps is {steps}, and {done} steps are done; give at least {done}, or begin in another folder"
        )
    if epochs is not None and epochs < epochs_done:
        raise ConfigurationError(
            f"training.epochs is {epochs:g}, and {epochs_done:.4g} epochs are done; give at least that, or begin in "
            "another folder"
        )


def _length(recipe: Recipe) -> tuple[int | None, float | None]:
    return recipe.training.steps, recipe.training.epochs


def _said(steps: int | None, epochs: float | None) -> str:
    return f"{steps} steps" if steps is not None else f"{epochs:g} epochs"
