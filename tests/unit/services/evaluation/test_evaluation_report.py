from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sapiens2.services.evaluation.evaluation_report import EvaluationReport, TaskReport, WorstCase
from sapiens2.services.evaluation.figures import figures_beside

ABOUT: dict[str, Any] = {
    "model": "nano",
    "data": {"kind": "synthetic", "count": 2},
    "device": "cpu",
    "dtype": "float32",
    "batch_size": 1,
    "samples": 2,
    "seconds": 2.0,
    "seconds_predicting": 1.0,
    "versions": {"sapiens2": "0"},
}


def task_report(task: Any = "albedo", worst: int = 2) -> TaskReport:
    values = {"mae": 0.25, "psnr_db": math.inf, "ssim": math.nan, "pixels": 123456.0}
    picture = np.zeros((8, 8, 3), np.uint8)
    return TaskReport(
        task=task,
        model="a model",
        protocol="As it is.",
        baseline="the picture",
        figures=figures_beside(values, {"mae": 0.5, "pixels": 3.0}),
        notes=("nothing to say",),
        settings=({"metric": "ImageMetric"},),
        ranked_by="mae",
        worst=tuple(WorstCase(f"some/where/a b.{n}.png, person {n}", 0.5, picture) for n in range(worst)),
    )


def test_save__one_task__writes_report_samples_and_pictures(tmp_path: Path) -> None:
    rows = ({"index": 0, "name": "ä", "figures": {"albedo": {"mae": None}}},)
    files = EvaluationReport({"albedo": task_report()}, rows, ABOUT, ("a note",)).save(tmp_path / "out")
    document = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert document["model"] == "nano"
    assert document["notes"] == ["a note"]
    own = document["tasks"]["albedo"]
    assert own["figures"] == {"mae": 0.25, "psnr_db": None, "ssim": None, "pixels": 123456.0}
    assert own["baselines"] == {"mae": 0.5}
    assert own["metrics"] == [{"metric": "ImageMetric"}]
    lines = (tmp_path / "out" / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == list(rows)
    pictures = sorted(path.relative_to(tmp_path / "out").as_posix() for path in files if path.suffix == ".jpg")
    assert pictures == ["worst/01_a-b-0-person-0_0.5.jpg", "worst/02_a-b-1-person-1_0.5.jpg"]
    with Image.open(tmp_path / "out" / pictures[0]) as picture:
        assert picture.size == (8, 8)
    assert not list((tmp_path / "out").rglob(".*"))


def test_save__again__replaces_its_pictures_and_leaves_others(tmp_path: Path) -> None:
    EvaluationReport({"albedo": task_report()}, (), ABOUT).save(tmp_path)
    (tmp_path / "worst" / "mine.jpg").write_bytes(b"x")
    EvaluationReport({"albedo": task_report(worst=0), "seg": task_report("seg", 1)}, (), ABOUT).save(tmp_path)
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jpg"))
    assert left == ["worst/mine.jpg", "worst/seg/01_a-b-0-person-0_0.5.jpg"]


def test_to_markdown__figures__stand_beside_their_baselines() -> None:
    page = EvaluationReport({"albedo": task_report()}, (), ABOUT, ("all of it",)).to_markdown()
    assert "| MAE | 0.25 | 0.5 | yes, 50 % lower |" in page
    assert "| PSNR, dB | infinite |  |  |" in page
    assert "| SSIM | not measured |  |  |" in page
    assert "| pixels | 123456 |  |  |" in page
    for text in ("- nothing to say", "- all of it", "Baseline: the picture.", '`{"kind": "synthetic", "count": 2}`'):
        assert text in page


def test_task_report__unknown_figure__names_those_that_there_are() -> None:
    report = EvaluationReport({"albedo": task_report()}, (), ABOUT)
    assert report["albedo"]["mae"].baseline == 0.5
    with pytest.raises(KeyError, match="nothing; there are mae, psnr_db"):
        report["albedo"]["nothing"]
