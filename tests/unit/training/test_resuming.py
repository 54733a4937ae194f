"""Folders of trainings: what may begin or go on in them, and from what."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import training_runs as runs
from sapiens2.cli.main import main
from sapiens2.errors import CheckpointError, ConfigurationError, InputError
from sapiens2.training import read_recipe, train
from sapiens2.training.trainer import RecipeTrainer

READ = ("trainer_state.json", "config.json", "model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth")


def quiet(_line: str) -> None:
    """Nobody listens."""


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("parts")
    model = runs.write_checkpoint(root / "model", "normal")
    data = runs.write_data(root / "data")
    return runs.write_recipe(root / "recipe.yaml", model, data, "normal", ema={"decay": 0.9}, data={"eval": None})


@pytest.fixture(scope="module")
def finished(recipe: Path) -> Path:
    """A training of four steps, with checkpoints of the second and the fourth."""
    train(read_recipe(recipe), recipe.parent / "run", say=quiet)
    return recipe.parent / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def resumed(recipe: Path, run: Path, *changes: str) -> tuple[Any, list[str]]:
    said: list[str] = []
    return train(read_recipe(recipe, changes), run, resume=True, say=said.append), said


@pytest.mark.parametrize("harm", [Path.unlink, cut], ids=["missing", "cut"])
@pytest.mark.parametrize("name", [*READ, "average.safetensors"])
def test_train__a_damaged_checkpoint_gives_way_to_the_one_before(
    name: str, harm: Callable[[Path], None], recipe: Path, finished: Path, run: Path
) -> None:
    harm(run / "checkpoints" / "checkpoint-4" / name)
    outcome, said = resumed(recipe, run)
    assert said[0].startswith(f"checkpoint-4 is not whole: {name} is ")
    assert said[1].endswith("checkpoint-2")
    assert outcome.report["resumed_from_step"] == 2
    expected, found = runs.weights_of(finished / "model"), runs.weights_of(outcome.model)
    assert all(torch.equal(found[key], tensor) for key, tensor in expected.items())
    assert (run / "checkpoints" / "damaged-checkpoint-4").is_dir()


def test_train__nothing_whole_is_not_begun_anew_over_a_model(recipe: Path, run: Path) -> None:
    for step in (2, 4):
        (run / "checkpoints" / f"checkpoint-{step}" / "optimizer.pt").unlink()
    before = contents(run)
    with pytest.raises(
        CheckpointError, match=r"no checkpoint in .* is whole \(checkpoint-4: optimizer.pt is missing; c"
    ):
        resumed(recipe, run)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(ConfigurationError, match="is over and kept no checkpoint to go on from"):
        resumed(recipe, run)
    assert {path: content for path, content in before.items() if "checkpoints" not in path.parts} == contents(run)


def test_train__what_only_loading_finds_is_said_without_a_loop(
    recipe: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(self: Any, checkpoint: Any) -> None:
        raise EOFError("ran out of input")

    shutil.rmtree(run / "checkpoints" / "checkpoint-4")
    monkeypatch.setattr(RecipeTrainer, "_load_rng_state", damaged)
    with pytest.raises(CheckpointError, match=r"checkpoint-2 cannot be gone on from \(EOFError: ran out of input\)"):
        resumed(recipe, run)


@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["begin", "resume"])
@pytest.mark.parametrize("theirs", ["report.md", "model/weights", "checkpoints/checkpoint-4/trainer_state.json"])
def test_train__folders_of_others_stay_as_they_are(
    theirs: str, resume: list[str], recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "theirs"
    (folder / theirs).parent.mkdir(parents=True)
    (folder / theirs).write_text("{}")
    before = contents(folder)
    assert main(["train", str(recipe), "-o", str(folder), *resume]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("data.train=nowhere", "nowhere"),
        ("model.from=./nowhere", "nowhere"),
        ("model.from=nan0", "Did you mean nano?"),
        ("model.from=Nano", "Did you mean nano?"),
        ("lora.targets=[k_projj]", "lora.targets names ['k_projj']"),
        ("lora.targets=[]", "lora.targets is empty"),
        ("freeze.layers=100", "freeze.layers is 100"),
        ("data.eval=nowhere", "nowhere"),
        ("training.epochs=2", "steps is 4 and epochs is 2.0"),
        ("training.steps=null", "neither steps nor epochs"),
    ],
)
def test_train__a_wrong_recipe_is_usage_and_leaves_nothing(
    wrong: str, message: str, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(recipe), "-o", str(tmp_path / "run"), "--set", wrong]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_train__where_nothing_was_saved_another_recipe_begins(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(recipe), "-o", str(tmp_path / "run")]
    check = ["--set", "overfit={steps: 1, factor: 0.001}"]
    assert main([*command, *check]) == 1  # found out after the folder was claimed
    assert "overfit check failed" in capsys.readouterr().err
    assert main([*command, "--resume", "--set", "optimizer.lr=0.001"]) == 0
    assert "nothing was saved yet: beginning anew" in capsys.readouterr().err
    assert yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text())["optimizer"]["lr"] == 0.001


@pytest.mark.parametrize("shorter", ["training.steps=3", "training={epochs: 1}"])
def test_train__not_resumed_to_a_length_that_lies_behind(shorter: str, recipe: Path, run: Path) -> None:
    changes = [shorter, *(["training.batch_size=2", "training.device=cpu"] if "epochs" in shorter else [])]
    before = contents(run)
    with pytest.raises(ConfigurationError, match=r"training\.(steps is 3, and 4 steps|epochs is 1, and 1\.333 epochs)"):
        resumed(recipe, run, *changes)
    assert contents(run) == before


def test_train__a_length_that_changed_is_recorded(recipe: Path, run: Path) -> None:
    outcome, _ = resumed(recipe, run, "training.steps=5")
    assert outcome.report["earlier_lengths"] == [{"until_step": 4, "steps": 4, "epochs": None}]
    note = "the length was changed on the way: 4 steps until step 4, then 5 steps."
    assert any(entry.startswith(note) for entry in outcome.report["notes"])
    assert (run / "recipe.yaml").read_text().startswith(f"# {note}")
    again, _ = resumed(recipe, run, "training.steps=5")
    assert again.report["earlier_lengths"] == outcome.report["earlier_lengths"]


def test_train__a_constant_rate_does_not_depend_on_the_length(recipe: Path, tmp_path: Path) -> None:
    constant = ["schedule.kind=constant", "log.save_every=1", "ema=null"]
    whole = train(read_recipe(recipe, [*constant, "training.steps=2"]), tmp_path / "whole", say=quiet)
    train(read_recipe(recipe, [*constant, "training.steps=1"]), tmp_path / "run", say=quiet)
    outcome, _ = resumed(recipe, tmp_path / "run", *constant, "training.steps=2")
    assert not [note for note in outcome.report["notes"] if "length" in note]
    expected, found = runs.weights_of(whole.model), runs.weights_of(outcome.model)
    assert all(torch.equal(found[key], tensor) for key, tensor in expected.items())


def test_train__a_loss_that_diverged_advises_what_can_be_done(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(recipe), "--set", "ema=null", "--set", "log.save_every=1"]
    wild = ["--set", "optimizer.lr=1e30", "--set", "optimizer.clip=0"]
    assert main([*command, *wild, "-o", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert "With a sample mended, go on with --resume; with another recipe, in another folder" in error
    kept = error.partition("with model.from: ")[2].partition(" from these weights")[0]
    # The advice is followed, with weights that are still numbers.
    shutil.copy(Path(read_recipe(recipe).model.source) / "model.safetensors", Path(kept) / "model.safetensors")
    assert main([*command, "--set", f"model.from={kept}", "-o", str(tmp_path / "other")]) == 0


def test_train__bf16_without_a_gpu(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    changes = ["training.precision=bf16", "training.device=auto", "training.steps=1"]
    outcome = train(read_recipe(recipe, changes), tmp_path / "run", say=quiet)
    assert outcome.report["device"] == "cpu"


def test_train__no_pictures(recipe: Path, tmp_path: Path) -> None:
    train(read_recipe(recipe, ["log.pictures=0", "training.steps=1"]), tmp_path / "run", say=quiet)
    assert not (tmp_path / "run" / "pictures").exists()


def test_train__nothing_to_learn_from_is_said_once(tmp_path: Path) -> None:
    model = runs.write_checkpoint(tmp_path / "model", "seg", id2label=dict(enumerate(runs.CLASSES)))
    data = runs.write_data(tmp_path / "data")
    for path in (data / "parts").iterdir():
        Image.fromarray(np.full((runs.HEIGHT, runs.WIDTH), 255, np.uint8)).save(path)
    file = runs.write_recipe(
        tmp_path / "recipe.yaml",
        model,
        data,
        "seg",
        data={"eval": None},
        augmentation={"limits": False},
        training={"steps": 3},
    )
    said: list[str] = []
    outcome = train(read_recipe(file), tmp_path / "run", say=said.append)
    notes = [line for line in said if "the loss was exactly 0 in the steps up to 1: nothing was learnt" in line]
    assert outcome.report["notes"] == notes
    assert len(notes) == 1


def test_read_recipe__a_folder_says_what_it_has(recipe: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder, and a recipe is a YAML file; it has recipe\.yaml"):
        read_recipe(recipe.parent)
