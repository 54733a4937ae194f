from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_folders as made
import evaluation_cases as cases
import sapiens2
from sapiens2.data import open_samples
from sapiens2.errors import CheckpointError, ConfigurationError, InputError
from sapiens2.inference import Predictor
from sapiens2.services.evaluate import EvaluationReport, evaluate
from sapiens2.types import TASKS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.write_everything(tmp_path_factory.mktemp("truth") / "data")


@pytest.fixture(scope="module")
def report(nano_checkpoints: Path, folder: Path) -> EvaluationReport:
    return evaluate(nano_checkpoints, folder, worst=1)


@pytest.fixture(scope="module")
def seg(nano_checkpoints: Path) -> Predictor:
    return sapiens2.load("seg", model=nano_checkpoints)


def test_evaluate__all__measures_every_task_beside_a_baseline(report: EvaluationReport, folder: Path) -> None:
    assert tuple(report.tasks) == TASKS
    for task in TASKS:
        assert "random weights" in report[task].model
        judged = [figure for _, figure in report[task].headlines if figure.baseline is not None]
        assert len(judged) >= 1, task
        assert len(report[task].worst) == 1
    assert report.about["samples"] == 3
    assert report.about["data"] == str(folder)
    assert {"sapiens2", "torch", "transformers", "numpy", "python"} == set(report.about["versions"])
    json.dumps(report.to_dict(), allow_nan=False)


def test_evaluate__figures__are_those_of_the_predictor_at_the_pictures_size(
    report: EvaluationReport, nano_checkpoints: Path, folder: Path
) -> None:
    samples = open_samples(folder)
    predict = sapiens2.load(["seg", "normal"], model=nano_checkpoints)
    agreed, foreground, angles = 0, 0, []
    for sample in (samples[index] for index in range(3)):
        predicted = predict(sample.image)
        people = sample.parts > 0
        foreground += int(people.sum())
        agreed += int((predicted.seg.segmentation == sample.parts)[people].sum())
        known = np.isfinite(sample.normals).all(axis=0)
        cosines = (predicted.normal.normals * sample.normals).sum(axis=0)[known]
        angles.append(np.degrees(np.arccos(cosines.clip(-1, 1))))
    assert report["seg"]["foreground_class_agreement"].value == pytest.approx(agreed / foreground)
    assert report["normal"]["mean_angular_error_deg"].value == pytest.approx(np.concatenate(angles).mean(), abs=1e-3)


def test_evaluate__samples__have_their_own_figures(report: EvaluationReport) -> None:
    assert [row["index"] for row in report.samples] == [0, 1, 2]
    assert all(set(row["figures"]) == set(TASKS) for row in report.samples)
    worst = report["matting"].worst[0]
    assert worst.value == max(row["figures"]["matting"]["mad"] for row in report.samples)
    assert worst.name in {row["name"] for row in report.samples}


