"""The loss of a recipe: what a model says against the labels of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from torch import Tensor

from sapiens2.assets import part_table
from sapiens2.errors import ConfigurationError
from sapiens2.losses import LossTerms
from sapiens2.models import Sapiens2Config
from sapiens2.training.recipe import LossSection
from sapiens2.training.recipe_files import RECIPE_LOSSES
from sapiens2.types import Task

__all__ = ["Objective", "objective_of"]

Objective: TypeAlias = Callable[[Any, Mapping[str, Tensor]], LossTerms]
"""Of a model's output and the labels of a batch."""


def objective_of(task: Task, section: LossSection, config: Sapiens2Config) -> Objective:
    """The loss of a task with the weights of a recipe.

    Args:
        task: The task.
        section: Weights and options.
        config: Of the model.

    Raises:
        ConfigurationError: Class weights of another number than the model's classes, or a single class.
    """
    weights: dict[str, Any] = {f"{term}_weight": weight for term, weight in section.weights.items()}
    recipe_loss = RECIPE_LOSSES[task]
    if task == "seg":
        if config.num_labels < 2:
            raise ConfigurationError(
                "the model has one class, and there is nothing to tell apart; the first class is the background, so "
                "give at least one more (model.labels, or the classes of the data)"
            )
        weights["class_weights"] = _class_weights(section, config)
        weights["ignore_index"] = config.semantic_loss_ignore_index
    if task == "pose":
        weights["reduction"] = section.reduction

    def objective(outputs: Any, labels: Mapping[str, Tensor]) -> LossTerms:
        target, mask = labels["labels"], labels.get("label_mask")
        match task:
            case "pose":
                return recipe_loss(outputs.heatmaps, target, labels.get("label_weights"), **weights)
            case "seg":
                return recipe_loss(outputs.logits, target, **weights)
            case "normal":
                return recipe_loss(outputs.normals, target, mask, **weights)
            case "albedo":
                return recipe_loss(outputs.albedos, target, mask, **weights)
            case "matting":
                return recipe_loss(outputs.alphas, outputs.foregrounds, target, mask=mask, **weights)
            case "pointmap":
                has_scales = outputs.scales is not None
                return recipe_loss(
                    outputs.pointmaps,
                    target,
                    scales=outputs.scales,
                    target_scales=labels.get("label_scales") if has_scales else None,
                    intrinsics=labels.get("label_intrinsics"),
                    mask=mask,
                    **weights,
                )

    return objective


def _class_weights(section: LossSection, config: Sapiens2Config) -> tuple[float, ...] | None:
    weights = part_table().class_weights if section.class_weights == "published" else section.class_weights
    if weights is not None and len(weights) != config.num_labels:
        raise ConfigurationError(
            f"loss.class_weights are {len(weights)} numbers, and the model has {config.num_labels} classes"
        )
    return weights
