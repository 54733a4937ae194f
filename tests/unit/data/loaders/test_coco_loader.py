from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_folders as made
from sapiens2.assets import keypoint_table
from sapiens2.data.loaders import COCO_NAMES, WHOLEBODY_NAMES, CocoKeypoints
from sapiens2.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index, stem in enumerate(made.STEMS):
        made.save_picture(tmp_path / "images" / f"{stem}.png", made.image(index))
    return tmp_path


def coco(folder: Path, document: Any, **options: Any) -> CocoKeypoints:
    made.write_json(folder / "people.json", document)
    return CocoKeypoints(folder / "images", folder / "people.json", **options)


def test_coco__one_person_or_one_picture_at_a_time(folder: Path) -> None:
    people = coco(folder, made.coco_document())
    assert len(people) == 3
    assert people[1].keypoints.shape == (1, 3, 3)
    assert people[1].name.endswith("a.png, person 2")
    np.testing.assert_array_equal(people[0].boxes_xywh, [[1, 1, 5, 4]])
    np.testing.assert_array_equal(people[2].image, made.image(1))
    pictures = coco(folder, made.coco_document(), per_person=False)
    assert [len(pictures[index].keypoints) for index in range(3)] == [2, 1, 0]
    assert pictures[2].keypoints.shape == (0, 3, 3)
    assert people.skeleton == ((0, 1), (0, 2))
    assert pickle.loads(pickle.dumps(people))[0].name == people[0].name


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (COCO_NAMES, 8),
        (keypoint_table().names, 146),
        (("Head", "LShoulder", "RShoulder"), 1),
        (("hand_L", "hand_R", "tail"), 1),
        (("leftPaw", "rightPaw"), 1),
        (("right_hoof", "left_hoof", "left_ear", "right_ear", "nose"), 2),
    ],
)
def test_coco__names_and_flip_pairs_come_from_the_file(names: tuple[str, ...], pairs: int, folder: Path) -> None:
    people = coco(folder, made.coco_document(len(names), names))
    assert people.keypoint_names == names
    assert len(people.flip_pairs) == pairs
    assert people[0].keypoints.shape == (1, len(names), 3)


def test_coco__whole_body_of_133(folder: Path) -> None:
    document = made.coco_document(17, COCO_NAMES)
    counts = {"foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}
    for entry in document["annotations"]:
        entry |= {field: [3.0, 2.0, 0.7] * count for field, count in counts.items()}
        entry |= {"lefthand_valid": False, "face_valid": True}
    people = coco(folder, document)
    assert people.keypoint_names == WHOLEBODY_NAMES
    assert len(WHOLEBODY_NAMES) == 133
    assert len(people.flip_pairs) == 8 + 3 + 29 + 21
    visible = people[0].keypoints[0, :, 2] > 0
    assert visible.sum() == 133 - 21
    assert not visible[WHOLEBODY_NAMES.index("left_hand_root")]


def test_coco__evaluation_file_of_the_published_models(folder: Path) -> None:
    document = made.coco_document(17, COCO_NAMES)
    for entry in document["annotations"]:
        entry["goliath_wholebody_kpts"] = [2.0, 3.0, 1.0] * 308
    assert coco(folder, document).keypoint_names == keypoint_table().names


def test_coco__what_is_left_out_is_said(folder: Path) -> None:
    document = made.coco_document()
    document["annotations"][0]["iscrowd"] = 1
    document["annotations"][1]["keypoints"] = [0] * 9
    document["annotations"][2]["keypoints"] = [100.0, 2.0, 2, 3.0, 2.0, 2, 3.0, -1.0, 1]
    people = coco(folder, document)
    assert len(people) == 1
    assert people.notes == {
        "crowds left out": 1,
        "people without visible keypoints left out": 1,
        "keypoints outside their picture taken for invisible": 2,
    }
    np.testing.assert_array_equal(people[0].keypoints[0, :, 2], [0, 2, 0])


def test_coco__box_of_visible_points_where_there_is_none(folder: Path) -> None:
    document = made.coco_document()
    document["annotations"][0].pop("bbox")
    document["annotations"][0]["keypoints"] = [1, 2, 2, 5, 4, 1, 0, 0, 0]
    np.testing.assert_array_equal(coco(folder, document)[0].boxes_xywh, [[1, 2, 4, 2]])


def changed(**fields: Any) -> dict[str, Any]:
    document = made.coco_document()
    document["annotations"][1] |= fields
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(keypoints=[1, 2, 2]), "annotation 2 has 3 numbers in keypoints; expected 9, 3 for each of 3"),
        (changed(keypoints=[1, 2, 7] * 3), "annotation 2 has a visibility of 7; expected 0, 1 or 2"),
        (changed(keypoints=[float("nan"), 2, 2] * 3), "annotation 2 has keypoint 0, which is not finite"),
        (changed(keypoints=["x"] * 9), "annotation 2 has .* for keypoints; expected a list of numbers"),
        (changed(bbox=[1, 2, 0, 4]), r"annotation 2 has the bbox \[1, 2, 0, 4\]"),
        (changed(bbox=[1, 2]), r"annotation 2 has the bbox \[1, 2\]"),
        (changed(image_id=99), "annotation 2 belongs to image 99, which is not listed"),
        (changed(image_id=[10]), r"annotation 2 has .*'image_id': '\[10\]'.*expected numbers"),
        (changed(id=None), "annotation at position 1 has .*expected numbers"),
        (changed(id=1), "annotation 1: another annotation has the same id"),
        (changed(keypoints=None), "annotation 2 has 'None' for keypoints; expected a list of numbers"),
        (changed(keypoints=[[1, 2], [3]]), "annotation 2 has .* for keypoints; expected a list of numbers"),
        (changed(keypoints=[1e300, 2, 2] * 3), "annotation 2 has keypoint 0 beyond 1e\\+07 pixels"),
        (changed(bbox=["a", 1, 2, 3]), "annotation 2 has .* for bbox; expected a list of numbers"),
        (changed(bbox=[100, 1, 5, 5]), "annotation 2 has the bbox .* outside its picture of 8 x 6"),
        (changed(bbox=[-20, 1, 5, 5]), "annotation 2 has the bbox .* outside its picture of 8 x 6"),
        (changed(track_id=[1]), r"annotation 2 has the track_id '\[1\]'; expected a number"),
    ],
)
def test_broken__annotations(document: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(InputError, match=rf"people\.json: {message}"):
        coco(folder, document)
    lenient = coco(folder, document, strict=False)
    assert len(lenient) == 2
    assert len(lenient.problems) == 1


def test_broken__annotation_without_keypoints(folder: Path) -> None:
    document = made.coco_document()
    del document["annotations"][1]["keypoints"]
    with pytest.raises(InputError, match="annotation 2 lacks 'keypoints'"):
        coco(folder, document)
    document["annotations"][1] = "nothing"
    with pytest.raises(InputError, match="annotation at position 1 is 'nothing'; expected an object"):
        coco(folder, document)


def test_broken__pictures(folder: Path) -> None:
    document = made.coco_document()
    document["images"][0]["file_name"] = "gone.png"
    with pytest.raises(InputError, match=r"1 problems.*\n.*gone\.png: there is no such picture, and people\.json"):
        coco(folder, document)
    document = made.coco_document()
    document["images"][1]["width"] = 9
    with pytest.raises(InputError, match=r"b\.left\.png is \(6, 8\).*says \(6, 9\)"):
        coco(folder, document)[2]
    del document["images"][0]["height"]
    with pytest.raises(InputError, match="image 0 lacks height"):
        coco(folder, document)
    document = made.coco_document()
    document["images"][1]["id"] = 10
    with pytest.raises(InputError, match="two images have the id 10"):
        coco(folder, document)
    (folder / "images" / "a.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"a\.png is empty"):
        coco(folder, made.coco_document())[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "people.json is empty"),
        ("{", "is not valid JSON"),
        ("[]", "is no COCO file"),
        ('{"images": [], "annotations": []}', "is no COCO file"),
        ('{"images": [], "annotations": [], "categories": []}', "0 lists of keypoint names"),
        (
            json.dumps({"images": [], "annotations": [], "categories": [{"keypoints": ["a", "a"]}]}),
            "keypoint names repeat",
        ),
    ],
)
def test_broken__documents(content: str, message: str, folder: Path) -> None:
    (folder / "people.json").write_text(content)
    with pytest.raises(InputError, match=message):
        CocoKeypoints(folder / "images", folder / "people.json")


