from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tiny_models as tiny
import training_runs as runs
from sapiens2.assets import keypoint_table
from sapiens2.errors import CheckpointError, ConfigurationError
from sapiens2.training.recipe import FreezeSection, LoraSection, ModelSection
from sapiens2.training.starting_models import add_lora, freeze, starting_model
from sapiens2.types import Task

Checkpoints = Callable[..., Path]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    def make(task: Task, **changes: Any) -> Path:
        return runs.write_checkpoint(tmp_path_factory.mktemp(task), task, **changes)

    return make


def section(source: Path | str, **settings: Any) -> ModelSection:
    return ModelSection(source=str(source), **settings)


def test_starting_model__as_it_is(checkpoint: Checkpoints) -> None:
    start = starting_model(section(checkpoint("seg")), "seg")
    assert start.notes == ()
    assert start.model.dtype == torch.float32
    assert dict(start.processor.size) == {"height": runs.HEIGHT, "width": runs.WIDTH}


@pytest.mark.parametrize("task", ["seg", "pose"])
def test_starting_model__new_labels_change_nothing_but_the_predictor(task: Task, checkpoint: Checkpoints) -> None:
    folder = checkpoint(task)
    old = starting_model(section(folder), task).model
    names = ("tip", "left heel", "right heel")
    start = starting_model(section(folder), task, labels=names, seed=3)
    again = starting_model(section(folder), task, labels=names, seed=3)
    for name, tensor in start.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name
        if not name.startswith("decode_head.predictor."):
            assert torch.equal(tensor, old.state_dict()[name]), name
    assert start.model.decode_head.predictor.weight.shape[0] == 3
    assert start.model.config.id2label == dict(enumerate(names))
    assert start.model.config.label2id == {name: index for index, name in enumerate(names)}
    assert start.model.config.flip_pairs == ([[1, 2]] if task == "pose" else None)
    assert "the predictor is new: 3 labels instead of" in start.notes[0]


def test_starting_model__the_same_labels_keep_the_predictor(checkpoint: Checkpoints) -> None:
    folder = checkpoint("seg", id2label=dict(enumerate(runs.CLASSES)))
    assert starting_model(section(folder), "seg", labels=runs.CLASSES).notes == ()


def test_starting_model__mirror_pairs_of_names_that_do_not_say_so(checkpoint: Checkpoints) -> None:
    settings = section(checkpoint("pose"), mirror_pairs=(("port", "starboard"),))
    start = starting_model(settings, "pose", labels=("bow", "port", "starboard"))
    assert start.model.config.flip_pairs == [[1, 2]]


def test_starting_model__trunk_of_another_task(checkpoint: Checkpoints) -> None:
    folder = checkpoint("normal")
    with pytest.raises(
        CheckpointError, match=r"a normal checkpoint, and the task is pose; give model.trunk_only: true"
    ):
        starting_model(section(folder), "pose")
    start = starting_model(section(folder, trunk_only=True), "pose")
    trunk = starting_model(section(folder), "normal").model.model
    for name, tensor in trunk.state_dict().items():
        assert torch.equal(tensor, start.model.model.state_dict()[name]), name
    assert start.model.config.num_labels == len(keypoint_table())
    assert start.notes == (f"the head is new; the trunk is that of {folder}",)


def test_starting_model__bare_trunk(tmp_path: Path) -> None:
    from sapiens2.models import Sapiens2Config, Sapiens2Model

    Sapiens2Model(Sapiens2Config(**{**tiny.fields_of("Sapiens2Model"), **runs.TRUNK})).save_pretrained(tmp_path)
    start = starting_model(section(tmp_path), "seg", labels=("background", "person"))
    assert start.model.config.num_labels == 2
    assert start.model.config.pos_embed_rescale is None


