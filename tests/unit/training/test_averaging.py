from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from sapiens2.errors import CheckpointError
from sapiens2.training.averaging import WeightAverage


def model(value: float = 0.0) -> nn.Linear:
    layer = nn.Linear(2, 1)
    nn.init.constant_(layer.weight, value)
    nn.init.constant_(layer.bias, value)
    return layer


def test_weight_average__formula() -> None:
    layer = model()
    average = WeightAverage(layer, 0.5)
    expected = 0.0
    for update, value in enumerate((1.0, 3.0, 5.0, 2.0)):
        nn.init.constant_(layer.weight, value)
        average.update(layer)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * value
    assert average.shadow["weight"][0, 0].item() == pytest.approx(expected)


def test_weight_average__applied_gives_the_weights_back_to_the_last_bit() -> None:
    layer = nn.Linear(3, 3)
    average = WeightAverage(model(), 0.5)
    average = WeightAverage(layer, 0.5)
    nn.init.normal_(layer.weight)
    own = layer.weight.clone()
    with average.applied(layer):
        assert torch.equal(layer.weight, average.shadow["weight"])
    assert torch.equal(layer.weight, own)


def test_weight_average__goes_on_from_a_file(tmp_path: Path) -> None:
    layer = nn.Linear(3, 3)
    average = WeightAverage(layer, 0.9)
    nn.init.normal_(layer.weight)
    average.update(layer)
    average.save(tmp_path)
    restored = WeightAverage(layer, 0.9)
    restored.load(tmp_path)
    assert restored.updates == 1
    for one in (average, restored):
        one.update(layer)
    assert torch.equal(average.shadow["weight"], restored.shadow["weight"])


def test_weight_average__only_what_is_trained() -> None:
    layer = model()
    layer.bias.requires_grad_(False)
    assert set(WeightAverage(layer, 0.5).shadow) == {"weight"}


def test_weight_average__files_that_do_not_fit(tmp_path: Path) -> None:
    layer = model()
    with pytest.raises(CheckpointError, match="cannot be read"):
        WeightAverage(layer, 0.5).load(tmp_path)
    WeightAverage(nn.Conv1d(1, 1, 1, bias=False), 0.5).save(tmp_path)
    with pytest.raises(CheckpointError, match="of other weights; they differ in bias"):
        WeightAverage(layer, 0.5).load(tmp_path)
    (tmp_path / "average.safetensors").write_bytes(b"half")
    with pytest.raises(CheckpointError, match="cannot be read"):
        WeightAverage(layer, 0.5).load(tmp_path)
