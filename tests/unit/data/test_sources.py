from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import data_folders as made
from sapiens2.data.loaders import (
    AlbedoFolder,
    ClassMapFolder,
    CocoKeypoints,
    DepthFolder,
    GeneratedFolder,
    HubRows,
    MatteFolder,
    NormalFolder,
    SyntheticPeople,
)
from sapiens2.data.sources import SampleRange, open_samples, read_sample_spec
from sapiens2.errors import ConfigurationError, InputError, MissingDependencyError
from sapiens2.types import TASKS, Task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made.write_everything(tmp_path / "data")


def test_open_samples__folder_of_synth__is_a_generated_folder(folder: Path) -> None:
    samples = open_samples(folder)
    assert isinstance(samples, GeneratedFolder)
    assert len(samples) == 3
    assert set(samples[0].truths) >= {"keypoints", "parts", "normals", "pointmap", "alpha", "albedo"}
    assert len(samples.keypoint_names) == 308
    assert len(samples.class_names) == 29


@pytest.mark.parametrize("task", TASKS)
def test_open_samples__task__reads_its_truth_alone(folder: Path, task: str) -> None:
    from sapiens2.data.targets import REQUIRED_TRUTH

    sample = open_samples(folder, task=task)[0]
    assert set(REQUIRED_TRUTH[task]) <= set(sample.truths)
    assert len(sample.truths) <= 2


def test_open_samples__several_tasks__reads_the_truth_of_all(folder: Path) -> None:
    assert set(open_samples(folder, task=("seg", "albedo"))[0].truths) == {"parts", "albedo"}


def test_open_samples__coco_file__finds_its_pictures(tmp_path: Path) -> None:
    made.write_json(tmp_path / "annotations" / "person_keypoints_val2017.json", made.coco_document())
    for index, stem in enumerate(made.STEMS):
        made.save_picture(tmp_path / "val2017" / f"{stem}.png", made.image(index))
    for spec in (tmp_path, tmp_path / "annotations" / "person_keypoints_val2017.json"):
        people = open_samples(spec, task="pose")
        assert isinstance(people, CocoKeypoints)
        assert people.keypoint_names == ("nose", "left_eye", "right_eye")
        assert len(people) == 3
    assert len(open_samples(tmp_path, per_person=False)[0].keypoints) == 2


@pytest.mark.parametrize(
    ("spec", "loader"),
    [
        ({"kind": "generated", "root": "."}, GeneratedFolder),
        ({"kind": "coco", "annotations": "keypoints.json", "images": "images"}, CocoKeypoints),
        ({"kind": "coco", "annotations": "keypoints.json"}, CocoKeypoints),
        ({"kind": "classes", "images": "images", "labels": "parts"}, ClassMapFolder),
        ({"kind": "normals", "images": "images", "normals": "normals", "signs": [1, -1, -1]}, NormalFolder),
        ({"kind": "depth", "images": "images", "depth": "depth", "intrinsics": "intrinsics"}, DepthFolder),
        ({"kind": "mattes", "images": "images", "alpha": "alpha", "foreground": "foreground"}, MatteFolder),
        ({"kind": "albedo", "images": "images", "albedo": "albedo"}, AlbedoFolder),
        ({"kind": "synthetic", "count": 3, "size": "64x48", "people": "1-3"}, SyntheticPeople),
    ],
)
def test_open_samples__mapping__is_the_loader_of_its_kind(folder: Path, spec: dict[str, Any], loader: type) -> None:
    samples = open_samples(spec, base=folder)
    assert type(samples) is loader
    assert len(samples) == 3


def test_open_samples__yaml_file__is_relative_to_itself(folder: Path) -> None:
    file = folder / "data.yaml"
    file.write_text("kind: classes\nimages: images\nlabels: parts\nlimit: 2\n")
    samples = open_samples(file, task="seg")
    assert len(samples) == 2
    assert np.array_equal(samples[-1].parts, made.parts())


