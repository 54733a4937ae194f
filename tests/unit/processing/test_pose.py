import numpy as np
import pytest
import torch

from sapiens2.codecs import encode_heatmaps
from sapiens2.errors import InputError
from sapiens2.geometry import as_boxes, image_to_crop
from sapiens2.processing.pose import post_process_pose_estimation

HEATMAP = (64, 48)
BOXES = [[[10.0, 20.0, 60.0, 90.0], [80.0, 15.0, 45.0, 30.0]], [], [[-5.0, 3.0, 100.0, 200.0]]]
JOINTS = 7


def flat(boxes):
    return torch.cat([as_boxes(image_boxes) for image_boxes in boxes])


def people(boxes=BOXES, seed=0):
    """Keypoints inside each box, in pixels of the image, and their heatmaps."""
    all_boxes = flat(boxes)
    generator = torch.Generator().manual_seed(seed)
    keypoints = all_boxes[:, None, :2] + all_boxes[:, None, 2:] * torch.rand(
        len(all_boxes), JOINTS, 2, generator=generator
    )
    in_heatmap = image_to_crop(keypoints, all_boxes, HEATMAP)
    heatmaps, _ = encode_heatmaps(in_heatmap, torch.ones(len(all_boxes), JOINTS), HEATMAP, HEATMAP, 2.0)
    return keypoints, heatmaps


def test_post_process_pose_estimation__finds_the_keypoints_in_the_image():
    keypoints, heatmaps = people()
    results = post_process_pose_estimation(heatmaps, BOXES)
    assert [len(image) for image in results] == [2, 0, 1]
    persons = [person for image in results for person in image]
    for person, expected, box in zip(persons, keypoints, flat(BOXES), strict=True):
        assert set(person) == {"keypoints", "scores", "labels", "bbox"}
        pitch = 1.25 * max(box[2] / 47, box[3] / 63).item() * 4 / 3
        assert (person["keypoints"] - expected).abs().max() < 0.05 * pitch
        assert person["scores"].shape == (JOINTS,)
        assert person["labels"].tolist() == list(range(JOINTS))
        assert person["labels"].dtype == torch.int64
        assert person["keypoints"].dtype == person["scores"].dtype == person["bbox"].dtype == torch.float32
        torch.testing.assert_close(person["bbox"], torch.cat([box[:2], box[:2] + box[2:]]))


def as_arrays(boxes):
    return [np.array(image, dtype=np.float64).reshape(-1, 4) for image in boxes]


def as_tensors(boxes):
    return [torch.tensor(image).reshape(-1, 4) for image in boxes]


def assert_same(first, second):
    assert [len(image) for image in first] == [len(image) for image in second]
    for one, other in zip(
        [person for image in first for person in image], [person for image in second for person in image], strict=True
    ):
        for key, value in one.items():
            torch.testing.assert_close(value, other[key], equal_nan=True)


@pytest.mark.parametrize("convert", [as_arrays, as_tensors, tuple])
def test_post_process_pose_estimation__takes_boxes_of_any_kind(convert):
    heatmaps = people()[1]
    assert_same(post_process_pose_estimation(heatmaps, convert(BOXES)), post_process_pose_estimation(heatmaps, BOXES))


@pytest.mark.parametrize("convert", [np.array, torch.tensor])
def test_post_process_pose_estimation__takes_one_array_for_the_batch(convert):
    boxes = [BOXES[0], BOXES[0]]
    heatmaps = people(boxes)[1]
    assert_same(post_process_pose_estimation(heatmaps, convert(boxes)), post_process_pose_estimation(heatmaps, boxes))


def test_post_process_pose_estimation__does_not_depend_on_earlier_calls():
    heatmaps = people()[1]
    first = post_process_pose_estimation(heatmaps, BOXES)
    post_process_pose_estimation(torch.rand(3, JOINTS, 20, 40), BOXES)
    assert_same(post_process_pose_estimation(heatmaps, BOXES), first)


def test_post_process_pose_estimation__aspect_comes_from_the_heatmap():
    box = [[[0.0, 0.0, 100.0, 100.0]]]
    for height, width in ((64, 48), (48, 64), (40, 40)):
        heatmaps = torch.zeros(1, 2, height, width)
        heatmaps[0, 0, 0, 0] = heatmaps[0, 1, -1, -1] = 1
        points = post_process_pose_estimation(heatmaps, box)[0][0]["keypoints"]
        window_width, window_height = 125 * max(1, width / height), 125 * max(1, height / width)
        expected = [[50 - window_width / 2, 50 - window_height / 2], [50 + window_width / 2, 50 + window_height / 2]]
        torch.testing.assert_close(points, torch.tensor(expected), atol=1e-2, rtol=0)


def test_post_process_pose_estimation__padding_is_that_of_the_crops():
    box = [[[0.0, 0.0, 75.0, 100.0]]]
    heatmaps = torch.zeros(1, 1, 64, 48)
    heatmaps[0, 0, 0, 0] = 1
    points = post_process_pose_estimation(heatmaps, box, padding=1.0)[0][0]["keypoints"]
    torch.testing.assert_close(points, torch.zeros(1, 2), atol=1e-2, rtol=0)


