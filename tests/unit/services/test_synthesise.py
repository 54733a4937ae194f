from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sapiens2.assets import keypoint_table
from sapiens2.cli.main import main
from sapiens2.data.loaders import GeneratedFolder
from sapiens2.errors import InputError
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


def test_synthesise__other_request_in_the_folder__is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="another request"):
        synthesise(folder, SynthesisRequest(count=4, size_hw=(64, 48)))


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
        ((0, (64, 48)), "count must be 1"),
        ((1, (4, 48)), "at least 16 pixels"),
        ((1, (64, 48), (2, 1)), "range within 0 to 6, got 2-1"),
        ((1, (64, 48), (1, 1), -1), "seed must be 0 or more"),
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


@pytest.mark.parametrize(("option", "value"), [("--size", "32"), ("--people", "x"), ("--people", "1-")])
def test_synth_command__bad_option__is_explained(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synth", "-o", str(tmp_path), "--count", "1", option, value]) == 2
    assert "such as" in capsys.readouterr().err
