"""Laws that hold for the results of all tasks."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sapiens2.errors import InputError
from sapiens2.io import read_npz
from sapiens2.types import TASKS

FILES = {
    "pose": ["a.b_pose.png", "a.b_pose.json"],
    "seg": ["a.b_seg.png", "a.b_seg_classes.png"],
    "normal": ["a.b_normal.png", "a.b_normal_16bit.png", "a.b_normal.npz"],
    "pointmap": ["a.b_pointmap.png", "a.b_pointmap.npz", "a.b_pointmap.ply"],
    "matting": ["a.b_matting.png", "a.b_matting_rgba.png", "a.b_matting_alpha.png"],
    "albedo": ["a.b_albedo.png", "a.b_albedo.npz"],
}

every_task = pytest.mark.parametrize("task", TASKS)


def arrays(result) -> dict[str, np.ndarray]:
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@every_task
def test_save__writes_the_documented_files_and_nothing_else(tmp_path, make_result, task):
    paths = make_result(task).save(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == FILES[task]
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(FILES[task])


@every_task
def test_save__files_say_what_made_them(tmp_path, make_result, task):
    for path in make_result(task).save(tmp_path):
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.text["Comment"] == "model: nano-pose (random weights)"
                assert image.text["Title"] == f"a.b.jpg ({task})"
        elif path.suffix == ".npz":
            assert read_npz(path)["Comment"].item() == "model: nano-pose (random weights)"
        else:
            assert b"model: nano-pose (random weights)" in path.read_bytes()


@every_task
def test_save__twice_gives_the_same_bytes(tmp_path, make_result, task):
    first, second = (make_result(task).save(tmp_path / name) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@every_task
@pytest.mark.parametrize(
    ("source", "stem"), [(None, "image"), ("x/photo.v2", "photo.v2"), ("clip.frame.0001.JPG", "clip.frame.0001")]
)
def test_save__stem_comes_from_the_source(tmp_path, make_result, task, source, stem):
    assert make_result(task, source=source).save(tmp_path)[0].name == f"{stem}_{task}.png"


@every_task
def test_save__refuses_stems_that_lead_elsewhere(tmp_path, make_result, task):
    with pytest.raises(InputError, match=r"stem must be a plain file name without folders, got '\.\./x'"):
        make_result(task).save(tmp_path / "out", stem="../x")
    assert not (tmp_path / "out").exists()


@every_task
def test_draw__has_the_size_of_the_image(make_result, task):
    drawn = make_result(task).draw()
    assert (drawn.shape, drawn.dtype) == ((30, 40, 3), np.uint8)


@every_task
def test_plot__contains_the_drawing(make_result, task):
    result = make_result(task)
    sheet = np.asarray(result.plot())
    np.testing.assert_array_equal(sheet[:30, :40], result.draw())


@every_task
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1)])
def test_save__tiny_images(tmp_path, make_result, task, size):
    height, width = size
    cut = {
        name: value[:height, :width] if name in ("image", "segmentation", "alpha") else value[:, :height, :width]
        for name, value in arrays(make_result(task)).items()
        if task != "pose" or name == "image"
    }
    assert len(make_result(task, **cut).save(tmp_path)) == len(FILES[task])


@every_task
def test_to_dict__is_strict_json_with_the_common_fields(make_result, task):
    summary = make_result(task).to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["task"] == task
    assert summary["size_hw"] == [30, 40]
    assert (summary["source"], summary["model"]) == ("in/a.b.jpg", "nano-pose (random weights)")


@every_task
def test_result__is_frozen_and_its_arrays_are_read_only(make_result, task):
    result = make_result(task)
    with pytest.raises(FrozenInstanceError):
        result.source = "other"
    assert arrays(result)
    for array in arrays(result).values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@every_task
def test_result__does_not_change_when_the_callers_buffer_does(make_result, task):
    given = {name: np.array(value) for name, value in arrays(make_result(task)).items()}
    result = make_result(task, **given)
    before = {name: value.copy() for name, value in arrays(result).items()}
    for buffer in given.values():
        assert buffer.flags.writeable
        buffer[...] = 0
    for name, array in arrays(result).items():
        np.testing.assert_array_equal(array, before[name])


@every_task
def test_result__read_only_arrays_are_not_copied(make_result, task):
    first = make_result(task)
    second = make_result(task, **arrays(first))
    for name, array in arrays(second).items():
        assert array is getattr(first, name)


@every_task
def test_result__survives_pickling(make_result, task):
    result = make_result(task)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.to_dict() == result.to_dict()


@every_task
def test_result__repr_is_short(make_result, task):
    text = repr(make_result(task))
    assert text.startswith(type(make_result(task)).__name__ + "(image=<uint8 (30, 40, 3)>, source='in/a.b.jpg'")
    assert len(text) < 400


@every_task
@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((30, 40, 3), np.float32), "image must be uint8"),
        (np.zeros((30, 40), np.uint8), r"image must have shape \(H, W, 3\), got \(30, 40\)"),
        (np.zeros((0, 40, 3), np.uint8), "image has no pixels"),
    ],
)
def test_result__refuses_what_is_no_picture(make_result, task, image, message):
    with pytest.raises(InputError, match=message):
        make_result(task, image=image)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "pose"])
def test_result__refuses_a_map_of_another_size(make_result, task):
    transposed = np.zeros((40, 30, 3), np.uint8)
    with pytest.raises(InputError, match=r"\(3?,? ?40, 30\)"):
        make_result(task, image=transposed)


def test_result__source_may_be_a_path(make_result):
    assert make_result("pose", source=Path("in") / "a.jpg").source == str(Path("in") / "a.jpg")


def test_results__import_loads_neither_torch_nor_pillow():
    code = "import sys, sapiens2.results; print(sorted({'torch', 'PIL', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
