from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sapiens2.assets import keypoint_table
from sapiens2.cli.main import main
from sapiens2.data.loaders import GeneratedFolder
from sapiens2.errors import InputError, MissingDependencyError
from sapiens2.io import read_json
from sapiens2.services.synthesise import SynthesisRequest, synthesise

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("anny", "warp")),
    reason="needs the extra synth: pip install 'sapiens2[synth]'",
)

REQUEST = SynthesisRequest(count=3, size_hw=(64, 48), people=(0, 2), seed=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesise(tmp_path_factory.mktemp("people") / "made", REQUEST).folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_synthesise__two_workers__same_files(folder: Path, tmp_path: Path) -> None:
    report = synthesise(tmp_path / "other", REQUEST, workers=2)
    assert report.made == 3
    assert files(report.folder) == files(folder)


def test_synthesise__interrupted__goes_on_and_ends_the_same(folder: Path, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, whole: int) -> None:
        if done == 2:
            raise StopError

    with pytest.raises(StopError):
        synthesise(tmp_path / "part", REQUEST, on_picture=stop)
    report = synthesise(tmp_path / "part", REQUEST)
    assert (report.made, report.kept) == (1, 2)
    assert files(report.folder) == files(folder)


def test_synthesise__loader__reads_every_truth(folder: Path) -> None:
    samples = GeneratedFolder(folder)
    people = read_json(folder / "scene.json")["pictures"]
    assert len(samples) == 3
    for index, scene in enumerate(people):
        sample = samples[index]
        assert len(sample.boxes_xywh) == len(sample.keypoints) == scene["people"]
        assert sample.keypoints.shape[1:] == (308, 3)
        known = sample.parts > 0
        assert np.array_equal(np.isfinite(sample.pointmap[2]), known)
        assert np.array_equal(np.isfinite(sample.normals[0]), known)


def test_synthesise__keypoints__keep_occluded_apart_from_visible(folder: Path) -> None:
    document = read_json(folder / "keypoints.json")
    assert document["categories"][0]["keypoints"] == list(keypoint_table().names)
    seen = {v for annotation in document["annotations"] for v in annotation["keypoints"][2::3]}
    assert seen <= {0, 1, 2}
    assert {1, 2} <= seen
    assert all("track_id" in annotation for annotation in document["annotations"])


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size_hw": (32, 32)}, "size_hw is 64x48 there and 32x32 here"),
        ({"people": (1, 1)}, "people is 0-2 there and 1-1 here"),
        ({"seed": 3}, "seed is 2 there and 3 here"),
        ({"frames": 5, "seed": 3}, "seed is 2 there and 3 here, frames is 0 there and 5 here"),
        ({"count": 2}, "count is 3 there and 2 here, and a folder can only grow"),
    ],
)
def test_synthesise__other_request_in_the_folder__is_refused_and_says_what_differs(
    changes: dict[str, Any], words: str, folder: Path
) -> None:
    before = files(folder)
    with pytest.raises(InputError, match="pictures of another request") as caught:
        synthesise(folder, replace(REQUEST, **changes))
    assert words in str(caught.value)
    assert files(folder) == before


FOREIGN = {
    "pictures": ["images/000000.png"],
    "labels": ["keypoints.json"],
    "anything": ["notes.txt"],
    "a record that is none": ["people/000000.json", "images/000000.png"],
    "a scene of something else": ["scene.json"],
    "hidden below": ["own/deep/.git/HEAD"],
}


