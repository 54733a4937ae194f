from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import data_folders as made
from sapiens2.cli.main import main
from sapiens2.errors import InputError, MissingDependencyError
from sapiens2.services.check_data import check_data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made.write_everything(tmp_path / "data")


def test_data_check__good_data(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", str(root)]) == 0
    output = capsys.readouterr()
    assert "parts, normals, depth, alpha, albedo, keypoints" in output.out
    for line in ("3  pictures", "3  parts", "29  classes seen", "3  people", "924  visible keypoints"):
        assert line in output.out, line
    assert output.out.endswith("no faults\n")
    assert output.err == ""


def test_data_check__every_fault_with_its_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "alpha" / "a.png").unlink()
    (root / "parts" / "b.left.png").write_bytes(b"")
    made.save_picture(root / "parts" / "c.png", np.full((6, 8), 77, np.uint8))
    np.savez(root / "depth" / "a.npz", depth=np.ones((3, 3), np.float32))
    (root / "intrinsics" / "c.json").write_text("{")
    (root / "normals" / "notes.txt").write_text("?")
    (root / "images" / "extra.png").write_bytes(b"\x89PNG torn")
    assert main(["data", "check", str(root)]) == 1
    output = capsys.readouterr()
    faults = [line for line in output.out.splitlines() if line.startswith("fault: ")]
    expected = [
        ("images", "a.png: has no partner in"),
        ("parts", "b.left.png is empty"),
        ("parts", "c.png: class id 77"),
        ("depth", "a.npz: depth is 3 x 3"),
        ("intrinsics", "c.json is not valid JSON"),
        ("normals", "notes.txt: not a file that is read here"),
        ("images", "extra.png is not an image file"),
    ]
    for folder, message in expected:
        start = f"fault: {root / folder / message}"
        assert sum(line.startswith(start) for line in faults) == 1, (start, faults)
    partners = [line for line in faults if "extra.png: has no partner" in line]
    assert len(partners) == 8  # each kind of truth is missing
    assert len(faults) == len(expected) + len(partners)
    assert f"{len(faults)} faults in" in output.err


def test_data_check__pictures_of_nobody_are_noted(root: Path) -> None:
    made.save_picture(root / "alpha" / "c.png", np.zeros((6, 8), np.uint8))
    made.save_picture(root / "foreground" / "c.png", np.zeros((6, 8, 3), np.uint8))
    np.savez(root / "depth" / "c.npz", depth=np.zeros((6, 8), np.float32))
    report = check_data(root)
    assert report.faults == ()
    assert set(report.notes) == {"1 pictures with empty depth", "1 pictures with empty alpha"}