def test_starting_model__random_weights_are_not_called_random_afterwards() -> None:
    start = starting_model(section("nano", weights="random"), "seg", seed=1)
    assert start.notes == ("all weights are new",)
    assert "sapiens2_weights" not in start.model.config.to_dict()
    same = starting_model(section("nano", weights="random"), "seg", seed=1).model
    other = starting_model(section("nano", weights="random"), "seg", seed=2).model
    name = "model.norm.weight", "model.embeddings.cls_token"
    assert torch.equal(start.model.get_parameter(name[1]), same.get_parameter(name[1]))
    assert not torch.equal(start.model.get_parameter(name[1]), other.get_parameter(name[1]))


def test_starting_model__positions_are_stretched_only_when_asked_for(
    checkpoint: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    folder = checkpoint("seg", pos_embed_rescale=2.0)
    with caplog.at_level(logging.INFO):
        model: Any = starting_model(section(folder), "seg").model.train()
    assert "is switched off" in caplog.text
    x = tiny.pixels(1, (runs.HEIGHT, runs.WIDTH))
    assert torch.equal(model(x).logits, model(x).logits)
    asked: Any = starting_model(section(folder, rope_rescale=2.0), "seg").model.train()
    assert not torch.equal(asked(x).logits, asked(x).logits)
    assert asked.config.pos_embed_rescale == 2.0


def test_starting_model__another_image_size(checkpoint: Checkpoints) -> None:
    start = starting_model(section(checkpoint("seg"), image_size=(96, 64)), "seg")
    assert start.model.config.image_size == [96, 64]
    assert dict(start.processor.size) == {"height": 96, "width": 64}
    with pytest.raises(ConfigurationError, match=r"the scale head of this model is made for \[64, 48\]"):
        starting_model(section(checkpoint("pointmap"), image_size=(96, 64)), "pointmap")


def test_starting_model__sizes_that_were_not_published() -> None:
    with pytest.raises(ConfigurationError, match=r"model.from is 0.1b: .*begin anew with model.weights: random"):
        starting_model(section("0.1b"), "pose")


def frozen_names(model: nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if not parameter.requires_grad}


def test_freeze__layers_and_what_is_in_front_of_them(checkpoint: Checkpoints) -> None:
    model = starting_model(section(checkpoint("seg")), "seg").model
    freeze(model, FreezeSection(layers=1))
    found = frozen_names(model)
    assert all(name.startswith(("model.embeddings.", "model.model.layer.0.")) for name in found)
    assert {"model.embeddings.cls_token", "model.model.layer.0.norm1.weight"} <= found
    freeze(model, FreezeSection(layers=2))
    assert "model.norm.weight" in frozen_names(model)
    with pytest.raises(ConfigurationError, match=r"freeze.layers is 3, and the trunk has 2 layers"):
        freeze(model, FreezeSection(layers=3))


def test_freeze__backbone(checkpoint: Checkpoints) -> None:
    model = starting_model(section(checkpoint("seg")), "seg").model
    freeze(model, FreezeSection(backbone=True))
    assert frozen_names(model) == {name for name, _ in model.named_parameters() if name.startswith("model.")}


def test_add_lora__trains_small_matrices_and_heads(checkpoint: Checkpoints) -> None:
    model = starting_model(section(checkpoint("pointmap")), "pointmap").model
    wrapped = add_lora(model, LoraSection(rank=2, targets=("q_proj", "down_proj")))
    trained = {name for name, parameter in wrapped.named_parameters() if parameter.requires_grad}
    small = {name for name in trained if "lora_" in name}
    assert len(small) == 2 * 2 * 2
    assert all("decode_head" in name or "scale_head" in name for name in trained - small)
    assert trained - small


def test_add_lora__targets_that_are_not_there(checkpoint: Checkpoints) -> None:
    model = starting_model(section(checkpoint("seg")), "seg").model
    with pytest.raises(
        ConfigurationError, match=r"lora.targets names \['queries'\]; expected some of down_proj, gate_proj"
    ):
        add_lora(model, LoraSection(targets=("queries",)))
