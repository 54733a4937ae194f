"""transformers' own Trainer with our classes: trains, accumulates, saves, resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

import sapiens2.models as models
import tiny_models as tiny


class Samples(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, class_name: str, model: Any) -> None:
        x = tiny.pixels(4)
        with torch.no_grad():
            self.fields = {"pixel_values": x, **tiny.labels_of(class_name, model(x))}

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {name: tensor[index] for name, tensor in self.fields.items()}


def build(class_name: str) -> Any:
    torch.manual_seed(0)
    config = models.Sapiens2Config(**tiny.fields_of(class_name, pos_embed_rescale=None))
    return getattr(models, class_name)(config)


def trainer_for(class_name: str, model: Any, folder: Path, **arguments: Any) -> Trainer:
    settings = {
        "per_device_train_batch_size": 2,
        "max_steps": 4,
        "save_steps": 2,
        "logging_steps": 1,
        "report_to": "none",
        "use_cpu": True,
        "seed": 0,
        "learning_rate": 1e-3,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    return Trainer(
        model, TrainingArguments(str(folder), **{**settings, **arguments}), train_dataset=Samples(class_name, model)
    )


@pytest.mark.parametrize("class_name", tiny.TASK_CLASSES)
def test_trainer__resume_goes_on_where_it_was(class_name: str, tmp_path: Path) -> None:
    whole = trainer_for(class_name, build(class_name), tmp_path / "whole")
    whole.train()
    first = trainer_for(class_name, build(class_name), tmp_path / "parts")
    first.train()
    resumed = trainer_for(class_name, build(class_name), tmp_path / "parts")
    resumed.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-2"))
    for (name, left), right in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        torch.testing.assert_close(left, right, msg=name, rtol=1e-5, atol=1e-6)


def test_trainer__accumulation_is_a_mean() -> None:
    # with loss kwargs Trainer would leave the division by the accumulation steps to the model
    assert models.Sapiens2ForPoseEstimation.accepts_loss_kwargs is False


def test_trainer__accumulated_steps_equal_a_larger_batch(tmp_path: Path) -> None:
    name = "Sapiens2ForPoseEstimation"
    optimiser = {"max_steps": 1, "lr_scheduler_type": "constant", "optim": "sgd", "max_grad_norm": 0.0}
    whole = trainer_for(name, build(name), tmp_path / "a", per_device_train_batch_size=4, **optimiser)
    parts = trainer_for(
        name, build(name), tmp_path / "b", per_device_train_batch_size=1, gradient_accumulation_steps=4, **optimiser
    )
    whole.train()
    parts.train()
    for (key, left), right in zip(whole.model.named_parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(left, right, msg=key, rtol=1e-4, atol=1e-6)
