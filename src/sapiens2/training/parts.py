"""Everything that a recipe names, loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sapiens2.data import SampleSource
from sapiens2.training.measure import label_names
from sapiens2.training.objectives import Objective, objective_of
from sapiens2.training.recipe import Recipe
from sapiens2.training.starting_models import StartingModel, add_lora, freeze, starting_model
from sapiens2.training.training_data import (
    Batch,
    TrainingSamples,
    chosen_labels,
    collate,
    open_data,
    require_labels,
    training_samples,
)

__all__ = ["TrainingParts"]


@dataclass(frozen=True)
class TrainingParts:
    """What a training is made of.

    Attributes:
        start: The task model that it begins with, and its processor.
        trained: The model that is trained: that of ``start``, or a peft model around it.
        samples: The training data.
        evaluation: The data that figures are measured on.
        objective: The loss.
    """

    start: StartingModel
    trained: Any
    samples: TrainingSamples
    evaluation: SampleSource | None
    objective: Objective

    @classmethod
    def of(cls, recipe: Recipe) -> TrainingParts:
        """Load the parts of a recipe.

        Raises:
            InputError: A file cannot be used.
            CheckpointError: So the checkpoint.
            ConfigurationError: The recipe does not fit the model or the data.
        """
        data, evaluation = open_data(recipe.data, recipe.task)
        labels = chosen_labels(recipe.model, recipe.task, data)
        start = starting_model(recipe.model, recipe.task, labels=labels, seed=recipe.training.seed)
        names = label_names(recipe.task, start.model)
        samples = training_samples(recipe, data, start.processor, start.model.config, names)
        if evaluation is not None:
            require_labels(recipe.task, evaluation, names, key="data.eval")
        objective = objective_of(recipe.task, recipe.loss, start.model.config)
        freeze(start.model, recipe.freeze)
        if recipe.training.gradient_checkpointing:
            start.model.activation_checkpointing_enable({"use_reentrant": False})
        trained = start.model if recipe.lora is None else add_lora(start.model, recipe.lora, seed=recipe.training.seed)
        return cls(start, trained, samples, evaluation, objective)

    def first_batch(self, size: int) -> Batch:
        """The first samples of the data, augmented as in the first epoch."""
        return collate([self.samples[index] for index in range(min(size, len(self.samples)))])
