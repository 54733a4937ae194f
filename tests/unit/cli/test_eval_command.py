from __future__ import annotations

import json
from pathlib import Path

import pytest

import data_folders as made
from sapiens2.cli.main import main

pytestmark = pytest.mark.usefixtures("library_logging")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made.write_everything(tmp_path / "data")


def test_eval_command__writes_a_report_and_shows_the_figures(
    nano_checkpoints: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    code = main(["eval", str(nano_checkpoints), str(folder), "-t", "albedo", "-o", str(out), "--worst", "2"])
    shown = capsys.readouterr().out
    assert code == 0
    assert "albedo: nano-albedo (random weights, not trained), 3 pictures" in shown
    assert "MAE" in shown
    assert {path.name for path in out.iterdir()} == {"report.json", "report.md", "samples.jsonl", "worst"}
    assert len(list((out / "worst").iterdir())) == 2


def test_eval_command__json__is_the_report(
    nano_checkpoints: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    arguments = [str(nano_checkpoints), f"generated:root={folder},limit=2", "-t", "normal", "-o", str(out), "--json"]
    assert main(["eval", *arguments, "--batch-size", "2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert document["samples"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["MODEL", "nowhere"], "There is no folder or file nowhere"),
        (["MODEL", "synthetic:cuont=3"], "did you mean count"),
        (["nowhere", "FOLDER"], "model 'nowhere' was not found"),
        (["MODEL", "FOLDER", "-t", "dance"], "invalid choice: 'dance'"),
        (["MODEL", "FOLDER", "--limit", "0"], "expected a whole number of at least 1"),
        (["MODEL", "FOLDER", "--worst", "x"], "expected a whole number from 0"),
        (["MODEL", "FOLDER", "--dtype", "int7"], "int7"),
        (["MODEL", "FOLDER", "-o", "file"], "file is a file"),
    ],
)
def test_eval_command__what_cannot_be_used__is_exit_code_2(
    nano_checkpoints: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("file").touch()
    places = {"MODEL": str(nano_checkpoints), "FOLDER": str(folder)}
    assert main(["eval", *[places.get(word, word) for word in arguments]]) == 2
    assert words in capsys.readouterr().err


def test_eval_command__damaged_picture_on_the_way__is_exit_code_1_and_named(
    nano_checkpoints: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = folder / "albedo" / "c.png"
    picture.write_bytes(picture.read_bytes()[:60])
    out = tmp_path / "report"
    assert main(["eval", str(nano_checkpoints), str(folder), "-t", "albedo", "-o", str(out)]) == 1
    assert str(picture) in capsys.readouterr().err
    assert not out.exists()


def test_eval_command__folder_with_a_report_of_others__is_exit_code_2_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.md").write_text("mine")
    assert main(["eval", "nowhere", "nothing", "-o", str(tmp_path)]) == 2
    assert "report.md: there already, and not of an earlier evaluation" in capsys.readouterr().err
    assert (tmp_path / "report.md").read_text() == "mine"