def test_evaluate__batches_and_limit__change_no_figure(seg: Predictor, folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    one = evaluate(seg, folder, "seg", worst=0)
    two = evaluate(seg, folder, "seg", worst=0, batch_size=2, on_sample=lambda *call: calls.append(call))
    assert calls == [(2, 3), (3, 3)]
    assert two["seg"]["pixel_accuracy"].value == pytest.approx(one["seg"]["pixel_accuracy"].value)
    first = evaluate(seg, {"kind": "generated", "root": str(folder), "subset": [0, 2]}, "seg", limit=1)
    assert first.about["samples"] == 1
    assert first["seg"]["pixels"].value == made.HEIGHT * made.WIDTH
    assert evaluate(seg, folder, "seg", limit=99).about["samples"] == 3


def test_evaluate__yaml_file__is_reported_with_what_it_says(seg: Predictor, folder: Path) -> None:
    file = folder.parent / "data.yaml"
    file.write_text("kind: generated\nroot: data\nsubset: [1, 2]\n")
    report = evaluate(seg, file, "seg", worst=0)
    assert report.about["data"] == {"file": str(file), "kind": "generated", "root": "data", "subset": [1, 2]}
    assert [row["name"] for row in report.samples] == [str(folder / "images" / "b.left.png")]


def test_evaluate__samples_in_memory_without_people__are_noted(nano_checkpoints: Path) -> None:
    class Nobody:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return cases.sample(index, people=0)

    report = evaluate(nano_checkpoints, Nobody(), ["pose", "normal", "matting"])
    assert "2 of 2 pictures have nobody, and enter no figure of poses" in report["pose"].notes
    assert any("2 of 2 images had no pixel that counts" in note for note in report["normal"].notes)
    assert report["pose"].worst == ()
    assert report["matting"]["empty_images"].value == 2
    assert report.about["data"] == "Nobody"
    page = report.to_markdown()
    assert "not measured" in page


def test_evaluate__all__leaves_out_what_one_side_lacks_and_says_so(seg: Predictor, folder: Path) -> None:
    report = evaluate(seg, folder)
    assert tuple(report.tasks) == ("seg",)
    assert report.notes == ("not evaluated, since model or data lack it: pose, normal, pointmap, matting, albedo",)


def test_evaluate__size_that_lies_here_as_a_folder__is_the_folder(
    nano_checkpoints: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder.parent / "place"
    place.mkdir()
    (place / "nano").symlink_to(nano_checkpoints / "nano-albedo")
    monkeypatch.chdir(place)
    assert tuple(evaluate("nano", folder, worst=0).tasks) == ("albedo",)


def test_evaluate__truth_that_lacks_a_task__names_the_sample(seg: Predictor) -> None:
    class Mixed:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            own = cases.sample(index)
            return own if index == 0 else replace(own, parts=None)

    with pytest.raises(
        InputError, match=r"folder/001.png: parts is not known, and seg is compared with it; known: key"
    ):
        evaluate(seg, Mixed(), "seg")


def test_evaluate__other_list_of_classes__names_the_sample_and_both_lists(seg: Predictor, folder: Path) -> None:
    spec = {
        "kind": "classes",
        "images": str(folder / "images"),
        "labels": str(folder / "parts"),
        "classes": [f"c{number}" for number in range(30)],
    }
    with pytest.raises(InputError, match=r"a.png, seg: the model has 29 classes .*data have 30"):
        evaluate(seg, spec, "seg")


def test_evaluate__arguments_that_cannot_be__are_named(seg: Predictor, nano_checkpoints: Path, folder: Path) -> None:
    for arguments, words in (
        ({"limit": 0}, "limit must be a whole number of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"worst": -1}, "worst must be a whole number of at least 0, got -1"),
        ({"task": "segg"}, "task is 'segg'; expected some of pose"),
        ({"task": []}, "expected some of pose"),
        ({"task": "pose"}, "the model has no pose; it has seg"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            evaluate(seg, folder, **arguments)
    with pytest.raises(CheckpointError, match="holds no checkpoint for any task"):
        evaluate(folder, folder)
    with pytest.raises(ConfigurationError, match="there is no task to evaluate"):
        evaluate(
            nano_checkpoints / "nano-pose",
            {"kind": "albedo", "images": str(folder / "images"), "albedo": str(folder / "albedo")},
        )


@pytest.mark.parametrize("value", [1.5, "2", True, [1], float("nan")])
@pytest.mark.parametrize("name", ["limit", "batch_size", "worst"])
def test_evaluate__numbers_that_are_none__are_named(seg: Predictor, folder: Path, name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be a whole number of at least"):
        evaluate(seg, folder, "seg", **{name: value})


@pytest.mark.parametrize("data", [None, 5, 1.5, {1}, object()])
def test_evaluate__what_is_no_data__is_named(seg: Predictor, data: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"data is .*; expected a path or description"):
        evaluate(seg, data)


@pytest.mark.parametrize("task", ["all", "seg"])
@pytest.mark.parametrize("data", [[1], ["people"], [None], [{"image": 1}], b"people"])
def test_evaluate__what_is_no_sample__is_named(seg: Predictor, data: Any, task: Any) -> None:
    with pytest.raises(InputError, match=r"data have (int|str|NoneType|dict) at 0; expected a sapiens2\.data\.Sample"):
        evaluate(seg, data, task)


@pytest.mark.parametrize("task", [None, 5, [5], [["seg"]], [None]])
def test_evaluate__what_is_no_task__is_named(seg: Predictor, folder: Path, task: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected some of pose"):
        evaluate(seg, folder, task)


@pytest.mark.parametrize("model", [None, 5, [1], b"nano", {"seg": None}])
def test_evaluate__what_is_no_model__is_named(folder: Path, model: Any) -> None:
    with pytest.raises(ConfigurationError, match="model"):
        evaluate(model, folder, "seg")


def test_report__is_a_mapping_of_tasks_and_figures(report: EvaluationReport) -> None:
    for mapping, keys in ((report, TASKS), (report["seg"], [figure.name for figure in report["seg"].figures])):
        assert list(mapping) == list(keys)
        assert len(mapping) == len(keys)
        assert all(key in mapping and mapping[key] for key in keys)
        assert "dance" not in mapping
        assert 0 not in mapping
        with pytest.raises(KeyError, match=f"dance; .*{keys[0]}"):
            mapping["dance"]


def test_report__is_printed_without_pixels(report: EvaluationReport) -> None:
    assert "WorstCase" in repr(report)
    assert "array(" not in repr(report)
