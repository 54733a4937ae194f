from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evaluation_cases as cases
from sapiens2.assets import keypoint_table, part_table
from sapiens2.data.loaders import COCO_NAMES
from sapiens2.errors import InputError
from sapiens2.services.evaluate import MEASURES
from sapiens2.services.evaluation.figures import HEADLINES, figures_beside
from sapiens2.services.evaluation.part_measure import PartMeasure
from sapiens2.services.evaluation.pose_measure import PoseMeasure
from sapiens2.types import TASKS

SAMPLES = [cases.sample(seed) for seed in range(3)]

PERFECT: dict[str, dict[str, float]] = {
    "pose": {"whole/pck_0.05_percent": 100, "body/pck_0.1_percent": 100, "whole/normalised_error": 0},
    "seg": {"mean_iou": 1, "foreground_class_agreement": 1, "mean_iou_sides_merged_above_0.1_percent": 1},
    "normal": {"mean_angular_error_deg": 0, "within_5_deg_percent": 100},
    "pointmap": {"l2_mean_m": 0, "scale_error": 0, "relief_gain_percent": 100, "scale_only/relief_abs_rel": 0},
    "matting": {"mad": 0, "mse": 0, "sad_per_1000": 0, "grad_per_1000": 0, "conn_per_1000": 0, "mask_iou": 1},
    "albedo": {"mae": 0, "ssim": 1, "psnr_db": math.inf},
}


def measured(task: str, results: Any, samples: Any = SAMPLES, **arguments: Any) -> Any:
    measure = MEASURES[task](**arguments)
    for own, result in zip(samples, results, strict=True):
        measure.add(own, result)
    return measure


@pytest.mark.parametrize("task", TASKS)
def test_measure__truth_as_prediction__is_perfect_and_beats_the_baseline(task: str) -> None:
    measure = measured(task, [cases.truth(task, own) for own in SAMPLES])
    values = measure.values()
    for name, value in PERFECT[task].items():
        assert values[name] == pytest.approx(value, abs=1e-4), name
    headlines = {name for name, _ in HEADLINES[task]}
    shown = {figure.name: figure for figure in figures_beside(values, measure.baseline_values())}
    assert headlines <= set(shown) | {"empty_images_below_0.02_percent", "full_figures/body/pck_0.1_percent"}
    judged = [figure for name, figure in shown.items() if name in headlines and figure.beats_baseline is not None]
    assert any(figure.beats_baseline for figure in judged)
    assert all(figure.beats_baseline or figure.value == figure.baseline for figure in judged)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "seg"])
def test_measure__baseline_as_prediction__gets_the_figures_of_the_baseline(task: str) -> None:
    measure = measured(task, [cases.trivial(task, own, SAMPLES) for own in SAMPLES])
    values, baselines = measure.values(), measure.baseline_values()
    assert baselines
    for name in values.keys() & baselines.keys() - {"scale_error"}:
        assert values[name] == pytest.approx(baselines[name], abs=1e-3, nan_ok=True), name


def test_part_measure__baseline__is_the_best_single_class_of_each_figure() -> None:
    measure = measured("seg", [cases.truth("seg", own) for own in SAMPLES])
    baselines = measure.baseline_values()
    ids = range(29)
    constant = [
        measured(
            "seg", [replace(cases.truth("seg", own), segmentation=np.full_like(own.parts, id_)) for own in SAMPLES]
        ).values()
        for id_ in ids
    ]
    for name in ("mean_iou", "pixel_accuracy", "foreground_class_agreement", "foreground_iou"):
        assert baselines[name] == pytest.approx(max(own[name] for own in constant)), name
    assert not any(name.startswith("accuracy/") for name in baselines)


def test_pointmap_measure__scale_error_of_the_baseline__is_that_of_one_depth_for_all() -> None:
    measure = measured("pointmap", [cases.truth("pointmap", own) for own in SAMPLES])
    means = np.array([np.nanmean(own.pointmap[2].astype(np.float64)) for own in SAMPLES])
    assert measure.baseline_values()["scale_error"] == pytest.approx(np.abs(means.mean() / means - 1).mean())


def test_pointmap_measure__no_metric_scale__is_noted() -> None:
    results = [replace(cases.truth("pointmap", own), is_metric=False) for own in SAMPLES]
    assert any("in 3 pictures the model gave no usable scale" in note for note in measured("pointmap", results).notes())


@pytest.mark.parametrize("task", TASKS)
def test_measure__picture_with_nobody__changes_no_figure_of_people(task: str) -> None:
    nobody = cases.sample(9, people=0)
    results = [cases.truth(task, own) for own in SAMPLES]
    without = measured(task, results).values()
    measure = measured(task, [*results, cases.truth(task, nobody)], [*SAMPLES, nobody])
    values = measure.values()
    for name in PERFECT[task]:
        assert values[name] == pytest.approx(without[name]), name
    if task in ("pose", "normal", "pointmap", "albedo"):
        assert any("nobody" in note or "no pixel that counts" in note for note in measure.notes())
    if task == "matting":
        assert values["empty_images_below_0.02_percent"] == 100