@pytest.mark.parametrize("names", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("command", [True, False], ids=["command", "python"])
def test_synthesise__folder_with_files_of_others__is_refused_and_untouched(
    names: list[str], command: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text('{"own": "work"}')
    before = sorted(tmp_path.rglob("*")), files(tmp_path)
    if command:
        assert main(["synth", "-o", str(tmp_path / "own"), "--count", "1", "--size", "32x32"]) == 2
        assert "name another folder" in capsys.readouterr().err
    else:
        with pytest.raises(InputError, match="name another folder"):
            synthesise(tmp_path / "own", SynthesisRequest(1, (32, 32)))
    assert (sorted(tmp_path.rglob("*")), files(tmp_path)) == before


def test_synthesise__empty_folders_and_leftovers_of_an_interrupted_run__are_filled(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / ".0123456789abcdef.json").touch()
    assert synthesise(tmp_path, SynthesisRequest(1, (32, 32))).made == 1


KINDS_OF_FILE = [
    *(f"{name}/000001.png" for name in ("images", "parts", "normals", "alpha", "foreground", "albedo")),
    "depth/000001.npz",
    "people/000001.json",
]
DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeros at the end": lambda path: path.write_bytes(path.read_bytes()[:-30] + bytes(30)),
    "another's": lambda path: path.write_bytes(path.with_stem("000000").read_bytes()[:-9] + b"something"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", KINDS_OF_FILE)
def test_synthesise__missing_or_damaged_file__is_made_again(
    name: str, damage: Callable[[Path], object], copy: Path, folder: Path
) -> None:
    damage(copy / name)
    report = synthesise(copy, REQUEST)
    assert (report.made, report.kept) == (1, 2)
    assert files(copy) == files(folder)


@pytest.mark.parametrize("damage", [DAMAGES[name] for name in ("gone", "empty", "cut")])
@pytest.mark.parametrize("name", ["keypoints.json", "intrinsics.json", "scene.json"])
def test_synthesise__missing_or_damaged_summary__is_written_again(
    name: str, damage: Callable[[Path], object], copy: Path, folder: Path
) -> None:
    damage(copy / name)
    report = synthesise(copy, REQUEST)
    assert (report.made, report.kept) == (0, 3)
    expected, found = files(folder), files(copy)
    if name == "scene.json":  # nobody knows any more what made the pictures
        assert read_json(copy / name) == read_json(folder / name) | {"versions": None}
        del expected[name], found[name]
    assert found == expected


@pytest.mark.parametrize("changes", [{"seed": 3}, {"size_hw": (32, 48)}, {"count": 2}, {"frames": 3}])
def test_synthesise__lost_scene_and_another_request__is_refused(changes: dict[str, Any], copy: Path) -> None:
    (copy / "scene.json").write_text("{")
    before = files(copy)
    with pytest.raises(InputError, match=r"scene\.json is damaged"):
        synthesise(copy, replace(REQUEST, **changes))
    assert files(copy) == before


@pytest.mark.parametrize(
    "record",
    ["[]", "null", "3", '{"stem": "000001"}', {"seed": 1}, {"keypoints": [[[1, 2, "x"]]]}, {"boxes_xywh": None}],
)
def test_synthesise__record_that_tells_of_no_such_picture__is_made_again(
    record: str | dict[str, Any], copy: Path, folder: Path
) -> None:
    path = copy / "people" / "000001.json"
    path.write_text(record if isinstance(record, str) else json.dumps(read_json(path) | record))
    assert synthesise(copy, REQUEST).made == 1
    assert files(copy) == files(folder)


def test_synthesise__larger_count__goes_on_and_ends_as_if_made_at_once(folder: Path, tmp_path: Path) -> None:
    first = synthesise(tmp_path / "grown", replace(REQUEST, count=1))
    report = synthesise(first.folder, REQUEST)
    assert (report.made, report.kept) == (2, 1)
    assert files(report.folder) == files(folder)


def test_synthesise__versions__are_those_of_the_run_that_made_the_pictures(
    copy: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_json(folder / "scene.json")["versions"]
    monkeypatch.setattr("sapiens2.services.synthesise.__version__", "9.9")
    synthesise(copy, REQUEST)
    assert files(copy) == files(folder)
    for _ in range(2):
        (copy / "images" / "000001.png").unlink()
        synthesise(copy, REQUEST)
        scene = read_json(copy / "scene.json")
        assert (scene["versions"], scene["later_versions"]) == (first, [first | {"sapiens2": "9.9"}])


def test_synthesise__missing_package__is_named_before_the_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(MissingDependencyError, match=r"anny is not installed.*sapiens2\[synth\]"):
        synthesise(tmp_path / "new", REQUEST)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", None, True])
def test_synthesise__workers_that_are_no_number__are_refused(workers: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers must be"):
        synthesise(tmp_path / "new", REQUEST, workers=workers)
    assert not (tmp_path / "new").exists()


def test_synthesise__clip__people_move_and_keep_their_ids(tmp_path: Path) -> None:
    folder = synthesise(tmp_path / "clip", SynthesisRequest(1, (48, 64), (2, 2), frames=5)).folder
    people: dict[int, list[float]] = {}
    for annotation in read_json(folder / "keypoints.json")["annotations"]:
        people.setdefault(annotation["track_id"], []).append(annotation["bbox"][0] + annotation["bbox"][2] / 2)
    assert set(people) == {1, 2}
    for track in people.values():
        steps = np.diff(track)
        assert abs(track[-1] - track[0]) > 1
        assert (np.sign(steps[np.abs(steps) > 0.5]) == np.sign(track[-1] - track[0])).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, (64, 48)), "count must be a whole number from 1 to"),
        ((1, (4, 48)), "a side in pixels must be a whole number from 16 to 4096, got 4"),
        ((1, (64, 48), (1, 1), 0, -1), "frames must be a whole number from 0 to 10000, got -1"),
        ((1, (64, 48), (1, 1), 0, 10_001), "frames must be a whole number from 0 to 10000, got 10001"),
        ((2000, (64, 48), (1, 1), 0, 10_000), "more than 10000000 pictures"),
        ((1, (64, 48), (2, 1)), "range within 0 to 6, got 2-1"),
        ((1, (64, 48), (1, 1), -1), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_synthesis_request__bad_numbers__are_named(arguments: tuple, words: str) -> None:
    with pytest.raises(InputError, match=words):
        SynthesisRequest(*arguments)


def test_synth_command__makes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["synth", "-o", str(tmp_path / "out"), "--count", "1", "--size", "32x32"])
    assert code == 0
    assert "1 pictures made" in capsys.readouterr().out
    assert (tmp_path / "out" / "images" / "000000.png").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--size", "32"], "such as 1024x768"),
        (["--size", "0x0"], "a side in pixels must be a whole number from 16 to 4096, got 0"),
        (["--size", "100000x100000"], "a side in pixels must be a whole number from 16 to 4096, got 100000"),
        (["--size", "64x4097"], "a side in pixels must be a whole number from 16 to 4096, got 4097"),
        (["--people", "x"], "such as 1-3"),
        (["--people", "1-"], "such as 1-3"),
        (["--people", "5-2"], "range within 0 to 6, got 5-2"),
        (["--people", "7"], "people must be a whole number from 0 to 6, got 7"),
        (["--count", "0"], "expected a whole number of at least 1"),
        (["--count", "10000001"], "count must be a whole number from 1 to 10000000"),
        (["--workers", "0"], "expected a whole number of at least 1"),
        (["--workers", "-1"], "expected a whole number of at least 1"),
        (["--clip", "--frames", "0"], "expected a whole number of at least 1"),
        (["--clip", "--frames", "10001"], "frames must be a whole number from 0 to 10000"),
        (["--frames", "5"], "add --clip"),
    ],
    ids=" ".join,
)
def test_synth_command__bad_option__is_exit_code_2_and_makes_no_folder(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synth", "-o", str(tmp_path / "new"), "--count", "1", *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_synth_command__folder_of_another_request__is_exit_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synth", "-o", str(folder), "--count", "3", "--size", "32x32"]) == 2
    assert "size_hw is 64x48 there and 32x32 here" in capsys.readouterr().err


def test_synth_command__fault_on_the_way__is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_arguments: object) -> None:
        raise InputError("no more")

    monkeypatch.setattr("sapiens2.services.synthesise._summarise", stop)
    assert main(["synth", "-o", str(tmp_path / "new"), "--count", "1", "--size", "32x32"]) == 1
    assert capsys.readouterr().err == "sapiens2 synth: no more\n"
