from __future__ import annotations

from typing import Any

import pytest
import torch

import sapiens2.models as models
import tiny_models as tiny
from sapiens2.assets import part_table
from sapiens2.errors import ConfigurationError
from sapiens2.models import TASK_MODELS
from sapiens2.training.objectives import objective_of
from sapiens2.training.recipe import LossSection
from sapiens2.training.recipe_files import RECIPE_LOSSES, loss_terms
from sapiens2.types import TASKS, Task


def build(task: Task, **changes: Any) -> Any:
    torch.manual_seed(0)
    return TASK_MODELS[task](models.Sapiens2Config(**tiny.fields_of(TASK_MODELS[task].__name__, **changes)))


def batch(task: Task, model: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    outputs = model(tiny.pixels())
    return outputs, tiny.labels_of(TASK_MODELS[task].__name__, outputs)


@pytest.mark.parametrize("task", TASKS)
def test_objective_of__has_the_terms_of_the_recipe_loss(task: Task) -> None:
    model = build(task)
    outputs, labels = batch(task, model)
    if task == "pointmap":
        labels["label_intrinsics"] = torch.tensor([[50.0, 0, 8], [0, 50, 12], [0, 0, 1]]).expand(2, 3, 3)
    terms = objective_of(task, LossSection(), model.config)(outputs, labels)
    assert dict(terms.weights) == loss_terms(task)
    terms.total.backward()
    assert model.decode_head.predictor.weight.grad.abs().sum() > 0


def test_objective_of__weights_of_the_recipe() -> None:
    model = build("normal")
    outputs, labels = batch("normal", model)
    section = LossSection(weights={"l1": 3.0, "squared_gradient": 0.0})
    terms = objective_of("normal", section, model.config)(outputs, labels)
    assert dict(terms.weights) == {"cosine": 10.0, "l1": 3.0}


def test_objective_of__masks_reach_the_loss() -> None:
    model = build("albedo")
    outputs, labels = batch("albedo", model)
    nothing = {**labels, "label_mask": torch.zeros(labels["labels"].shape[0], *labels["labels"].shape[2:]).bool()}
    assert objective_of("albedo", LossSection(), model.config)(outputs, nothing).total.item() == 0


def test_objective_of__reduction_of_poses() -> None:
    model = build("pose")
    outputs, labels = batch("pose", model)
    labels["label_weights"] = torch.tensor([[1.0, 0, 0, 0, 0]] * 2)
    all_, visible = (
        objective_of("pose", LossSection(reduction=reduction), model.config)(outputs, labels).total.item()
        for reduction in ("all", "visible")
    )
    assert visible == pytest.approx(5 * all_, rel=1e-4)


def test_objective_of__class_weights() -> None:
    model = build("seg", num_labels=29)
    outputs, labels = batch("seg", model)
    found = objective_of("seg", LossSection(class_weights="published"), model.config)(outputs, labels).total
    expected = RECIPE_LOSSES["seg"](outputs.logits, labels["labels"], class_weights=part_table().class_weights).total
    assert found.item() == expected.item()
    with pytest.raises(ConfigurationError, match="are 29 numbers, and the model has 7 classes"):
        objective_of("seg", LossSection(class_weights="published"), build("seg").config)
