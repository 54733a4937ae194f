from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sapiens2.errors import InputError
from sapiens2.services.box_file import read_boxes
from sapiens2.services.picture_files import PictureFile

BOX, OTHER = [1.0, 2.0, 30.0, 40.0], [5.0, 6.0, 7.0, 8.0]


def pictures(*paths: str) -> list[PictureFile]:
    return [PictureFile(Path(path), Path(), Path(path).stem) for path in paths]


def read(tmp_path: Path, document: Any, *paths: str, **options: Any) -> list[Any]:
    file = tmp_path / "boxes.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return [people.boxes.tolist() for people in read_boxes(file, pictures(*paths), **options)]


def test_read_boxes__by_name_path_and_place(tmp_path: Path) -> None:
    document = {"ä b.c.jpg": [BOX, OTHER], "in/x.png": [], "in/sub/x.png": [OTHER]}
    found = read(tmp_path, document, "in/x.png", "in/ä b.c.jpg", "in/sub/x.png")
    assert found == [[], [BOX, OTHER], [OTHER]]


def test_read_boxes__coco_document(tmp_path: Path) -> None:
    document = {
        "images": [{"id": 7, "file_name": "a.jpg"}, {"id": 9, "file_name": "b.jpg"}],
        "annotations": [
            {"image_id": 7, "bbox": BOX, "category_id": 3},
            {"image_id": 7, "bbox": OTHER, "category_id": 1},
        ],
        "categories": [{"id": 1, "name": "dog"}, {"id": 3, "name": "person"}],
    }
    assert read(tmp_path, document, "b.jpg", "a.jpg") == [[], [BOX]]


def test_read_boxes__coco_detections(tmp_path: Path) -> None:
    document = [
        {"image_id": 4016, "bbox": BOX, "category_id": 1, "score": 0.9},
        {"image_id": 4016, "bbox": OTHER, "category_id": 1, "score": 0.2},
        {"image_id": 4016, "bbox": OTHER, "category_id": 18, "score": 0.9},
        {"image_id": "photo", "bbox": OTHER},
    ]
    paths = ("000000004016.jpg", "photo.png", "nobody.jpg")
    assert read(tmp_path, document, *paths, min_score=0.3) == [[BOX], [OTHER], []]
    assert read(tmp_path, document, *paths)[0] == [BOX, OTHER]
    assert read(tmp_path, [], *paths) == [[], [], []]


def test_read_boxes__scores_are_kept_when_all_are_known(tmp_path: Path) -> None:
    entries = [("a", 0.5), ("a", 0.25), ("b", 0.5), ("b", None)]
    detections = [{"image_id": name, "bbox": BOX, "score": score} for name, score in entries if score is not None]
    detections += [{"image_id": name, "bbox": BOX} for name, score in entries if score is None]
    (tmp_path / "boxes.json").write_text(json.dumps(detections))
    first, second, third = read_boxes(tmp_path / "boxes.json", pictures("a.jpg", "b.jpg", "c.jpg"))
    assert first.scores is not None
    assert first.scores.tolist() == [0.5, 0.25]
    assert second.scores is None
    assert third.scores is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a.jpg": [], "c.jpg": [BOX]}, r"boxes for 'c.jpg', which is not among the inputs: in/a.jpg, in/b.jpg"),
        ({"a.jpg": [BOX]}, r'nothing is said of in/b.jpg; add "b.jpg": \[\] if nobody is there'),
        ({"a.jpg": [BOX], "in/a.jpg": [], "b.jpg": []}, "'in/a.jpg' is the second name of in/a.jpg"),
        ({"a.jpg": [[1, 2, 0, 4]], "b.jpg": []}, r"boxes.json: a.jpg: Box 0 is \[1.0, 2.0, 0.0, 4.0\]"),
        ({"a.jpg": [BOX, [1, 2, 3]], "b.jpg": []}, "boxes.json: a.jpg: Box 1 has 3 numbers"),
        ({"a.jpg": [["x", 1, 2, 3]], "b.jpg": []}, "boxes.json: a.jpg: Box 0"),
        ({"a.jpg": BOX, "b.jpg": []}, "boxes.json: a.jpg: .*one flat box"),
        ({"a.jpg": "none"}, "not a file of boxes"),
        ({"images": 3, "annotations": []}, "not a file of boxes"),
        ([{"bbox": BOX}], r"not a file of boxes \(KeyError\('image_id'\)\); expected"),
        ([1, 2], "not a file of boxes"),
        (None, "not a file of boxes"),
        ("text", "not a file of boxes"),
    ],
)
def test_read_boxes__says_what_is_wrong(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, document, "in/a.jpg", "in/b.jpg")


def test_read_boxes__a_name_of_two_pictures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a\.jpg' may mean in/a\.jpg, out/a\.jpg; give the path instead"):
        read(tmp_path, {"a.jpg": [BOX]}, "in/a.jpg", "out/a.jpg")


def test_read_boxes__a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the boxes in .*gone\.json: No such file"):
        read_boxes(tmp_path / "gone.json", pictures("a.jpg"))
    with pytest.raises(InputError, match="cannot read the boxes"):
        read_boxes(tmp_path, pictures("a.jpg"))
    (tmp_path / "broken.json").write_text('{"a.jpg": [[1, 2')
    with pytest.raises(InputError, match=r"broken\.json is not valid JSON"):
        read_boxes(tmp_path / "broken.json", pictures("a.jpg"))
    (tmp_path / "nan.json").write_text('{"a.jpg": [[NaN, 2, 3, 4]]}')
    with pytest.raises(InputError, match=r"nan\.json: a\.jpg: Box 0 .*not finite"):
        read_boxes(tmp_path / "nan.json", pictures("a.jpg"))


@pytest.mark.parametrize("score", [None, "0.9", True, [0.5], float("nan"), float("inf")])
@pytest.mark.parametrize("form", ["detections", "document"])
def test_read_boxes__a_score_is_a_number(tmp_path: Path, score: Any, form: str) -> None:
    entries = [{"image_id": "a", "bbox": BOX, "score": 0.5}, {"image_id": "a", "bbox": BOX, "score": score}]
    document = {"images": [{"id": "a", "file_name": "a.jpg"}], "annotations": entries}
    with pytest.raises(InputError, match=r'boxes\.json: detection 1 has "score": .*; expected a number'):
        read(tmp_path, entries if form == "detections" else document, "a.jpg")


@pytest.mark.parametrize("min_score", [float("nan"), float("inf"), float("-inf")])
def test_read_boxes__the_least_score_is_finite(tmp_path: Path, min_score: float) -> None:
    with pytest.raises(InputError, match="expected a finite number"):
        read(tmp_path, {"a.jpg": []}, "a.jpg", min_score=min_score)


@pytest.mark.parametrize(
    "text", ['{"a.jpg": [], "a.jpg": [[1, 2, 3, 4]]}', '[{"image_id": "a", "bbox": [1, 2, 3, 4], "image_id": "b"}]']
)
def test_read_boxes__a_key_that_occurs_twice_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "boxes.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"boxes\.json .*the key '(a\.jpg|image_id)' occurs twice"):
        read_boxes(file, pictures("a.jpg"))
