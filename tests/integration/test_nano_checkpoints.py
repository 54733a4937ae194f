"""The trained checkpoints that come with the package: what is promised of them, and that they see people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open

import sapiens2
from photo_outline import held_mask, outline_box, outline_mask
from sapiens2.assets import sample_photo
from sapiens2.inference.sources import packaged_checkpoint
from sapiens2.types import TASKS, Task

TASK_LIMIT_BYTES, LIMIT_BYTES = 8_000_000, 40_000_000


def folder(task: Task) -> Path:
    found = packaged_checkpoint("nano", task)
    assert found is not None
    return found


def test_sizes__at_most_8_mb_each_and_40_mb_together() -> None:
    sizes = [sum(file.stat().st_size for file in folder(task).iterdir()) for task in TASKS]
    assert max(sizes) <= TASK_LIMIT_BYTES
    assert sum(sizes) <= LIMIT_BYTES


@pytest.mark.parametrize("task", TASKS)
def test_checkpoint__is_the_real_design_in_half_precision(task: Task) -> None:
    config = json.loads((folder(task) / "config.json").read_text())
    assert len(set(config["num_key_value_heads_per_layer"])) == 2  # grouped and full attention layers
    assert config.get("sapiens2_weights") != "random"
    with safe_open(folder(task) / "model.safetensors", "pt") as weights:
        dtypes = {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118  it is no mapping
        assert dtypes == {"F16"}
        assert all(bool(torch.isfinite(weights.get_tensor(name)).all()) for name in weights.keys())  # noqa: SIM118


@pytest.mark.parametrize("task", TASKS)
def test_card__has_figures_and_limits(task: Task) -> None:
    card = (folder(task) / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlicense: apache-2.0\n")
    assert "\n## Figures\n" in card
    assert "\n## Limits\n" in card
    assert "{" not in card  # nothing was left to fill in


def test_load__all_tasks_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    prediction = sapiens2.load("all", size="nano", device="cpu")(sample_photo())
    assert all(getattr(prediction, task) is not None for task in TASKS)


def test_photograph__the_matte_agrees_with_the_outline_drawn_by_hand() -> None:
    with Image.open(sample_photo()) as photo:
        pixels = np.array(photo.convert("RGB"))
    x, y, width, height = (round(value) for value in outline_box())
    window = (slice(y, y + height), slice(x, x + width))

    alpha = sapiens2.load("matting", size="nano", device="cpu")(pixels[window]).alpha

    counted = ~(held_mask() & ~outline_mask())[window]  # whether the helmet before her is hers can be argued
    found, wanted = (alpha > 0.5)[counted], outline_mask()[window][counted]
    assert (found & wanted).sum() / (found | wanted).sum() >= 0.85


@pytest.mark.slow
def test_held_out_people__every_figure_beats_what_knows_nothing() -> None:
    report = sapiens2.evaluate("nano", "synthetic:count=24,seed=900,size=256x192", "all", device="cpu", worst=0)

    for task, name in (
        ("pose", "body/pck_0.1_percent"),
        ("seg", "foreground_class_agreement"),
        ("normal", "mean_angular_error_deg"),
        ("pointmap", "relief_abs_rel"),
        ("matting", "mad"),
        ("albedo", "mae"),
    ):
        assert report[task][name].beats_baseline, (task, name)