def test_open_samples__text__is_read_like_a_mapping() -> None:
    samples = open_samples("synthetic:count=500,seed=9,size=256x192,people=1-3")
    assert isinstance(samples, SyntheticPeople)
    assert (len(samples), samples.series.seed) == (500, 9)
    assert (samples.series.size_hw, samples.series.people) == ((256, 192), (1, 3))
    spec = read_sample_spec("classes:images=a,classes=[hat, shoe],labels=b")
    assert spec == {"kind": "classes", "images": "a", "classes": ["hat", "shoe"], "labels": "b"}


def test_open_samples__hub__reads_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load_dataset(path: str, name: str | None, *, split: str) -> list[dict[str, Any]]:
        asked.append((path, name, split))
        return [{"picture": made.image(), "ids": made.parts()}]

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    spec = {"kind": "hub", "dataset": "a/b", "split": "train", "columns": {"image": "picture", "parts": "ids"}}
    samples = open_samples(spec, task="seg")
    assert isinstance(samples, HubRows)
    assert asked == [("a/b", None, "train")]
    assert np.array_equal(samples[0].parts, made.parts())
    with pytest.raises(ConfigurationError, match="no truth for pose; it has that of seg"):
        open_samples(spec, task="pose")


def test_open_samples__hub_without_the_library__says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match="data of kind hub need it: pip install datasets"):
        open_samples({"kind": "hub", "dataset": "a/b", "split": "train", "columns": {"image": "picture"}})


def test_open_samples__subset_and_limit__leave_the_others_out(folder: Path) -> None:
    spec = {"kind": "generated", "root": str(folder)}
    whole = open_samples(spec)
    part = open_samples({**spec, "subset": [1, 3]})
    assert isinstance(part, SampleRange)
    assert [part[index].name for index in range(len(part))] == [whole[1].name, whole[2].name]
    assert part.keypoint_names == whole.keypoint_names
    assert open_samples({**spec, "subset": [1, 3], "limit": 1})[0].name == whole[1].name
    assert len(open_samples({**spec, "limit": 99})) == 3
    with pytest.raises(IndexError):
        part[2]
    with pytest.raises(ConfigurationError, match=r"subset is \[1, 4\], and there are 3"):
        open_samples({**spec, "subset": [1, 4]})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "data has kind None; expected synthetic, generated"),
        ({"kind": "synthetc"}, r"kind 'synthetc' \(did you mean synthetic\?\)"),
        ({"kind": "synthetic"}, "lacks count; expected a whole number of pictures"),
        ({"kind": "synthetic", "count": 3, "sise": 1}, r"no key 'sise' \(did you mean size\?\); expected count, size"),
        ({"kind": "synthetic", "count": "many"}, "count is 'many'; expected a whole number"),
        ({"kind": "synthetic", "count": True}, "count is True; expected a whole number"),
        ({"kind": "synthetic", "count": 3, "size": 256}, "size is 256; expected HEIGHTxWIDTH such as 1024x768"),
        ({"kind": "synthetic", "count": 3, "people": "few"}, "people is 'few'; expected a number or a range"),
        ({"kind": "synthetic", "count": 3, "limit": 0}, "limit is 0; expected a whole number of samples, at least 1"),
        ({"kind": "synthetic", "count": 3, "subset": [2, 1]}, r"subset is \[2, 1\]; expected \[start, stop\]"),
        (
            {"kind": "normals", "images": ".", "normals": ".", "signs": [2, 1, 1]},
            r"signs is \[2, 1, 1\]; expected three",
        ),
        ({"kind": "classes", "images": ".", "labels": 5}, "labels is 5; expected a path"),
        ({"kind": "classes", "images": ".", "labels": ".", "strict": "no"}, "strict is 'no'; expected true or false"),
        (
            {"kind": "depth", "images": ".", "depth": ".", "intrinsics": ".", "unit_m": 0},
            "unit_m is 0; expected metres",
        ),
        ({"kind": "hub", "dataset": "a", "split": "b", "columns": []}, r"columns is \[\]; expected fields"),
    ],
)
def test_open_samples__description_that_cannot_be__is_named(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        open_samples(spec)


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("nowhere", InputError, "There is no folder or file .*nowhere"),
        ("nowhere.yaml", InputError, "There is no file .*nowhere.yaml"),
        ("table.csv", InputError, "is no COCO file: expected a .json, a .yaml"),
        ("empty", InputError, "has nothing that is recognised. Expected pictures in one of images"),
        ("list.yaml", ConfigurationError, "describes no data; expected a mapping"),
        ("broken.yaml", ConfigurationError, "no usable YAML"),
        ("synthetic:count=5,people", ConfigurationError, "count is '5,people'"),
        ("people:count=5", ConfigurationError, "kind 'people'"),
        (
            {"kind": "classes", "images": "images", "labels": "nowhere"},
            InputError,
            "labels is 'nowhere', and there is no",
        ),
    ],
)
def test_open_samples__files_that_cannot_be__are_named(
    tmp_path: Path, spec: Any, error: type[Exception], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "table.csv").write_text("a")
    (tmp_path / "list.yaml").write_text("- a\n- b\n")
    (tmp_path / "broken.yaml").write_text("kind: [")
    with pytest.raises(error, match=words):
        open_samples(spec, base=tmp_path)


