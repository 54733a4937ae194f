from __future__ import annotations

import json
from pathlib import Path

import pytest

from sapiens2.cli.main import main
from sapiens2.inference import load, sources
from sapiens2.io import read_json, read_png
from sapiens2.results import Prediction
from sapiens2.services import demo
from sapiens2.types import TASKS

pytestmark = pytest.mark.usefixtures("library_logging")


def test_demo__makes_all_pictures_and_says_that_weights_are_random(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "packaged_checkpoint", lambda _size, _task: None)
    assert main(["demo", "-o", str(tmp_path / "out"), "--device", "cpu"]) == 0
    output = capsys.readouterr()
    first, *paths = output.out.splitlines()
    assert first.startswith("RANDOM WEIGHTS, nothing was learnt: pose, seg, normal, pointmap, matting, albedo.")
    assert {Path(path) for path in paths} == set((tmp_path / "out").iterdir())
    for task in (*TASKS, "overview"):
        contents = read_png(tmp_path / "out" / f"astronaut_{task}.png")
        assert "random weights" in contents.text["Comment"]
        assert min(contents.pixels.shape[:2]) >= 512
    assert read_png(tmp_path / "out" / "astronaut_matting_rgba.png").pixels.shape == (512, 512, 4)
    assert "random weights" in read_json(tmp_path / "out" / "astronaut_pose.json")["info"]["comment"]
    assert output.err == ""


def test_demo__takes_trained_checkpoints_that_come_with_the_package(
    nano_checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = []
    monkeypatch.setattr(demo, "packaged_checkpoint", lambda _size, task: nano_checkpoints / f"nano-{task}")
    monkeypatch.setattr(Prediction, "save", lambda prediction, _folder: saved.append(prediction) or [])
    assert main(["demo", "-o", str(tmp_path / "out"), "--device", "cpu"]) == 0
    assert capsys.readouterr().out == ""
    assert saved[0].tasks == TASKS


def test_init__one_task_and_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--size", "nano", "--task", "seg", "-o", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'one'}: seg, random weights\n"
    assert load("seg", model=tmp_path / "one").tasks == ("seg",)
    assert main(["init", "--size", "nano", "--task", "seg", "--task", "pose", "-o", str(tmp_path / "two")]) == 0
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["nano-pose", "nano-seg"]
    same, other = ((tmp_path / place / "model.safetensors").read_bytes() for place in ("one", "two/nano-seg"))
    assert same == other


def test_init__seed_changes_the_weights(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        assert main(["init", "--size", "nano", "-t", "matting", "--seed", seed, "-o", str(tmp_path / seed)]) == 0
    first, second = ((tmp_path / seed / "model.safetensors").read_bytes() for seed in ("1", "2"))
    assert first != second


def test_init__overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nano-seg").mkdir()
    (tmp_path / "nano-seg" / "precious").touch()
    assert main(["init", "--size", "nano", "--task", "all", "-o", str(tmp_path)]) == 2
    assert f"{tmp_path / 'nano-seg'} exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["nano-seg"]


@pytest.mark.parametrize("seed", ["-1", str(2**63), "9" * 20, "1.5", "one", ""])
def test_init__seeds_that_are_none(seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["init", "--size", "nano", "-t", "seg", "-o", str(tmp_path / "out"), f"--seed={seed}"]
    assert main(command) == 2
    assert "expected a whole number from 0 to 9223372036854775807" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "command",
    [["init", "--size", "nano", "-t", "seg"], ["demo"], ["synth", "--count", "1"]],
    ids=lambda words: words[0],
)
def test_output__that_cannot_be_a_folder(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.jpg").touch()
    assert main([*command, "-o", str(tmp_path / "one.jpg" / "x")]) == 2
    assert f"{tmp_path / 'one.jpg'} is a file" in capsys.readouterr().err
    assert main([*command, "-o", str(tmp_path / "one.jpg")]) == 2
    assert main([*command, "-o", ""]) == 2
    assert "argument -o/--output: is empty" in capsys.readouterr().err


def test_convert__there_and_back(nano_checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, original, back = nano_checkpoints / "nano-normal", tmp_path / "n.safetensors", tmp_path / "back"
    assert main(["convert", str(source), str(original), "--to", "original"]) == 0
    assert "tensors read back and equal" in capsys.readouterr().out
    assert main(["convert", str(original), str(back), "--task", "normal"]) == 0
    assert read_json(back / "config.json")["architectures"] == ["Sapiens2ForNormalEstimation"]


def test_convert__a_tree(nano_checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(nano_checkpoints), str(tmp_path / "tree"), "--to", "original"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TASKS)
    assert set(sources.checkpoint_sources("all", model=tmp_path / "tree")) == set(TASKS)


def test_convert__what_cannot_be_used_as_given_exits_2(
    nano_checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    seg, out = nano_checkpoints / "nano-seg", tmp_path / "out"
    (tmp_path / "torn.safetensors").write_bytes(b"torn")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "precious").touch()
    cases: list[tuple[list[object], str]] = [
        ([tmp_path / "torn.safetensors", out], "torn.safetensors is not a whole safetensors file"),
        ([tmp_path / "gone", out], "was not found"),
        ([seg, out, "--task", "pose"], "is a seg checkpoint"),
        ([seg, tmp_path / "there"], "exists already"),
        ([seg, tmp_path / "torn.safetensors" / "out"], "torn.safetensors is a file"),
        ([seg, tmp_path / "x.safetensors"], "add --to original"),
        ([seg, "", "--to", "original"], "is empty"),
        (["", out], "is empty"),
        ([nano_checkpoints, nano_checkpoints / "inside"], "lies inside"),
        ([seg, seg / "inside", "--task", "seg"], "lies inside"),
    ]
    for arguments, message in cases:
        assert main(["convert", *map(str, arguments)]) == 2, arguments
        assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "torn.safetensors"]


def test_convert__a_tree_goes_on_and_a_second_run_completes_it(
    nano_checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "nano-seg").symlink_to(nano_checkpoints / "nano-seg")
    torn = tmp_path / "in" / "a.safetensors"
    torn.write_bytes(b"torn")
    command = ["convert", str(tmp_path / "in"), str(tmp_path / "out")]
    assert main(command) == 1
    output = capsys.readouterr()
    assert output.out.startswith(f"{tmp_path / 'out' / 'nano-seg'}: seg nano, ")
    assert output.err.startswith(f"error: {torn} is not a whole safetensors file")
    assert output.err.endswith("\n1 checkpoints could not be converted\n")
    torn.unlink()
    assert main(command) == 0
    assert capsys.readouterr().err == f"{tmp_path / 'out' / 'nano-seg'} exists already and is left alone\n"


def test_models__as_a_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["TASK", "SIZE", "HUB", "ID", "PARAMETERS", "FLOPS", "LICENCE", "CACHED"]
    assert any("facebook/sapiens2-pose-0.4b" in row and "426 M" in row for row in rows)
    assert main(["models", "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(entries) == len(rows)
    assert {"task", "size", "hub_id", "parameters", "teraflops", "licence", "cached"} == set(entries[0])
