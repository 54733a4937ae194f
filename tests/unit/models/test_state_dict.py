"""A model's own state dict goes back into it: two layouts of names must never be taken for one another."""

from __future__ import annotations

import copy

import pytest
import torch

from sapiens2.models import Sapiens2Config
from sapiens2.models.tasks import TASK_MODELS
from sapiens2.types import TASKS, Task


@pytest.mark.parametrize("refinements", [1, 2, 3, 5])
@pytest.mark.parametrize("task", TASKS)
def test_load_state_dict__own_names_come_back(task: Task, refinements: int) -> None:
    config = Sapiens2Config.from_size("nano", task)
    config = copy.deepcopy(config)
    kernel = 3 if config.head.use_pixel_shuffle else 1
    config.head.conv_out_channels = [8 + layer for layer in range(refinements)]
    config.head.conv_kernel_sizes = [kernel] * refinements
    torch.manual_seed(0)
    model = TASK_MODELS[task](config)
    other = TASK_MODELS[task](config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)

    other.load_state_dict(model.state_dict())

    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())