def test_open_samples__truth_of_another_task__is_refused(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="kind classes has no truth for pose; it has that of seg"):
        open_samples({"kind": "classes", "images": "images", "labels": "parts"}, task="pose", base=folder)
    with pytest.raises(ConfigurationError, match="there is no task 'segg'"):
        open_samples(folder, task="segg")
    (folder / "parts").rename(folder / "elsewhere")
    with pytest.raises(InputError, match="There are no parts in"):
        open_samples(folder, task="seg")


@pytest.mark.parametrize(
    ("spec", "task", "message"),
    [
        ("generated:root={root},truths=[part]", None, r"There are no part in .*; it has parts, .*Did you mean parts\?"),
        ("generated:root={root},truths=[parts]", "normal", r"truths is \['parts'\], and normal needs normals"),
    ],
)
def test_generated__truths_that_do_not_fit(spec: str, task: Task | None, message: str, tmp_path: Path) -> None:
    root = made.write_everything(tmp_path / "data")
    with pytest.raises(ValueError, match=message):
        open_samples(spec.format(root=root), task=task)


def test_folder__of_other_truth__says_what_is_there(tmp_path: Path) -> None:
    root = made.write_everything(tmp_path / "data")
    shutil.rmtree(root / "normals")
    with pytest.raises(ValueError, match=r"There are no normals in .*; it has parts, depth, alpha, albedo, keypoints"):
        open_samples(root, task="normal")


def test_description__in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_bytes("kind: synthetic\ncount: 2  # größer\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"data\.yaml is not UTF-8 text"):
        open_samples(tmp_path / "data.yaml")


@pytest.mark.parametrize(
    ("name", "folder", "others"),
    [
        ("person_keypoints_val2017", "val2017", ["v", "val", "2017"]),
        ("person_keypoints_val2017", "val2017", ["person", "keypoints"]),
        ("train_keypoints", "train", ["keypoints", "rain"]),
        ("people-my_val", "my_val", ["val_", "people-my"]),
        ("val.people", "val", ["peopl"]),
    ],
)
@pytest.mark.parametrize("with_others", [False, True])
def test_coco__pictures_lie_in_the_folder_that_its_name_names(
    name: str, folder: str, others: list[str], with_others: bool, tmp_path: Path
) -> None:
    for stem in made.STEMS:
        made.save_picture(tmp_path / folder / f"{stem}.png", made.image())
    for other in others if with_others else []:
        (tmp_path / other).mkdir()
    made.write_json(tmp_path / f"{name}.json", made.coco_document())
    assert len(open_samples(tmp_path / f"{name}.json", task="pose")) == 3


@pytest.mark.parametrize("unit", [".inf", "-.inf", ".nan", "0", "-1", "true", "mm"])
def test_depth__units_that_are_none(unit: str, tmp_path: Path) -> None:
    root = made.write_everything(tmp_path / "data")
    spec = f"depth:images={root}/images,depth={root}/depth,intrinsics={root}/intrinsics,unit_m={unit}"
    with pytest.raises(ConfigurationError, match=r"unit_m is .*; expected metres per unit, above zero and finite"):
        open_samples(spec, task="pointmap")