def test_data_check__json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "albedo" / "a.png").write_bytes(b"")
    assert main(["data", "check", str(root), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["pictures"] == 3
    assert len(report["faults"]) == 1
    assert "a.png is empty" in report["faults"][0]


def test_data_check__coco_layout(tmp_path: Path) -> None:
    for split in ("train2017", "val2017"):
        for stem in made.STEMS:
            made.save_picture(tmp_path / split / f"{stem}.png", made.image())
        made.write_json(tmp_path / "annotations" / f"person_keypoints_{split}.json", made.coco_document())
    report = check_data(tmp_path)
    assert report.faults == ()
    assert report.kinds == ("keypoints",)
    assert (report.counts["pictures"], report.counts["people"]) == (6, 6)
    document = made.coco_document()
    document["annotations"][0]["bbox"] = [0, 0, 0, 0]
    document["annotations"][1]["iscrowd"] = 1
    made.write_json(tmp_path / "annotations" / "person_keypoints_val2017.json", document)
    (tmp_path / "train2017" / "a.png").write_bytes(b"")
    (tmp_path / "annotations" / "person_keypoints_other.json").write_text("{}")
    report = check_data(tmp_path)
    assert len(report.faults) == 3
    assert any("val2017.json: annotation 1 has the bbox" in fault for fault in report.faults)
    assert any("a.png is empty" in fault for fault in report.faults)
    assert any("other.json is no COCO file" in fault for fault in report.faults)
    assert any("1 crowds left out" in note for note in report.notes)


def test_data_check__parts_of_a_layout(tmp_path: Path) -> None:
    made.save_picture(tmp_path / "rgb" / "a.png", made.image())
    made.save_picture(tmp_path / "labels" / "a.png", made.parts() % 3)
    (tmp_path / "classes.txt").write_text("ground\ncat\n")
    assert "the list has 2 classes" in check_data(tmp_path).faults[0]
    (tmp_path / "depth").mkdir()
    assert any("there are no camera matrices" in fault for fault in check_data(tmp_path).faults)
    (tmp_path / "classes.txt").write_text("")
    assert any("holds no list of class names" in fault for fault in check_data(tmp_path).faults)


def test_data_check__trimap_beside_alpha_is_not_read(root: Path) -> None:
    made.save_picture(root / "trimap" / "a.png", made.alpha())
    report = check_data(root)
    assert report.faults == ()
    assert any("trimap was not read" in note for note in report.notes)


def test_data_check__nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="nothing that is recognised"):
        check_data(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        check_data(tmp_path / "gone")
    assert main(["data", "check", str(tmp_path)]) == 2
    assert "sapiens2 data: " in capsys.readouterr().err
    (tmp_path / "parts").mkdir()
    assert any("no folder of pictures" in fault for fault in check_data(tmp_path).faults)
    (tmp_path / "images").mkdir()
    assert any("There are no pictures" in fault for fault in check_data(tmp_path).faults)


def test_data_check__broken_keypoint_file(root: Path) -> None:
    (root / "keypoints.json").write_text('{"images": ')
    report = check_data(root)
    assert len(report.faults) == 1
    assert "keypoints.json is not valid JSON" in report.faults[0]
    assert report.counts["parts"] == 3  # the rest is read all the same


def test_check_data__tells_how_far_it_is(root: Path) -> None:
    seen: list[tuple[int, int]] = []
    check_data(root, on_read=lambda done, whole: seen.append((done, whole)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_data_check__sizes_in_the_keypoint_file(root: Path) -> None:
    document = json.loads((root / "keypoints.json").read_text())
    document["images"][0] |= {"height": 3, "width": 4}
    made.write_json(root / "keypoints.json", document)
    assert any("is (6, 8) (height, width), and" in fault for fault in check_data(root).faults)


def test_data_check__folders_that_are_not_read(root: Path) -> None:
    (root / "alpha").rename(root / "Alpha")
    (root / "part").mkdir()
    report = check_data(root)
    assert [fault for fault in report.faults if "there is no alpha beside it" in fault] == [
        f"{root / 'foreground'}: there is no alpha beside it, so its colours are of no use; expected {root / 'alpha'}"
    ]
    for name in ("Alpha", "part"):
        assert f"{root / name} was not read: its name is none of those that are known" in report.notes


def test_data_check__surfaces_that_masks_take_away__are_noted(root: Path) -> None:
    for stem in made.STEMS:
        made.save_picture(root / "masks" / f"{stem}.png", np.full((6, 8), 255 * (stem != "a"), np.uint8))
    assert {"1 pictures with empty normals", "1 pictures with empty depth"} <= set(check_data(root).notes)


def test_data_check__a_reader_that_is_not_installed__is_a_fault_of_its_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require(name: str, *, extra: str) -> None:
        raise MissingDependencyError(f"{name} is not installed; pip install 'sapiens2[{extra}]'")

    monkeypatch.setattr("sapiens2.data.loaders.files.require", require)
    (root / "normals" / "a.png").unlink()
    (root / "normals" / "a.exr").write_bytes(b"\x76\x2f\x31\x01")
    report = check_data(root)
    assert [fault for fault in report.faults if "OpenEXR is not installed" in fault]
    assert report.counts["parts"] == 3  # the rest is read all the same
