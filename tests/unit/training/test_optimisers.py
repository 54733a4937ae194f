from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import sapiens2.models as models
import tiny_models as tiny
from sapiens2.errors import ConfigurationError
from sapiens2.training import MuonWithAdamW, build_optimizer, parameter_groups


def build(class_name: str = "Sapiens2ForPointmapEstimation", **changes: Any) -> Any:
    torch.manual_seed(0)
    fields = tiny.fields_of(class_name, pos_embed_rescale=None, **changes)
    return getattr(models, class_name)(models.Sapiens2Config(**fields))


def settings_by_name(model: nn.Module, **settings: float) -> dict[str, dict[str, Any]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = parameter_groups(model, **settings)  # type: ignore[arg-type]
    return {names[id(parameter)]: group for group in groups for parameter in group["params"]}


def test_parameter_groups__published_rule() -> None:
    found = settings_by_name(build(), lr=1.0, weight_decay=0.1, layer_decay=0.5)
    rates = {
        "model.embeddings.cls_token": 0.5**5,
        "model.embeddings.patch_embeddings.weight": 0.5**5,
        "model.model.layer.0.attention.q_proj.weight": 0.5**4,
        "model.model.layer.3.mlp.up_proj.bias": 0.5,
        "model.norm.weight": 1.0,
        "decode_head.conv_layers.0.convolution.weight": 1.0,
        "scale_head.predictor.proj.weight": 1.0,
    }
    assert {name: found[name]["lr"] for name in rates} == rates


def test_parameter_groups__vectors_and_biases_are_not_decayed() -> None:
    model = build()
    for name, group in settings_by_name(model, lr=1.0, weight_decay=0.1, layer_decay=0.9).items():
        parameter = model.get_parameter(name)
        assert group["weight_decay"] == (0.0 if parameter.ndim == 1 or name.endswith(".bias") else 0.1), name


def test_parameter_groups__tables_of_positions_are_not_decayed_and_the_tokenizer_is_input() -> None:
    model = build("Sapiens2Model", use_tokenizer=True, num_tokenizer_layers=2, tokenizer_window_size=2)
    found = settings_by_name(model, lr=1.0, weight_decay=0.1, layer_decay=0.5)
    assert found["tokenizer.position_embeddings"]["weight_decay"] == 0
    assert found["tokenizer.cls_token"]["weight_decay"] == 0.1
    assert {group["lr"] for name, group in found.items() if name.startswith("tokenizer")} == {0.5**5}


def test_parameter_groups__every_trained_parameter_once_and_no_frozen_one() -> None:
    model = build()
    model.model.requires_grad_(False)
    grouped = [id(p) for g in parameter_groups(model, lr=1.0, weight_decay=0.1) for p in g["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    model.requires_grad_(False)
    with pytest.raises(ConfigurationError, match="all are frozen"):
        parameter_groups(model, lr=1.0, weight_decay=0.1)


def test_parameter_groups__inside_a_wrapper() -> None:
    model = build()
    wrapped = nn.ModuleDict({"base_model": model})
    plain = settings_by_name(model, lr=1.0, weight_decay=0.1, layer_decay=0.5)
    inside = settings_by_name(wrapped, lr=1.0, weight_decay=0.1, layer_decay=0.5)
    assert {name.removeprefix("base_model."): group["lr"] for name, group in inside.items()} == {
        name: group["lr"] for name, group in plain.items()
    }


@pytest.mark.parametrize("wrong", [{"lr": -1.0}, {"weight_decay": float("nan")}, {"layer_decay": 0.0}])
def test_parameter_groups__numbers_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="expected lr and weight_decay >= 0"):
        parameter_groups(build(), **{"lr": 1.0, "weight_decay": 0.1, **wrong})  # type: ignore[arg-type]


def steps(model: Any, optimizer: torch.optim.Optimizer, seeds: range) -> None:
    for seed in seeds:
        optimizer.zero_grad()
        model(tiny.pixels(1, seed=seed)).pointmaps.square().mean().backward()
        optimizer.step()


def test_muon__takes_the_matrices_of_the_layers_and_a_scheduler_reaches_both() -> None:
    model = build()
    optimizer = build_optimizer(model, "muon", lr=0.01, layer_decay=0.5)
    assert isinstance(optimizer, MuonWithAdamW)
    muon, adamw = optimizer.parts
    assert {p.ndim for g in muon.param_groups for p in g["params"]} == {2}
    assert sum(len(g["params"]) for g in muon.param_groups) == 4 * 7
    count = sum(len(g["params"]) for part in (muon, adamw) for g in part.param_groups)
    assert count == len(list(model.parameters()))
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 0.0)
    before = [p.clone() for p in model.parameters()]
    steps(model, optimizer, range(1))
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_muon__state_survives_saving() -> None:
    whole, first, second = build(), build(), build()
    optimizer = build_optimizer(whole, "muon", lr=0.01)
    steps(whole, optimizer, range(4))
    optimizer = build_optimizer(first, "muon", lr=0.01)
    steps(first, optimizer, range(2))
    second.load_state_dict(first.state_dict())
    restored = build_optimizer(second, "muon", lr=0.5)
    restored.load_state_dict(optimizer.state_dict())
    steps(second, restored, range(2, 4))
    for (name, expected), found in zip(whole.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(expected, found), name


def test_muon__state_of_another_optimiser_is_refused() -> None:
    model = build()
    state = build_optimizer(model, "adamw", lr=0.01).state_dict()
    with pytest.raises(ConfigurationError, match="not Muon with AdamW"):
        build_optimizer(model, "muon", lr=0.01).load_state_dict(state)


def test_build_optimizer__unknown_name() -> None:
    with pytest.raises(ConfigurationError, match="choose adamw or muon"):
        build_optimizer(build(), "sgd", lr=0.1)  # type: ignore[arg-type]