def test_broken__no_file(folder: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*none\.json"):
        CocoKeypoints(folder / "images", folder / "none.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": [1]}, r"image 0 has the id '\[1\]'"),
        ({"file_name": 7}, "image 0 has .* the file_name '7'"),
        ({"height": -6}, "image 0 has the height -6 and the width 8; expected pixels from 1"),
        ({"width": "8"}, "image 0 has .* for height and width; expected a list of numbers"),
        ({"file_name": "b.left.png"}, "images 10 and 11 are both b.left.png"),
        ({"file_name": "../images/b.left.png"}, "images 10 and 11 are both b.left.png"),
    ],
)
def test_broken__images(fields: dict[str, Any], message: str, folder: Path) -> None:
    document = made.coco_document()
    document["images"][0] |= fields
    document["images"][1] |= {"id": 11} if "file_name" in fields else {}
    with pytest.raises(InputError, match=message):
        coco(folder, document)


@pytest.mark.parametrize("skeleton", ["x", [[1]], [["a", "b"]], [[1, None]], {"a": 1}])
def test_broken__skeleton(skeleton: Any, folder: Path) -> None:
    document = made.coco_document()
    document["categories"][0]["skeleton"] = skeleton
    with pytest.raises(InputError, match=r"people\.json: its skeleton .*expected"):
        coco(folder, document)


@pytest.mark.parametrize("name", ["", " ", 7, None, ["left_eye"]])
def test_broken__keypoint_without_a_name(name: Any, folder: Path) -> None:
    with pytest.raises(InputError, match=r"keypoint 1 of a category has the name .*; expected text"):
        coco(folder, made.coco_document(names=("nose", name, "right_eye")))


@pytest.mark.parametrize("names", ["nose", 3, {"nose": 1}])
def test_broken__keypoint_names_that_are_no_list(names: Any, folder: Path) -> None:
    document = made.coco_document()
    document["categories"][0]["keypoints"] = names
    with pytest.raises(InputError, match=r"people\.json: keypoints of a category is .*; expected a list of names"):
        coco(folder, document)


@pytest.mark.parametrize("crowd", ["0", "no", 2, [1], 0.5])
def test_broken__crowds(crowd: Any, folder: Path) -> None:
    with pytest.raises(InputError, match=r"annotation 2 has the iscrowd .*; expected 0 or 1"):
        coco(folder, changed(iscrowd=crowd))


def test_json__byte_order_mark_and_depth(folder: Path) -> None:
    file = folder / "people.json"
    made.write_json(file, made.coco_document())
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(CocoKeypoints(folder / "images", file)) == 3
    file.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(InputError, match="nested too deeply"):
        CocoKeypoints(folder / "images", file)
