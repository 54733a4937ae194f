from __future__ import annotations

import json
from pathlib import Path

import pytest

from sapiens2.errors import InputError
from sapiens2.services.evaluation.evaluation_report import EvaluationReport
from sapiens2.services.evaluation.report_folder import require_replaceable

ABOUT = {
    "model": "nano",
    "data": "people",
    "device": "cpu",
    "dtype": "float32",
    "batch_size": 1,
    "samples": 0,
    "seconds": 1.0,
    "seconds_predicting": 0.5,
    "versions": {"sapiens2": "0.1"},
}
REPORT = EvaluationReport({}, (), ABOUT)

TRAINING = json.dumps({"task": "seg", "steps": 3, "versions": {"sapiens2": "0.1"}})


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


FOREIGN = [
    ("report.md", "# Holidays\n"),
    ("report.md", "# Evaluation of the holidays\n"),
    ("report.md", "# Training of seg\n"),
    ("report.md/inner", "folder"),
    ("report.json", "{}"),
    ("report.json", "[1]"),
    ("report.json", '{"model": '),
    ("report.json", TRAINING),
    ("samples.jsonl", "{}\n"),
    ("worst/01_holiday.jpg", "picture"),
]


@pytest.mark.parametrize(("name", "text"), FOREIGN)
def test_save__file_that_no_evaluation_wrote__is_refused_and_kept(name: str, text: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, name, text)


@pytest.mark.parametrize(("name", "text"), [own for own in FOREIGN if own[0].startswith("report")])
def test_save__file_in_place_of_one_of_a_report__is_refused_and_kept(name: str, text: str, tmp_path: Path) -> None:
    REPORT.save(tmp_path)
    (tmp_path / name.partition("/")[0]).unlink()
    assert_refused(tmp_path, name, text)


def assert_refused(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    before = contents(folder)
    for refuse in (REPORT.save, require_replaceable):
        with pytest.raises(InputError, match="not of an earlier evaluation; name another folder") as caught:
            refuse(folder)
        assert str(folder / name.partition("/")[0]) in str(caught.value)
    assert contents(folder) == before


def test_save__earlier_report_and_files_of_other_names__stay_or_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    REPORT.save(tmp_path)
    other = EvaluationReport({}, (), ABOUT | {"model": "own"})
    other.save(tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["model"] == "own"
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("gone", ["report.md", "samples.jsonl"])
def test_save__report_that_was_interrupted__is_replaced(gone: str, tmp_path: Path) -> None:
    REPORT.save(tmp_path)
    (tmp_path / gone).unlink()
    REPORT.save(tmp_path)
    assert (tmp_path / gone).is_file()


def test_save__a_file_for_a_folder__is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; name a folder"):
        REPORT.save(tmp_path / "file")
