from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.io import PosedImage, coco_pose_document, read_coco_poses, write_coco_poses, write_json

NAMES = ("head", "left_hand", "right_hand")


def posed(people: int = 2, *, name: str = "a.b.jpg", **changes) -> PosedImage:
    rng = np.random.default_rng(people)
    fields = {
        "file_name": name,
        "size_hw": (40, 60),
        "keypoints": rng.uniform(0, 40, (people, 3, 2)).astype(np.float32),
        "scores": rng.uniform(0, 1, (people, 3)).astype(np.float32),
        "boxes_xyxy": np.tile(np.float32([1, 2, 31, 22]), (people, 1)),
    }
    return PosedImage(**fields | changes)


def test_write_coco_poses__round_trip_of_several_images(tmp_path):
    images = [posed(2), posed(0, name="empty.png"), posed(1, box_scores=[0.75], track_ids=[7])]
    path = write_coco_poses(tmp_path / "a.json", images, keypoint_names=NAMES)
    for stored, given in zip(read_coco_poses(path), images, strict=True):
        assert (stored.file_name, stored.size_hw) == (given.file_name, given.size_hw)
        np.testing.assert_allclose(stored.keypoints, given.keypoints, atol=6e-4)
        np.testing.assert_allclose(stored.scores, given.scores, atol=1e-5)
        np.testing.assert_allclose(stored.boxes_xyxy, given.boxes_xyxy, atol=1e-3)
    assert stored.box_scores.tolist() == [0.75]
    assert stored.track_ids.tolist() == [7]


def test_coco_pose_document__layout():
    image = posed(1, keypoints=[[[1.5, 2.5], [3, 4], [5, 6]]], scores=[[0.5, 1.25, 0.125]])
    document = coco_pose_document([image], keypoint_names=NAMES, skeleton=[(0, 1), (0, 2)], info={"model": "nano"})
    assert document == {
        "info": {"model": "nano"},
        "images": [{"id": 1, "file_name": "a.b.jpg", "height": 40, "width": 60}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 1,
                "iscrowd": 0,
                "bbox": [1.0, 2.0, 30.0, 20.0],
                "area": 600.0,
                "num_keypoints": 3,
                "keypoints": [1.5, 2.5, 2, 3.0, 4.0, 2, 5.0, 6.0, 2],
                "keypoint_scores": [0.5, 1.25, 0.125],
            }
        ],
        "categories": [
            {
                "id": 1,
                "name": "person",
                "supercategory": "person",
                "keypoints": list(NAMES),
                "skeleton": [[1, 2], [1, 3]],
            }
        ],
    }


@pytest.mark.parametrize("bad", [(math.nan, math.nan), (math.nan, 3.0), (math.inf, 3.0)])
def test_write_coco_poses__points_that_are_not_finite_become_zeros(tmp_path, bad):
    image = posed(1, keypoints=[[bad, (3, 4), (5, 6)]])
    path = write_coco_poses(tmp_path / "a.json", [image], keypoint_names=NAMES)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    (annotation,) = json.loads(path.read_text(), parse_constant=refuse)["annotations"]
    assert annotation["keypoints"][:3] == [0, 0, 0]
    assert (annotation["keypoint_scores"][0], annotation["num_keypoints"]) == (0, 2)
    (stored,) = read_coco_poses(path)
    assert np.isnan(stored.keypoints[0, 0]).all()


def test_coco_pose_document__ids_are_unique_and_sizes_per_image():
    images = [posed(2), posed(3, size_hw=(7, 9))]
    document = coco_pose_document(images, keypoint_names=NAMES)
    assert [a["id"] for a in document["annotations"]] == [1, 2, 3, 4, 5]
    assert [a["image_id"] for a in document["annotations"]] == [1, 1, 2, 2, 2]
    assert [(i["height"], i["width"]) for i in document["images"]] == [(40, 60), (7, 9)]


def test_coco_pose_document__number_of_names_must_match():
    with pytest.raises(InputError, match=r"a\.b\.jpg has 3 keypoints per person, and there are 2 keypoint_names"):
        coco_pose_document([posed()], keypoint_names=NAMES[:2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keypoints": np.zeros((2, 3))}, r"keypoints must have shape \(N, K, 2\)"),
        ({"scores": np.zeros((2, 4))}, r"scores must have shape \(2, 3\), got \(2, 4\)"),
        ({"boxes_xyxy": np.zeros((1, 4))}, r"boxes_xyxy must have shape \(2, 4\)"),
        ({"boxes_xyxy": np.full((2, 4), np.nan)}, "boxes_xyxy must be finite"),
        ({"box_scores": [0.5]}, r"box_scores must have shape \(2\)"),
        ({"track_ids": [0.5, 1.5]}, r"track_ids must be integers \(2,\), got float64"),
    ],
)
def test_posed_image__refuses(changes, message):
    with pytest.raises(InputError, match=message):
        posed(2, **changes)


def test_read_coco_poses__plain_coco_annotation(tmp_path):
    document = {
        "images": [{"id": 9, "file_name": "x.jpg", "height": 4, "width": 5}],
        "categories": [{"id": 1, "keypoints": ["a", "b"]}],
        "annotations": [{"image_id": 9, "bbox": [1, 2, 3, 4], "keypoints": [1, 2, 1, 0, 0, 0]}],
    }
    (image,) = read_coco_poses(write_json(tmp_path / "a.json", document))
    assert image.boxes_xyxy.tolist() == [[1, 2, 4, 6]]
    assert image.scores.tolist() == [[1, 0]]
    assert (image.box_scores, image.track_ids) == (None, None)


@pytest.mark.parametrize("document", [[], {}, {"images": [], "annotations": [], "categories": []}, {"categories": 1}])
def test_read_coco_poses__refuses_other_documents(tmp_path, document):
    with pytest.raises(InputError, match="is not a COCO keypoint document"):
        read_coco_poses(write_json(tmp_path / "a.json", document))
