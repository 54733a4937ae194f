"""``sapiens2 train`` from the recipe to a model that predicts: every task, resuming, failures, several processes."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import sapiens2
import training_runs as runs
from sapiens2.cli.main import main
from sapiens2.data import AugmentedSamples
from sapiens2.training import TrainingError, check_overfit, read_recipe, train
from sapiens2.training.trainer import RecipeTrainer
from sapiens2.types import TASKS, Task

pytestmark = [
    pytest.mark.filterwarnings("ignore:Predicted scales"),  # random weights
    pytest.mark.usefixtures("library_logging"),
]

LABELS: dict[str, Any] = {
    "pose": {"id2label": dict(enumerate(runs.KEYPOINTS))},
    "seg": {"id2label": dict(enumerate(runs.CLASSES))},
}
Checkpoints = Callable[[Task], Path]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    root, made = tmp_path_factory.mktemp("checkpoints"), dict[Task, Path]()

    def make(task: Task) -> Path:
        if task not in made:
            made[task] = runs.write_checkpoint(root / task, task, **LABELS.get(task, {}))
        return made[task]

    return make


def quiet(_line: str) -> None:
    """Nobody listens."""


def assert_same_weights(first: Path, second: Path) -> None:
    expected, found = runs.weights_of(first), runs.weights_of(second)
    assert expected.keys() == found.keys()
    for name in expected:
        assert torch.equal(expected[name], found[name]), name


@pytest.mark.parametrize("task", TASKS)
def test_train__every_task_ends_in_a_model_that_predicts(
    task: Task, checkpoint: Checkpoints, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = runs.write_recipe(tmp_path / "recipe.yaml", checkpoint(task), data, task)
    assert main(["train", str(recipe), "-o", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "4 steps" in said.out
    assert "step 4/4" in said.err
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["steps"] == 4
    assert [entry["step"] for entry in report["log"]] == [1, 2, 3, 4]
    assert report["before"]["metrics"][0]["metric"] == report["after"]["metrics"][0]["metric"]
    assert torch.__version__.startswith(report["versions"]["torch"])
    assert "| before | after |" in (tmp_path / "run" / "report.md").read_text()
    with Image.open(tmp_path / "run" / "pictures" / "after.png") as picture:
        assert picture.size[1] >= 2 * 256
    predictor = sapiens2.load(task, model=tmp_path / "run" / "model", device="cpu")
    photo = data / "images" / "picture0.png"
    boxes = {"boxes": [[4, 4, 30, 40]]} if task == "pose" else {}
    assert predictor(photo, **boxes).size_hw == (runs.HEIGHT, runs.WIDTH)
    assert (tmp_path / "run" / "model" / "preprocessor_config.json").is_file()


RESUMABLE = {
    "plain": {"training": {"steps": 5}, "log": {"save_every": 4}},
    "average, muon, accumulation": {
        "ema": {"decay": 0.9},
        "optimizer": {"name": "muon"},
        "training": {"accumulation": 2, "steps": 5},
        "log": {"save_every": 3},
        "schedule": {"kind": "cosine", "warmup_steps": 2},
    },
    "lora, random positions, checkpointing": {
        "lora": {"rank": 2, "dropout": 0.3},
        "model": {"rope_rescale": 2.0},
        "training": {"gradient_checkpointing": True, "epochs": 2, "steps": None},
        "log": {"save_every": 4},
    },
    "workers, bfloat16": {"data": {"workers": 2}, "training": {"precision": "bf16"}},
}


class StopError(Exception):
    """As if the machine had gone off."""


@pytest.mark.parametrize("sections", RESUMABLE.values(), ids=RESUMABLE.keys())
def test_train__resumed_weights_are_those_of_an_uninterrupted_training(
    sections: dict[str, Any], checkpoint: Checkpoints, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runs.write_recipe(tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg", **sections)
    recipe = read_recipe(path)
    whole = train(recipe, tmp_path / "whole", say=quiet)

    step = RecipeTrainer.training_step

    def goes_off(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.state.global_step == recipe.log.save_every:
            raise StopError
        return step(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(RecipeTrainer, "training_step", goes_off)
        with pytest.raises(StopError):
            train(recipe, tmp_path / "parts", say=quiet)
    said: list[str] = []
    parts = train(recipe, tmp_path / "parts", resume=True, say=said.append)
    assert said[0].endswith(f"checkpoint-{recipe.log.save_every}")
    assert parts.report["resumed_from_step"] == recipe.log.save_every
    assert_same_weights(whole.model, parts.model)
    assert [entry["loss"] for entry in parts.report["log"]] == [entry["loss"] for entry in whole.report["log"]]
    assert parts.report["before"] == whole.report["before"]
    assert parts.report["after"] == whole.report["after"]


def test_train__resuming_what_is_finished_changes_nothing(checkpoint: Checkpoints, data: Path, tmp_path: Path) -> None:
    recipe = read_recipe(
        runs.write_recipe(tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg", ema={"decay": 0.9})
    )
    first = train(recipe, tmp_path / "run", say=quiet)
    weights = runs.weights_of(first.model)
    second = train(recipe, tmp_path / "run", resume=True, say=quiet)
    assert all(torch.equal(weights[name], tensor) for name, tensor in runs.weights_of(second.model).items())
    assert second.report["after"] == first.report["after"]


def test_train__another_recipe_is_not_resumed(
    checkpoint: Checkpoints, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = runs.write_recipe(tmp_path / "recipe.yaml", checkpoint("normal"), data, "normal")
    assert main(["train", str(recipe), "-o", str(tmp_path / "run")]) == 0
    command = ["train", str(recipe), "-o", str(tmp_path / "run")]
    assert main(command) == 2
    assert "is not empty; give another folder, or go on in it with --resume" in capsys.readouterr().err
    assert main([*command, "--resume", "--set", "optimizer.lr=0.5"]) == 2
    assert "optimizer.lr: 0.002 became 0.5" in capsys.readouterr().err


def test_train__ctrl_c_saves_and_exits_130(
    checkpoint: Checkpoints,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = runs.write_recipe(
        tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg", log={"save_every": 0}, training={"steps": 3}
    )
    whole = train(read_recipe(recipe), tmp_path / "whole", say=quiet)
    step = RecipeTrainer.training_step

    def interrupted(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.state.global_step == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(RecipeTrainer, "training_step", interrupted)
        assert main(["train", str(recipe), "-o", str(tmp_path / "run")]) == 130
    assert "interrupted after step 2, which is saved" in capsys.readouterr().err
    assert main(["train", str(recipe), "-o", str(tmp_path / "run"), "--resume"]) == 0
    assert_same_weights(whole.model, tmp_path / "run" / "model")


def test_train__a_loss_that_is_not_finite_names_step_and_samples(
    checkpoint: Checkpoints, data: Path, tmp_path: Path
) -> None:
    path = runs.write_recipe(
        tmp_path / "recipe.yaml", checkpoint("matting"), data, "matting", optimizer={"lr": 1e30, "clip": 0}
    )
    with pytest.raises(TrainingError, match=r"the (loss|gradient) of step 2 is .*picture\d\.png.*go on with --resume"):
        train(read_recipe(path), tmp_path / "run", say=quiet)
    assert (tmp_path / "run" / "checkpoints" / "checkpoint-1" / "trainer_state.json").is_file()


@pytest.mark.parametrize("workers", [0, 1])
def test_train__a_bad_sample_is_named_and_nothing_is_lost(
    workers: int, checkpoint: Checkpoints, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runs.write_recipe(
        tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg", data={"workers": workers, "eval": None}
    )
    read = AugmentedSamples.__getitem__

    def damaged(self: AugmentedSamples, index: int) -> Any:
        if self.epoch == 1:
            raise OSError(errno.EIO, "Input/output error", "picture3.png")
        return read(self, index)

    monkeypatch.setattr(AugmentedSamples, "__getitem__", damaged)
    pattern = r"^training sample \d cannot be used: .*picture3\.png.*checkpoint-3: go on with --resume$"
    with pytest.raises(sapiens2.InputError, match=pattern):
        train(read_recipe(path), tmp_path / "run", say=quiet)
    monkeypatch.undo()
    whole = train(read_recipe(path), tmp_path / "whole", say=quiet)
    assert_same_weights(whole.model, train(read_recipe(path), tmp_path / "run", resume=True, say=quiet).model)


def test_train__a_full_disk_leaves_the_last_whole_checkpoint(
    checkpoint: Checkpoints, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = read_recipe(runs.write_recipe(tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg"))
    save = RecipeTrainer._save_rng_state

    def full(self: Any, folder: str) -> None:
        if self.state.global_step > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(self, folder)

    monkeypatch.setattr(RecipeTrainer, "_save_rng_state", full)
    with pytest.raises(TrainingError, match=r"checkpoint-4 cannot be written: the disk is full.*checkpoint-2 is whole"):
        train(recipe, tmp_path / "run", say=quiet)
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == ["checkpoint-2"]


def test_train__overfit_check_passes_and_changes_nothing(
    checkpoint: Checkpoints, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs.write_recipe(tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg")
    plain = train(read_recipe(path), tmp_path / "plain", say=quiet)
    checked = train(read_recipe(path, ["overfit={steps: 30, factor: .9}"]), tmp_path / "checked", say=quiet)
    assert_same_weights(plain.model, checked.model)
    assert checked.report["overfit"]["last_loss"] < 0.9 * checked.report["overfit"]["first_loss"]
    assert main(["train", str(path), "--overfit", "--set", "overfit={steps: 30, factor: .9}"]) == 0
    assert "overfit check passed: the loss of one batch went from" in capsys.readouterr().err


def test_train__overfit_check_says_when_the_loss_does_not_fall(
    checkpoint: Checkpoints, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs.write_recipe(
        tmp_path / "recipe.yaml", checkpoint("seg"), data, "seg", optimizer={"lr": 1e-9}, overfit={"steps": 3}
    )
    assert main(["train", str(path), "--overfit"]) == 1
    with pytest.raises(
        TrainingError, match=r"overfit check failed: the loss of one batch went from .* Look at the labels"
    ):
        train(read_recipe(path), tmp_path / "run", say=quiet)


@pytest.mark.parametrize("lora", [None, {"rank": 2, "targets": ["q_proj", "v_proj", "up_proj"]}], ids=["full", "lora"])
def test_train__own_classes(lora: Any, data: Path, tmp_path: Path) -> None:
    model = runs.write_checkpoint(tmp_path / "published", "seg", num_labels=29)
    path = runs.write_recipe(
        tmp_path / "recipe.yaml",
        model,
        data,
        "seg",
        model={"labels": list(runs.CLASSES)},
        lora=lora,
        ema={"decay": 0.5},
    )
    outcome = train(read_recipe(path), tmp_path / "run", say=quiet)
    assert outcome.report["notes"] == ["the predictor is new: 5 labels instead of 29"]
    result = sapiens2.load("seg", model=outcome.model, device="cpu")(data / "images" / "picture0.png")
    assert result.names == runs.CLASSES
    assert (tmp_path / "run" / "adapter").is_dir() == (lora is not None)
    trained, start = runs.weights_of(outcome.model), runs.weights_of(model)
    assert trained["decode_head.conv_seg.weight"].shape[0] == 5
    changed = {
        name for name in start if start[name].shape == trained[name].shape and not start[name].equal(trained[name])
    }
    trunk = {name for name in changed if name.startswith("backbone.")}
    if lora is None:
        assert "backbone.patch_embed.projection.weight" in trunk
    else:  # merged into the matrices, and into nothing else
        assert trunk
        assert all(".attn.w" in name or ".ffn.w12" in name for name in trunk)
    assert changed - trunk, "the head learns in both cases"


@pytest.mark.parametrize("lora", [None, {"rank": 2}], ids=["full", "lora"])
def test_train__own_keypoints(lora: Any, data: Path, tmp_path: Path) -> None:
    model = runs.write_checkpoint(tmp_path / "published", "pose")
    path = runs.write_recipe(tmp_path / "recipe.yaml", model, data, "pose", model={"labels": "data"}, lora=lora)
    outcome = train(read_recipe(path), tmp_path / "run", say=quiet)
    predictor = sapiens2.load("pose", model=outcome.model, device="cpu")
    result = predictor(data / "images" / "picture0.png", boxes=[[4, 4, 30, 40]], flip_test=True)
    assert result.names == runs.KEYPOINTS
    config = json.loads((outcome.model / "config.json").read_text())
    assert config["flip_pairs"] == [[1, 2]]


def test_train__data_of_other_classes_is_refused(
    checkpoint: Checkpoints, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = runs.write_checkpoint(tmp_path / "m", "seg", id2label=dict(enumerate(reversed(runs.CLASSES))))
    recipe = runs.write_recipe(tmp_path / "recipe.yaml", model, data, "seg")
    assert main(["train", str(recipe), "-o", str(tmp_path / "run")]) == 2
    assert "number 0 is 'background' and 'hat'. Give model.labels: data" in capsys.readouterr().err


def test_train__tensorboard_and_pictures_and_figures_on_the_way(
    checkpoint: Checkpoints, data: Path, tmp_path: Path
) -> None:
    path = runs.write_recipe(
        tmp_path / "recipe.yaml",
        checkpoint("normal"),
        data,
        "normal",
        log={"tensorboard": True, "evaluate_every": 2, "pictures_every": 2},
        ema={"decay": 0.5},
    )
    train(read_recipe(path), tmp_path / "run", say=quiet)
    entries = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries if "eval_mean_angular_error_deg" in entry] == [0, 2, 4]
    assert (tmp_path / "run" / "pictures" / "step-000002.png").is_file()
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


def test_train__accumulated_batches_equal_a_larger_one(checkpoint: Checkpoints, data: Path, tmp_path: Path) -> None:
    def weights(name: str, **training: Any) -> dict[str, torch.Tensor]:
        settings = {"training": {"steps": 1, **training}, "optimizer": {"clip": 0}, "schedule": {"kind": "constant"}}
        path = runs.write_recipe(tmp_path / f"{name}.yaml", checkpoint("pose"), data, "pose", **settings)
        return runs.weights_of(train(read_recipe(path), tmp_path / name, say=quiet).model)

    whole, parts = weights("whole", batch_size=4), weights("parts", batch_size=1, accumulation=4)
    for name in whole:
        torch.testing.assert_close(whole[name], parts[name], msg=name, rtol=1e-3, atol=3e-5)


@pytest.mark.slow
def test_train__two_processes_give_the_loss_of_one_with_the_doubled_batch(
    checkpoint: Checkpoints, data: Path, tmp_path: Path
) -> None:
    recipe = runs.write_recipe(
        tmp_path / "recipe.yaml", checkpoint("pose"), data, "pose", training={"batch_size": 1, "steps": 6}
    )
    single = train(read_recipe(recipe, ["training.batch_size=2"]), tmp_path / "single", say=quiet)
    # `accelerate launch --cpu --num_processes 2` starts one process; as if for GPUs it starts two, with gloo on CPUs
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    command += ["-m", "sapiens2", "train", str(recipe)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.run(
        [*command, "-o", str(tmp_path / "double")], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    report = json.loads((tmp_path / "double" / "report.json").read_text())
    assert report["processes"] == 2
    losses = [[entry["loss"] for entry in log] for log in (single.report["log"], report["log"])]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert report["before"] == single.report["before"]


def test_check_overfit__without_a_section(checkpoint: Checkpoints, data: Path, tmp_path: Path) -> None:
    recipe = read_recipe(runs.write_recipe(tmp_path / "recipe.yaml", checkpoint("albedo"), data, "albedo"))
    report = check_overfit(recipe, say=quiet)
    assert len(report.losses) == 51
    assert report.losses[-1] < report.losses[0]
    assert not list(tmp_path.glob("run*"))


def test_train__list_and_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--list"]) == 0
    assert "pointmap  5b" in capsys.readouterr().out
    assert main(["train"]) == 2
    assert main(["train", str(tmp_path / "nowhere.yaml")]) == 2
    assert "There is no recipe" in capsys.readouterr().err
