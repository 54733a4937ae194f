"""What lies in and beside folders of truth, and that the check and the loaders agree on it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import data_folders as made
from sapiens2.data import open_samples
from sapiens2.errors import InputError
from sapiens2.services.check_data import check_data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made.write_everything(tmp_path / "data")


@pytest.mark.parametrize("name", ["people/a.json", "scene.json"])
@pytest.mark.parametrize("content", [b"", b'{"stem": ', b"\xff\xfe", b"[" * 100_000])
def test_accounts_of_synth__damaged(name: str, content: bytes, root: Path) -> None:
    made.write_json(root / name, {"stem": "a"})
    assert check_data(root).faults == ()
    (root / name).write_bytes(content)
    (fault,) = check_data(root).faults
    assert fault.startswith(f"{root / name} is not")
    assert fault.endswith("`sapiens2 synth`, run again as before, makes it anew")


@pytest.mark.parametrize("task", ["normal", "pointmap", "albedo"])
def test_masks_that_hide_everything__are_noted(task: str, root: Path) -> None:
    for stem in made.STEMS:
        transparent = np.full((6, 8, 4), (200, 200, 200, 0), np.uint8)
        made.save_picture(
            root / "masks" / f"{stem}.png", transparent if stem == "a" else np.full((6, 8), 255, np.uint8)
        )
    report = check_data(root)
    assert report.faults == ()
    name = {"normal": "normals", "pointmap": "depth", "albedo": "albedo"}[task]
    assert f"1 pictures with empty {name}" in report.notes
    sample = open_samples(root, task=task)[0]
    assert not np.isfinite({"normal": sample.normals, "pointmap": sample.pointmap, "albedo": sample.albedo}[task]).any()


def pictures_in_folders(root: Path, below: str) -> Path:
    document = made.coco_document()
    for entry in document["images"]:
        entry["file_name"] = f"{entry['id']}/picture.png"  # the same stem in each folder
        made.save_picture(root / below / entry["file_name"], made.image())
    made.write_json(root / "keypoints.json", document)
    return root


@pytest.mark.parametrize("below", ["images", "."])
def test_keypoints__pictures_in_folders(below: str, tmp_path: Path) -> None:
    root = pictures_in_folders(tmp_path, below)
    assert len(open_samples(root, task="pose")) == len(open_samples(root / "keypoints.json", task="pose")) == 3
    report = check_data(root)
    assert (report.faults, report.kinds) == ((), ("keypoints",))
    assert (report.counts["pictures"], report.counts["people"]) == (3, 3)


def test_keypoints__pictures_in_folders_beside_others__are_faults(root: Path) -> None:
    document = json.loads((root / "keypoints.json").read_text())
    document["images"][0]["file_name"] = "more/a.png"
    made.save_picture(root / "images" / "more" / "a.png", made.image())
    made.write_json(root / "keypoints.json", document)
    message = f"keypoints.json lists it, and it does not lie in {root / 'images'} itself"
    assert any(message in fault for fault in check_data(root).faults)
    with pytest.raises(InputError, match=r"more/a\.png: keypoints\.json lists it"):
        open_samples(root, task="pose")


def test_truth__pictures_in_folders__says_that_they_are_not_looked_into(root: Path) -> None:
    shutil.move(root / "images", root / "moved")
    shutil.move(root / "moved", root / "images" / "inner")
    assert any("Folders in it are not looked into" in fault for fault in check_data(root).faults)
    with pytest.raises(InputError, match=r"There are no pictures in .*Folders in it are not looked into"):
        open_samples(root, task="seg")


@pytest.mark.parametrize("name", ["Normals", "part", "alpha_", "depth maps"])
def test_folders_of_other_names__are_noted(name: str, root: Path) -> None:
    (root / name).mkdir()
    assert check_data(root).notes == (f"{root / name} was not read: its name is none of those that are known",)


@pytest.mark.parametrize("size_hw", [(3, 4), (8, 6), (6, 9), (600, 800)])
def test_keypoints__sizes_that_pictures_do_not_have(size_hw: tuple[int, int], root: Path) -> None:
    document = json.loads((root / "keypoints.json").read_text())
    for entry in document["images"]:
        entry |= {"height": size_hw[0], "width": size_hw[1]}
    made.write_json(root / "keypoints.json", document)
    message = f"is (6, 8) (height, width), and {root / 'keypoints.json'} says {size_hw}"
    assert sum(message in fault for fault in check_data(root).faults) == len(made.STEMS)
    for spec in (root, f"coco:images={root / 'images'},annotations={root / 'keypoints.json'}"):
        with pytest.raises(InputError) as caught:
            open_samples(spec)[0]
        assert message in str(caught.value)
