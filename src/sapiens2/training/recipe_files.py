"""Recipes as files: strict YAML in, changes from the command line, the recipe in effect out."""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sapiens2 import losses
from sapiens2.data.loaders.class_maps import read_class_list
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.io import write_bytes
from sapiens2.io.yaml_text import parse_yaml
from sapiens2.training.published import published_recipe
from sapiens2.training.recipe import Recipe
from sapiens2.training.strict_fields import plain, read_section
from sapiens2.types import PathLike, Task

__all__ = ["RECIPE_LOSSES", "build_recipe", "loss_terms", "read_recipe", "recipe_text", "write_recipe"]

RECIPE_LOSSES: dict[Task, Callable[..., losses.LossTerms]] = {
    "pose": losses.pose_recipe_loss,
    "seg": losses.segmentation_recipe_loss,
    "normal": losses.normal_recipe_loss,
    "pointmap": losses.pointmap_recipe_loss,
    "matting": losses.matting_recipe_loss,
    "albedo": losses.albedo_recipe_loss,
}
"""Task -> the loss that it is trained with."""

_NEEDS_MORE = {"composition"}  # terms that need what training data does not have: a background


@dataclass(frozen=True)
class _TaskOnly:
    """What has to be known before the defaults are."""

    task: Task


def read_recipe(path: PathLike, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe.

    Args:
        path: The file. Paths in it are relative to the current folder.
        changes: ``section.key=value``, applied one after the other; values are read as YAML reads them.

    Raises:
        InputError: There is no such file.
        ConfigurationError: It is no YAML, or no recipe; the message names the file and the key.
    """
    file = Path(path)
    if file.is_dir():
        recipes = sorted(path.name for pattern in ("*.yaml", "*.yml") for path in file.glob(pattern))
        there = f"; it has {', '.join(recipes[:5])}" if recipes else ""
        raise InputError(f"{file} is a folder, and a recipe is a YAML file{there}.")
    if not file.is_file():
        raise InputError(f"There is no recipe {file}.")
    try:
        document = parse_yaml(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file} is no text in UTF-8: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{file} is no recipe: expected a mapping with task, model and data")
    for change in changes:
        _apply(document, change)
    try:
        return build_recipe(document)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error


def build_recipe(document: Mapping[str, Any]) -> Recipe:
    """Make a recipe from plain values, and check that they fit each other.

    Raises:
        ConfigurationError: A key or value is wrong; the message names it.
        InputError: The file of labels cannot be read.
    """
    completed = dict(document)
    size = document.get("defaults")
    if size is not None:
        task = read_section(_TaskOnly, {"task": document.get("task")}).task
        completed = _merged(published_recipe(task, str(size)), document)
        training = document.get("training")
        if isinstance(training, Mapping) and training.get("epochs") is not None and "steps" not in training:
            completed["training"].pop("steps")
    model = completed.get("model")
    if isinstance(model, Mapping) and isinstance(model.get("labels"), str) and model["labels"] != "data":
        completed["model"] = {**model, "labels": list(read_class_list(model["labels"]))}
    recipe = read_section(Recipe, completed)
    _check(recipe)
    return recipe


def loss_terms(task: Task) -> dict[str, float]:
    """Terms of a task's loss with their published weights."""
    parameters = inspect.signature(RECIPE_LOSSES[task]).parameters
    names = {name.removesuffix("_weight"): name for name in parameters if name.endswith("_weight")}
    return {term: float(parameters[name].default) for term, name in names.items() if term not in _NEEDS_MORE}


def recipe_text(recipe: Recipe) -> str:
    """The recipe as YAML, with every key."""
    text: str = yaml.safe_dump(plain(recipe), sort_keys=False, allow_unicode=True, width=110)
    return text


def write_recipe(path: PathLike, recipe: Recipe, *, remark: str | None = None) -> Path:
    """Write a recipe with every key, so that what was left to defaults is known later, too.

    Args:
        path: The file.
        recipe: The recipe.
        remark: A comment at its beginning.
    """
    lines = [] if remark is None else textwrap.wrap(remark, 100, initial_indent="# ", subsequent_indent="# ")
    return write_bytes(path, "".join([*(f"{line}\n" for line in lines), recipe_text(recipe)]).encode())


def _apply(document: dict[str, Any], change: str) -> None:
    path, sign, text = change.partition("=")
    keys = path.strip().split(".")
    if not sign or not all(keys):
        raise ConfigurationError(f"--set {change}: expected section.key=value")
    place: dict[str, Any] = document
    for depth, key in enumerate(keys[:-1]):
        inner = place.get(key)
        if inner is None or inner is True:
            inner = place[key] = {}
        elif not isinstance(inner, dict):
            above = ".".join(keys[: depth + 1])
            raise ConfigurationError(f"--set {change}: {above} is {inner!r}, which has no keys; set {above} itself")
        place = inner
    try:
        place[keys[-1]] = parse_yaml(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"--set {change}: {error}") from error


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Own values over those of the base, section by section."""
    merged = dict(base)
    for key, value in own.items():
        under = merged.get(key)
        merged[key] = {**under, **value} if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return merged


def _check(recipe: Recipe) -> None:
    task, training, weights = recipe.task, recipe.training, recipe.loss.weights
    _require(
        training.steps is not None or training.epochs is not None,
        "training: neither steps nor epochs is given; give one of them",
    )
    _require(
        training.steps is None or training.epochs is None,
        f"training: steps is {training.steps} and epochs is {training.epochs}; give one of them, and null for the "
        "other (--set training.steps=null)",
    )
    terms = loss_terms(task)
    for term in weights:
        near = "".join(f" Did you mean {name}?" for name in difflib.get_close_matches(term, terms, n=1))
        _require(term in terms, f"loss.weights.{term} is no term of {task}.{near} Expected {', '.join(terms)}")
    _require(any({**terms, **weights}.values()), "loss.weights: all terms have weight 0; give one a weight above 0")
    _require(task == "seg" or recipe.loss.class_weights is None, f"loss.class_weights is for seg; the task is {task}")
    labels = recipe.model.labels
    _require(labels is None or task in ("pose", "seg"), f"model.labels is for pose and seg; the task is {task}")
    if isinstance(labels, tuple):
        _require(len(labels) > 0 and len(set(labels)) == len(labels), "model.labels: expected names, each once")
        known = {name for pair in recipe.model.mirror_pairs for name in pair} - set(labels)
        _require(not known, f"model.mirror_pairs names {sorted(known)}, which model.labels does not have")
    if recipe.model.image_size is not None:
        wrong = min(recipe.model.image_size) < 16 or any(side % 16 for side in recipe.model.image_size)
        _require(not wrong, f"model.image_size is {list(recipe.model.image_size)}; expected multiples of 16")
    frozen = recipe.freeze.backbone or recipe.freeze.layers > 0
    _require(
        recipe.lora is None or len(recipe.lora.targets) > 0,
        "lora.targets is empty; name matrices of the layers, such as q_proj and v_proj, or leave the key out",
    )
    _require(recipe.lora is None or not frozen, "freeze: with lora the trunk is frozen already; leave freeze out")
    _require(
        recipe.augmentation.backgrounds is None or task in ("seg", "matting"),
        f"augmentation.backgrounds is for seg and matting; the task is {task}",
    )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)
