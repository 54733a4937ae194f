from __future__ import annotations

import pytest
import torch
from torch import nn

from sapiens2.training.recipe import ScheduleSection
from sapiens2.training.schedules import learning_rate_factor, learning_rate_schedule


def factors(steps: int = 10, **settings: object) -> list[float]:
    schedule = ScheduleSection(**settings)  # type: ignore[arg-type]
    return [learning_rate_factor(step, schedule=schedule, steps=steps) for step in range(steps + 1)]


def test_learning_rate_factor__published_rule() -> None:
    # linear from 0.001 to 1 over the warm-up, then linear to 0 over what is left
    found = factors(1000, kind="polynomial", warmup_steps=500)
    assert found[0] == 0.001
    assert found[250] == pytest.approx(0.5005)
    assert found[500] == 1
    assert found[750] == pytest.approx(0.5)
    assert found[1000] == 0


def test_learning_rate_factor__shapes() -> None:
    assert factors(kind="constant") == [1.0] * 11
    assert factors(kind="linear", end=0.5)[5] == pytest.approx(0.75)
    assert factors(kind="cosine")[5] == pytest.approx(0.5)
    assert factors(kind="cosine")[10] == pytest.approx(0)
    assert factors(kind="polynomial", power=2)[5] == pytest.approx(0.25)


def test_learning_rate_factor__a_warm_up_longer_than_the_training() -> None:
    found = factors(4, warmup_steps=100, warmup_start=0)
    assert found == [0, 0.25, 0.5, 0.75, 1]


def test_learning_rate_schedule__keeps_the_ratios_of_groups() -> None:
    groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for rate in (1.0, 0.1)]
    optimizer = torch.optim.AdamW(groups)
    scheduler = learning_rate_schedule(optimizer, ScheduleSection(kind="linear"), 4)
    optimizer.step()
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.75, 0.075])
