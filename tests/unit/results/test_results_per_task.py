"""What the result of one task holds, refuses, writes and says."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from sapiens2.assets import keypoint_table, part_table
from sapiens2.errors import InputError
from sapiens2.io import read_coco_poses, read_json, read_normals_png, read_npz, read_ply, read_png
from sapiens2.results import SegmentationResult

NOBODY = {"keypoints": np.zeros((0, 308, 2)), "scores": np.zeros((0, 308)), "boxes_xyxy": np.zeros((0, 4))}


def test_pose_save__json_holds_the_people(tmp_path, make_result):
    result = make_result("pose", box_scores=[0.5, 1.0], track_ids=[4, 9])
    _, path = result.save(tmp_path)
    (image,) = read_coco_poses(path)
    assert (image.file_name, image.size_hw) == ("a.b.jpg", (30, 40))
    np.testing.assert_allclose(image.keypoints, result.keypoints, atol=1e-3)
    assert image.track_ids.tolist() == [4, 9]
    document = read_json(path)
    assert document["categories"][0]["keypoints"] == list(keypoint_table().names)
    assert document["info"]["comment"] == "model: nano-pose (random weights)"


def test_pose__nobody_works_everywhere(tmp_path, make_result):
    result = make_result("pose", **NOBODY)
    assert len(result) == 0
    assert result
    np.testing.assert_array_equal(result.draw(boxes=True), result.image)
    assert result.to_dict()["people"] == []
    assert result.person_scores.shape == (0,)
    assert read_coco_poses(result.save(tmp_path)[1])[0].keypoints.shape == (0, 308, 2)


def test_pose_person_scores__mean_of_the_sure_points_times_the_box(make_result):
    fields = {"keypoints": np.zeros((2, 3, 2)), "boxes_xyxy": np.zeros((2, 4)), "box_scores": [0.5, 1.0]}
    result = make_result("pose", scores=[[0.1, 0.6, 1.0], [0.1, 0.0, 0.2]], **fields)
    np.testing.assert_allclose(result.person_scores, [0.4, 0.0], atol=1e-6)


def test_pose_to_dict__people_with_none_for_points_that_are_not_there(make_result):
    people = make_result("pose", box_scores=[0.5, 1.0], track_ids=[4, 9]).to_dict()["people"]
    assert [len(person["keypoints"]) for person in people] == [308, 308]
    assert people[0]["keypoints"][7] is None
    assert (people[1]["track_id"], people[0]["box_score"], people[0]["box_xyxy"]) == (9, 0.5, [1, 2, 20, 28])


def test_pose__other_sets_of_keypoints(tmp_path, make_result):
    fields = {"keypoints": np.full((1, 2, 2), 10.0), "scores": np.ones((1, 2)), "boxes_xyxy": np.zeros((1, 4))}
    assert make_result("pose", **fields).names == ("keypoint_0", "keypoint_1")
    result = make_result("pose", **fields, keypoint_names=["a", "b"], skeleton=[[0, 1]])
    category = read_json(result.save(tmp_path)[1])["categories"][0]
    assert (category["keypoints"], category["skeleton"]) == (["a", "b"], [[1, 2]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keypoints": np.zeros((308, 2))}, r"keypoints must have shape \(N, K, 2\), got \(308, 2\)"),
        ({"scores": np.zeros((2, 17))}, r"scores must have shape \(2, 308\), got \(2, 17\)"),
        ({"scores": np.full((2, 308), np.nan)}, "scores must be finite"),
        ({"boxes_xyxy": np.zeros((1, 4))}, r"boxes_xyxy must have shape \(2, 4\), got \(1, 4\)"),
        ({"keypoint_names": ["a"]}, "keypoint_names must be 308 unique names, got 1"),
        ({"keypoint_names": ["a"] * 308}, "keypoint_names must be 308 unique names, got 1"),
        ({"skeleton": [(0, 308)]}, r"skeleton must join keypoints 0..307"),
    ],
)
def test_pose__refuses(make_result, changes, message):
    with pytest.raises(InputError, match=message):
        make_result("pose", **changes)


def test_segmentation_save__class_map_has_ids_and_palette(tmp_path, make_result):
    ids = np.arange(30 * 40).reshape(30, 40) % 29
    ids[0, 0] = 255
    _, path = make_result("seg", segmentation=ids).save(tmp_path)
    contents = read_png(path)
    np.testing.assert_array_equal(contents.pixels, ids)
    np.testing.assert_array_equal(contents.palette_rgb[:29], part_table().palette_rgb)


def test_segmentation_to_dict__fractions_of_the_classes_that_are_present(make_result):
    ids = np.zeros((30, 40), np.int64)
    ids[:15], ids[0, :12] = 23, 255
    summary = make_result("seg", segmentation=ids).to_dict()
    assert summary["classes"] == [
        {"id": 0, "name": "Background", "pixels": 600, "fraction": 0.5},
        {"id": 23, "name": "Upper_Clothing", "pixels": 588, "fraction": 0.49},
    ]
    assert summary["ignored_pixels"] == 12


def test_segmentation__own_classes_get_own_colours(tmp_path, make_result):
    result = make_result("seg", segmentation=np.ones((30, 40), int), class_names=["nothing", "cat"])
    assert result.to_dict()["classes"][0]["name"] == "cat"
    assert len(set(result.palette)) == 2
    assert len(result.save(tmp_path)) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segmentation": np.zeros((30, 40))}, r"segmentation must be integers \(30, 40\), got float64"),
        ({"segmentation": np.full((30, 40), 29)}, "id 29; expected 0..28 or 255"),
        ({"segmentation": np.full((30, 40), -1)}, "id -1"),
        ({"segmentation": np.full((30, 40), 1000)}, "id 1000"),
        ({"class_names": ["a"] * 65536}, "class_names must be 1 to 65535 names, got 65536"),
        ({"palette_rgb": [(0, 0, 0)]}, r"palette_rgb must be 29 RGB colours in 0..255, got shape \(1, 3\)"),
    ],
)
def test_segmentation__refuses(make_result, changes, message):
    with pytest.raises(InputError, match=message):
        make_result("seg", **changes)


def test_normal_save__both_data_files_hold_the_normals(tmp_path, make_result):
    result = make_result("normal", foreground_mask=np.zeros((30, 40), bool))
    picture, png, npz = result.save(tmp_path)
    assert np.abs(read_normals_png(png) - result.normals).max() < 1.6e-5
    np.testing.assert_array_equal(read_npz(npz)["normals"], result.normals)
    assert not np.asarray(Image.open(picture)).any()


def test_normal_to_dict__coverage_and_mean(make_result):
    normals = np.zeros((3, 30, 40))
    normals[2, :15] = -1
    summary = make_result("normal", normals=normals).to_dict()
    assert (summary["coverage"], summary["mean_normal"]) == (0.5, [0, 0, -1])
    assert make_result("normal", normals=np.zeros((3, 30, 40))).to_dict()["mean_normal"] is None


@pytest.mark.parametrize(
    ("normals", "message"),
    [
        (np.zeros((30, 40, 3)), r"normals must have shape \(3, 30, 40\), got \(30, 40, 3\)"),
        (np.full((3, 30, 40), np.nan), "normals must be finite"),
        (np.ones((3, 30, 40)), "one of length 1.732; normalise them"),
    ],
)
def test_normal__refuses(make_result, normals, message):
    with pytest.raises(InputError, match=message):
        make_result("normal", normals=normals)


def test_pointmap_save__cloud_has_the_valid_points_and_no_other(tmp_path, make_result):
    result = make_result("pointmap")
    _, npz, ply = result.save(tmp_path)
    cloud, valid = read_ply(ply), result.valid
    assert len(cloud.points) == 30 * 40 - 3
    np.testing.assert_array_equal(cloud.points, result.pointmap[:, valid].T)
    np.testing.assert_array_equal(cloud.colors_rgb, result.image[valid])
    stored = read_npz(npz)
    np.testing.assert_array_equal(stored["pointmap"], result.pointmap)
    assert (stored["scale"].item(), stored["is_metric"].item()) == (0.5, True)
    assert b"comment unit: metre\n" in ply.read_bytes()


def test_pointmap_save__mask_leaves_people_in_the_cloud(tmp_path, make_result):
    mask = np.zeros((30, 40), bool)
    mask[10:12, 5:8] = True
    result = make_result("pointmap", foreground_mask=mask)
    assert len(read_ply(result.save(tmp_path)[2]).points) == 6
    assert result.to_dict()["coverage"] == 6 / 1200


@pytest.mark.parametrize("value", [np.nan, -1.0, 0.0, np.inf])
def test_pointmap__without_valid_points_everything_still_works(tmp_path, make_result, value):
    result = make_result("pointmap", pointmap=np.full((3, 30, 40), value), scale=None, is_metric=False)
    assert len(read_ply(result.save(tmp_path)[2]).points) == 0
    assert (result.to_dict()["depth"], result.to_dict()["coverage"]) == (None, 0)


def test_pointmap_to_dict__depth_percentiles(make_result):
    summary = make_result("pointmap", pointmap=np.full((3, 30, 40), 2.5)).to_dict()
    assert summary["depth"] == {"near": 2.5, "median": 2.5, "far": 2.5}


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_pointmap__unusable_scale_is_kept_but_not_metric(make_result, scale):
    assert make_result("pointmap", scale=scale, is_metric=False).draw().shape == (30, 40, 3)
    with pytest.raises(InputError, match="a metric pointmap needs a positive scale"):
        make_result("pointmap", scale=scale, is_metric=True)


def test_matting_save__cut_out_laid_over_a_colour_gives_the_composite(tmp_path, make_result):
    result = make_result("matting")
    _, rgba_path, alpha_path = result.save(tmp_path)
    with Image.open(rgba_path) as cut_out:
        over = Image.alpha_composite(Image.new("RGBA", cut_out.size, (10, 200, 90, 255)), cut_out)
    difference = np.asarray(over)[..., :3].astype(int) - result.draw(background=(10, 200, 90))
    assert np.abs(difference).max() <= 2
    np.testing.assert_array_equal(read_png(alpha_path).pixels, np.rint(result.alpha * 255))


def test_matting_to_dict__coverage(make_result):
    alpha = np.zeros((30, 40))
    alpha[:15], alpha[15:18] = 1, 0.5
    summary = make_result("matting", alpha=alpha, foreground=np.zeros((3, 30, 40))).to_dict()
    assert summary["coverage"] == pytest.approx(0.55)
    assert (summary["opaque"], summary["soft"]) == (0.5, 0.1)


@pytest.mark.parametrize(("task", "field"), [("matting", "alpha"), ("matting", "foreground"), ("albedo", "albedo")])
def test_unit_range__small_overshoot_is_clipped_and_more_is_refused(make_result, task, field):
    shape = (30, 40) if field == "alpha" else (3, 30, 40)
    clipped = getattr(make_result(task, **{field: np.full(shape, 1.0005)}), field)
    assert (clipped == 1).all()
    for value, found in ((255.0, "255..255"), (-0.5, "-0.5..-0.5")):
        with pytest.raises(InputError, match=rf"{field} must lie in \[0, 1\], got {found}"):
            make_result(task, **{field: np.full(shape, value)})


def test_albedo_save__array_is_not_masked(tmp_path, make_result):
    result = make_result("albedo", foreground_mask=np.zeros((30, 40), bool))
    picture, npz = result.save(tmp_path)
    assert (read_png(picture).pixels == 100).all()
    np.testing.assert_array_equal(read_npz(npz)["albedo"], result.albedo)
    assert result.to_dict()["mean_rgb"] is None


@pytest.mark.parametrize("task", ["normal", "pointmap", "albedo"])
def test_foreground_mask__must_be_booleans_of_the_size(make_result, task):
    with pytest.raises(InputError, match=r"foreground_mask must be bool \(30, 40\), got uint8"):
        make_result(task, foreground_mask=np.ones((30, 40), np.uint8))


@pytest.mark.parametrize("num_classes", [255, 256, 300])
def test_segmentation_result__many_classes(num_classes, tmp_path):
    ids = np.arange(30 * 40).reshape(30, 40) % num_classes
    names = [f"class_{index}" for index in range(num_classes)]
    ignored = 255 if num_classes == 255 else 65535
    ids[0, :3] = ignored
    result = SegmentationResult(image=np.zeros((30, 40, 3), np.uint8), segmentation=ids, class_names=names)
    assert result.segmentation.dtype == (np.uint8 if num_classes == 255 else np.uint16)
    assert result.ignore_index == ignored
    np.testing.assert_array_equal(result.segmentation, ids)
    np.testing.assert_array_equal(result.foreground_mask, (ids != 0) & (ids != ignored))
    summary = result.to_dict()
    assert [entry["name"] for entry in summary["classes"]] == names
    assert summary["ignored_pixels"] == 3
    assert len(set(result.palette)) == num_classes
    assert result.draw().shape == (30, 40, 3)
    np.testing.assert_array_equal(read_png(result.save(tmp_path, "a")[1]).pixels, ids)


def test_segmentation_result__an_id_beyond_many_classes_is_refused():
    ids = np.full((30, 40), 300)
    with pytest.raises(InputError, match=r"has id 300; expected 0\.\.299 or 65535"):
        SegmentationResult(image=np.zeros((30, 40, 3), np.uint8), segmentation=ids, class_names=["a"] * 300)