def test_pose_measure__nobody_at_all__measures_nothing_and_says_so() -> None:
    nobody = cases.sample(9, people=0)
    measure = measured("pose", [cases.truth("pose", nobody)], [nobody])
    assert math.isnan(measure.values()["whole/pck_0.1_percent"])
    assert measure.baseline_values() == {}
    assert "1 of 1 pictures have nobody, and enter no figure of poses" in measure.notes()


def test_pose_measure__model_of_308_on_17_points__measures_those_in_common() -> None:
    table = keypoint_table()
    shuffled = list(reversed(COCO_NAMES))
    indices = [table.index(name) for name in shuffled]
    own = replace(SAMPLES[0], keypoints=SAMPLES[0].keypoints[:, indices])
    measure = PoseMeasure(shuffled)
    figures = measure.add(own, cases.truth("pose", SAMPLES[0]))
    assert figures["whole/pck_0.05_percent"] == figures["body/pck_0.05_percent"] == 100
    assert measure.values()["whole/oks_ap"] == pytest.approx(1)
    assert "17 keypoints are in both the model's 308 and the data's 17" in measure.notes()
    assert all(picture.shape == (*cases.SIZE, 3) for picture in measure.pictures(own, cases.truth("pose", SAMPLES[0])))


def test_pose_measure__full_figures__are_people_with_all_17_points() -> None:
    cut = SAMPLES[0].keypoints.copy()
    cut[0, keypoint_table().coco17[-1], 2] = 0
    own = replace(SAMPLES[0], keypoints=cut)
    measure = measured("pose", [cases.truth("pose", own)], [own])
    values = measure.values()
    assert (values["people"], values["full_figures/people"]) == (2, 1)


@pytest.mark.parametrize(
    ("model", "data", "count", "words"),
    [
        (("nose", "chin"), ("hat", "shoe"), 2, "have no keypoint in common: nose, chin, ... and hat, shoe"),
        (("nose", "chin"), None, 3, "the model has 2 keypoints and the data have 3, without names"),
        (("keypoint_0", "keypoint_1"), ("a", "b", "c"), 3, "the model has 2 keypoints and the data have 3"),
    ],
)
def test_pose_measure__other_keypoints__are_refused(model: Any, data: Any, count: int, words: str) -> None:
    own = replace(SAMPLES[0], keypoints=SAMPLES[0].keypoints[:, :count])
    points = np.zeros((2, len(model), 2), np.float32)
    result = replace(cases.truth("pose", SAMPLES[0]), keypoints=points, scores=points[..., 0], keypoint_names=model)
    with pytest.raises(InputError, match=words):
        PoseMeasure(data).add(own, result)


def test_pose_measure__own_keypoints__have_no_oks_and_say_why() -> None:
    own = replace(SAMPLES[0], keypoints=SAMPLES[0].keypoints[:, :2])
    result = replace(
        cases.truth("pose", SAMPLES[0]),
        keypoints=own.keypoints[..., :2],
        scores=own.keypoints[..., 2],
        keypoint_names=("hat", "shoe"),
    )
    measure = measured("pose", [result], [own], keypoint_names=("hat", "shoe"))
    assert measure.values()["whole/pck_0.05_percent"] == 100
    assert "no OKS: the falloff of these keypoints is not known" in measure.notes()


def test_pose_measure__without_faster_coco_eval__has_pck_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_coco_eval", None)
    measure = measured("pose", [cases.truth("pose", own) for own in SAMPLES])
    values = measure.values()
    assert values["whole/pck_0.05_percent"] == 100
    assert not any("oks" in name for name in values)
    assert any(note.startswith("no OKS: faster_coco_eval is not installed") for note in measure.notes())


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (("a", "b", "c"), "the model has 29 classes .* and the data have 3 .a, b, c."),
        ((*part_table().names[:28], "Hat"), "class 28 is 'Tongue' to the model and 'Hat' in the data, one of 1"),
    ],
)
def test_part_measure__other_classes__are_refused(classes: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        PartMeasure(classes).add(SAMPLES[0], cases.truth("seg", SAMPLES[0]))


def test_part_measure__names_in_another_spelling_or_numbers__are_the_same() -> None:
    spelled = [name.lower().replace("_", " ") for name in part_table().names]
    assert PartMeasure(spelled).add(SAMPLES[0], cases.truth("seg", SAMPLES[0]))["mean_iou"] == 1
    numbered = replace(cases.truth("seg", SAMPLES[0]), class_names=tuple(f"class_{i}" for i in range(29)))
    assert PartMeasure(spelled).add(SAMPLES[0], numbered)["mean_iou"] == 1


def test_part_measure__class_that_the_model_lacks__is_refused() -> None:
    few = replace(cases.truth("seg", SAMPLES[0]), segmentation=SAMPLES[0].parts * 0, class_names=("a", "b"))
    with pytest.raises(InputError, match="the truth has class 28, and the model has 2 classes, 0 to 1"):
        PartMeasure().add(SAMPLES[0], few)


@pytest.mark.parametrize("task", TASKS)
def test_pictures__have_the_size_of_the_picture(task: str) -> None:
    measure = MEASURES[task]()
    result = cases.truth(task, SAMPLES[0])
    figures = measure.add(SAMPLES[0], result)
    assert not math.isnan(figures[measure.ranked_by])
    for picture in measure.pictures(SAMPLES[0], result):
        assert (picture.dtype, picture.shape) == (np.uint8, (*cases.SIZE, 3))
