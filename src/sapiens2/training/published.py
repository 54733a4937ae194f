"""How the published models were trained, as defaults of recipes.

Source: the original repository's training configurations. The batch size is that of each of 8 processes.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from sapiens2.errors import ConfigurationError
from sapiens2.types import Task

__all__ = ["published_recipe", "published_recipes"]


@cache
def _table() -> dict[str, Any]:
    text = files("sapiens2.assets").joinpath("training.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def published_recipe(task: Task, size: str) -> dict[str, Any]:
    """The sections of a recipe that are known of a published model.

    Args:
        task: The task.
        size: Its size.

    Returns:
        ``optimizer``, ``schedule``, ``training`` and, for parts, ``loss``, as in a recipe.

    Raises:
        ConfigurationError: Nothing was published for the task, or for the size.
    """
    rows = _table()["rows"]
    if task not in rows:
        raise ConfigurationError(f"defaults: no training of {task} was published; leave the key out")
    if size not in rows[task]:
        raise ConfigurationError(f"defaults is {size!r}; expected one of {', '.join(rows[task])} for {task}")
    row = dict(zip(_table()["columns"], rows[task][size], strict=True))
    shared = _table()["shared"]
    recipe = {
        "optimizer": {
            **shared["optimizer"],
            "lr": row["lr"],
            "layer_decay": _table()["layer_decay"][size],
            "clip": row["clip"],
        },
        "schedule": dict(shared["schedule"]),
        "training": {key: row[key] for key in ("steps", "batch_size", "precision")},
    }
    if task == "seg":
        recipe["loss"] = {"class_weights": "published"}
    return recipe


def published_recipes() -> list[tuple[Task, str, dict[str, Any]]]:
    """Task, size and recipe of all published models, in the order of the table."""
    return [(task, size, published_recipe(task, size)) for task, sizes in _table()["rows"].items() for size in sizes]