def test_post_process_pose_estimation__flipped_heatmaps_are_averaged():
    heatmaps, other = people()[1], people(seed=1)[1]
    averaged = post_process_pose_estimation(heatmaps, BOXES, heatmaps_flipped=other)
    assert_same(averaged, post_process_pose_estimation((heatmaps + other) / 2, BOXES))


def test_post_process_pose_estimation__threshold_drops_what_is_not_above_it():
    heatmaps = torch.zeros(1, 4, *HEATMAP)
    for joint, score in enumerate((0.25, 0.5, 0.75, 0.0)):
        heatmaps[0, joint, 20, 10 + joint] = score
    person = post_process_pose_estimation(heatmaps, [[BOXES[0][0]]], threshold=0.25)[0][0]
    assert person["labels"].tolist() == [1, 2]
    assert person["scores"].tolist() == [0.5, 0.75]
    assert person["keypoints"].shape == (2, 2)
    person = post_process_pose_estimation(heatmaps, [[BOXES[0][0]]], threshold=5.0)[0][0]
    assert person["keypoints"].shape == (0, 2)


def test_post_process_pose_estimation__a_joint_without_a_peak_is_nan():
    heatmaps = people()[1]
    heatmaps[1, 3] = 0
    heatmaps[1, 4] = -1
    person = post_process_pose_estimation(heatmaps, BOXES)[0][1]
    assert person["keypoints"].isnan().all(dim=1).tolist() == [False, False, False, True, True, False, False]
    assert person["scores"][3:5].tolist() == [0, 0]
    kept = post_process_pose_estimation(heatmaps, BOXES, threshold=0.0)[0][1]
    assert kept["labels"].tolist() == [0, 1, 2, 5, 6]


@pytest.mark.parametrize("convert", [list, np.array, torch.tensor])
def test_post_process_pose_estimation__target_sizes_scale_points_and_boxes(convert):
    heatmaps = people()[1]
    plain = post_process_pose_estimation(heatmaps, BOXES)
    sources, targets = [(100, 200), (5, 5), (400, 300)], [(50, 600), (5, 5), (400, 150)]
    scaled = post_process_pose_estimation(heatmaps, BOXES, source_sizes=convert(sources), target_sizes=convert(targets))
    for image, ratio in ((0, (3.0, 0.5)), (2, (0.5, 1.0))):
        for before, after in zip(plain[image], scaled[image], strict=True):
            torch.testing.assert_close(after["keypoints"], before["keypoints"] * torch.tensor(ratio))
            torch.testing.assert_close(after["bbox"], before["bbox"] * torch.tensor(ratio * 2))


def test_post_process_pose_estimation__source_sizes_alone_change_nothing():
    heatmaps = people()[1]
    plain = post_process_pose_estimation(heatmaps, BOXES)
    assert_same(post_process_pose_estimation(heatmaps, BOXES, source_sizes=[(10, 20)] * 3), plain)


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [([], []), ([[]], [[]]), ([[], []], [[], []]), ([np.zeros((0, 4))], [[]]), (torch.zeros(2, 0, 4), [[], []])],
)
def test_post_process_pose_estimation__nobody(boxes, expected):
    assert post_process_pose_estimation(torch.zeros(0, JOINTS, *HEATMAP), boxes) == expected


@pytest.mark.parametrize("count", [0, 2, 4])
def test_post_process_pose_estimation__names_both_counts(count):
    with pytest.raises(InputError, match=rf"shape \({count}, 7, 64, 48\) and there are 3 boxes"):
        post_process_pose_estimation(torch.zeros(count, JOINTS, *HEATMAP), BOXES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heatmaps": torch.zeros(3, 64, 48)}, r"shape \(3, 64, 48\) and there are 3 boxes"),
        ({"boxes": flat(BOXES).tolist()}, "Boxes of image 0 are one flat box"),
        ({"boxes": [[[0, 0, 1, 0]], [], []]}, "Box 0 of image 0"),
        ({"target_sizes": [(5, 5)] * 3}, "target_sizes need source_sizes"),
        ({"source_sizes": [(5, 5)] * 2}, "source_sizes has 2 sizes for a batch of 3"),
        ({"source_sizes": [(5, 5)] * 3, "target_sizes": [(5, 5)] * 4}, "target_sizes has 4 sizes for a batch of 3"),
        ({"source_sizes": [(5, 0)] * 3}, r"source_sizes\[0\] is \(5, 0\)"),
        ({"kernel_size": 10}, "kernel_size is 10"),
        ({"heatmaps_flipped": torch.zeros(2, JOINTS, *HEATMAP)}, "the flipped ones"),
        ({"heatmaps": torch.ones(3, JOINTS, 64, 1)}, "must be at least 2"),
    ],
)
def test_post_process_pose_estimation__refuses_bad_input(change, message):
    arguments = {"heatmaps": torch.zeros(3, JOINTS, *HEATMAP), "boxes": BOXES}
    with pytest.raises(InputError, match=message):
        post_process_pose_estimation(**(arguments | change))
