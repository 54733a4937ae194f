from __future__ import annotations

import json

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.io import read_ply, read_png
from sapiens2.results import Prediction
from sapiens2.types import TASKS


@pytest.fixture
def everything(make_result) -> Prediction:
    return Prediction(**{task: make_result(task) for task in reversed(TASKS)})


def test_prediction__iterates_in_the_order_of_tasks(everything):
    assert everything.tasks == TASKS
    assert [result.task for result in everything] == list(TASKS)
    assert len(everything) == 6
    assert "seg" in everything
    assert everything["seg"] is everything.seg
    assert (everything.size_hw, everything.source) == ((30, 40), "in/a.b.jpg")


def test_prediction__of_one_task_plots_that_task(make_result):
    pose = make_result("pose")
    prediction = Prediction(pose=pose)
    np.testing.assert_array_equal(np.asarray(prediction.plot()), np.asarray(pose.plot()))
    assert "seg" not in prediction


def test_prediction_save__files_of_all_tasks_and_an_overview(tmp_path, everything):
    paths = everything.save(tmp_path, stem="x")
    assert len(paths) == len(set(paths)) == 16
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert paths[-1].name == "x_overview.png"
    assert read_png(paths[-1]).text["Comment"] == "models: nano-pose (random weights)"
    np.testing.assert_array_equal(read_png(paths[-1]).pixels, np.asarray(everything.plot()))


def test_prediction_save__one_task_needs_no_overview(tmp_path, make_result):
    assert [path.name for path in Prediction(seg=make_result("seg")).save(tmp_path)] == [
        "a.b_seg.png",
        "a.b_seg_classes.png",
    ]


def test_prediction__body_parts_mask_pictures_and_clouds_but_no_numbers(tmp_path, make_result):
    ids = np.zeros((30, 40), int)
    ids[10:20, 10:20], ids[0] = 22, 255
    parts = {"seg": make_result("seg", segmentation=ids)}
    prediction = Prediction(**parts, **{task: make_result(task) for task in ("normal", "pointmap", "albedo")})
    normal = np.asarray(prediction.plot("normal"))
    assert not normal[ids != 22].any()
    assert normal[ids == 22].any()
    paths = {path.name: path for path in prediction.save(tmp_path)}
    assert len(read_ply(paths["a.b_pointmap.ply"]).points) == 100
    assert prediction.to_dict()["results"]["pointmap"]["coverage"] == 1197 / 1200
    assert prediction.normal.foreground_mask is None


def test_prediction__a_mask_of_its_own_wins(make_result):
    own = np.zeros((30, 40), bool)
    own[3, 4] = True
    prediction = Prediction(seg=make_result("seg"), normal=make_result("normal", foreground_mask=own))
    np.testing.assert_array_equal(np.asarray(prediction.plot("normal")).any(axis=2), own)


def test_prediction_to_dict__is_strict_json(everything):
    document = everything.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert list(document["results"]) == list(TASKS)


def test_prediction__refuses_nothing_and_strangers(make_result):
    with pytest.raises(InputError, match="at least one task"):
        Prediction()
    with pytest.raises(InputError, match=r"must belong to one image, got pose: in/a.b.jpg \(30, 40\); seg: other.png"):
        Prediction(pose=make_result("pose"), seg=make_result("seg", source="other.png"))


@pytest.mark.parametrize("task", ["seg", "teeth", "size_hw"])
def test_prediction__task_without_a_result(make_result, task):
    with pytest.raises(InputError, match=f"there is no result for '{task}'; the tasks are pose"):
        Prediction(pose=make_result("pose")).plot(task)
