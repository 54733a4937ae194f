"""Crops, targets and keypoints against the image processor of transformers, resizing against torchvision."""

from types import SimpleNamespace

import pytest
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2.functional import resize
from transformers import Sapiens2ImageProcessor

from sapiens2.codecs import encode_heatmaps
from sapiens2.geometry import as_boxes, crop_people, image_to_crop, letterbox_geometry, resize_image
from sapiens2.processing.pose import post_process_pose_estimation

SIZE, HEATMAP = (128, 96), (32, 24)
MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def oracle(size_hw=SIZE, **settings):
    return Sapiens2ImageProcessor(size={"height": size_hw[0], "width": size_hw[1]}, **settings)


def random_image(height, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (3, height, width), generator=generator, dtype=torch.uint8)


@pytest.mark.parametrize("hw", [(120, 90), (600, 500), (61, 1000)])
def test_crop_people__pixels(hw):
    height, width = hw
    image = random_image(height, width)
    boxes = [
        [5.0, 6, 30, 80],
        [0, 0, width, height],
        [-20, -30, 60, 70],
        [width - 5, height - 5, 50, 50],
        [10.3, 10, 76, 20],
        [3, 3, 76.2, 101.9],
        [width + 200, 0, 5, 5],
    ]
    expected = oracle()(image, boxes=[boxes], return_tensors="pt")["pixel_values"]
    crops = (crop_people(image, as_boxes(boxes), SIZE) / 255 - MEAN) / STD
    torch.testing.assert_close(crops, expected, atol=1e-2, rtol=0)


@pytest.mark.parametrize("width", [75.9, 75.99, 76.0, 76.01, 76.05, 76.2, 76.25, 76.5])
def test_crop_people__filter_at_the_size_where_it_changes(width):
    image = random_image(300, 300)
    boxes = [[20.0, 20.0, width, width * 4 / 3]]
    expected = oracle()(image, boxes=[boxes], return_tensors="pt")["pixel_values"]
    crops = (crop_people(image, as_boxes(boxes), SIZE) / 255 - MEAN) / STD
    torch.testing.assert_close(crops, expected, atol=1e-2, rtol=0)


def test_letterbox_geometry__place_of_the_image():
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(20, 300, (60, 2), generator=generator).tolist()
    for height, width in [*sizes, [100, 100], [101, 99], [333, 250], [1023, 768], [64, 47]]:
        image = torch.full((3, height, width), 200, dtype=torch.uint8)
        padded = oracle(do_normalize=False, do_rescale=False, do_pad=True)(image, return_tensors="pt")["pixel_values"]
        shown = padded[0, 0].nonzero()
        first, last = shown.amin(dim=0), shown.amax(dim=0)
        box = letterbox_geometry((height, width), SIZE)
        assert (box.top, box.left) == tuple(first.tolist())
        assert box.scaled_hw == tuple((last - first + 1).tolist())


@pytest.mark.parametrize(
    ("code", "mode"),
    [(0, InterpolationMode.NEAREST_EXACT), (2, InterpolationMode.BILINEAR), (3, InterpolationMode.BICUBIC)],
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16])
@pytest.mark.parametrize("antialias", [True, False])
def test_resize_image__equals_torchvision(code, mode, dtype, antialias):
    for source in ((50, 40), (31, 77), (128, 96)):
        images = torch.stack([random_image(*source, seed) for seed in range(2)]).to(dtype)
        for size in ((64, 48), (17, 90), (128, 96), (1, 30)):
            expected = resize(images, list(size), interpolation=mode, antialias=antialias)
            torch.testing.assert_close(resize_image(images, size, code, antialias), expected, atol=0, rtol=0)


@pytest.mark.parametrize("sigma", [1.3, 2.0, 2.5, 6.0])
def test_encode_heatmaps__targets_of_keypoints_inside_the_crop(sigma):
    box = [50.0, 50.0, 76.0, 101.0]
    window = torch.tensor([94.6875, 126.25])  # 101 * 1.25 high, 3:4
    generator = torch.Generator().manual_seed(0)
    keypoints = torch.tensor([88.0, 100.5]) + (torch.rand(40, 2, generator=generator) - 0.5) * 0.99 * window
    visibility = torch.randint(0, 3, (40, 1), generator=generator)
    annotated = torch.cat([keypoints, visibility], dim=1).tolist()
    expected = oracle()(
        random_image(300, 300),
        boxes=[[box]],
        keypoints=[[annotated]],
        keypoint_heatmap_sigma=sigma,
        return_tensors="pt",
    )
    in_crop = image_to_crop(keypoints[None], as_boxes([box]), SIZE)
    heatmaps, weights = encode_heatmaps(in_crop, visibility.view(1, -1), SIZE, HEATMAP, sigma)
    torch.testing.assert_close(heatmaps, expected["labels"], atol=1e-4, rtol=0)
    torch.testing.assert_close(weights, expected["label_weights"], atol=0, rtol=0)


def test_encode_heatmaps__keypoints_outside_the_crop_differ_on_purpose():
    box, outside = [50.0, 50.0, 76.0, 101.0], [38.0, 90.0, 2.0]  # 2.7 pixels left of the window
    expected = oracle()(
        random_image(300, 300), boxes=[[box]], keypoints=[[[outside]]], keypoint_heatmap_sigma=2.0, return_tensors="pt"
    )
    in_crop = image_to_crop(torch.tensor([[outside[:2]]]), as_boxes([box]), SIZE)
    heatmaps, weights = encode_heatmaps(in_crop, torch.tensor([[2]]), SIZE, HEATMAP, 2.0)
    assert expected["label_weights"].item() == 1
    assert expected["labels"].max() > 0
    assert weights.item() == 0
    assert (heatmaps == 0).all()


BOXES = [[[10.5, 20, 100, 200], [30, 40, 50.5, 60]], [[0, 0, 200.0, 180.0]]]


def interior_heatmaps(hw=(64, 48), joints=50):
    height, width = hw
    generator = torch.Generator().manual_seed(0)
    points = 10 + torch.rand(3, joints, 2, generator=generator) * torch.tensor([width - 21.0, height - 21.0])
    return encode_heatmaps(points, torch.ones(3, joints), hw, hw, 2.0)[0]


def decode_both(heatmaps, size_hw=(256, 192), boxes=BOXES, **settings):
    outputs = SimpleNamespace(heatmaps=heatmaps)
    expected = oracle(size_hw).post_process_pose_estimation(outputs, boxes=boxes, **settings)
    ours = post_process_pose_estimation(heatmaps, boxes, **settings)
    assert [len(image) for image in ours] == [len(image) for image in expected]
    return [person for image in ours for person in image], [person for image in expected for person in image]


@pytest.mark.parametrize("kernel_size", [3, 5, 7, 11, 17])
@pytest.mark.parametrize("kind", ["clean", "noisy", "faint", "strong"])
def test_post_process_pose_estimation__keypoints_in_the_interior(kernel_size, kind):
    heatmaps = interior_heatmaps()
    if kind != "clean":
        noise = torch.randn(heatmaps.shape, generator=torch.Generator().manual_seed(1))
        heatmaps = {"noisy": 0.8, "faint": 0.05, "strong": 90.0}[kind] * (heatmaps + 0.02 * noise)
    for person, expected in zip(*decode_both(heatmaps, kernel_size=kernel_size), strict=True):
        # 1e-4 px, and the last two digits of float32 at the far side of the picture
        torch.testing.assert_close(person["keypoints"], expected["keypoints"], atol=1e-4, rtol=1e-6)
        torch.testing.assert_close(person["scores"], expected["scores"], atol=0, rtol=0)
        assert person["labels"].equal(expected["labels"])
        torch.testing.assert_close(person["bbox"], expected["bbox"], atol=0, rtol=0)


def test_post_process_pose_estimation__threshold_and_sizes():
    heatmaps = interior_heatmaps() * torch.rand(3, 50, 1, 1, generator=torch.Generator().manual_seed(0))
    settings = {"threshold": 0.4, "source_sizes": [(100, 200), (300, 400)], "target_sizes": [(50, 300), (600, 100)]}
    for person, expected in zip(*decode_both(heatmaps, **settings), strict=True):
        assert set(person) == set(expected)
        assert 0 < len(person["labels"]) < 50
        for key, value in expected.items():
            torch.testing.assert_close(person[key], value, atol=1e-4, rtol=1e-6)


def test_post_process_pose_estimation__heatmaps_of_other_shapes():
    for person, expected in zip(*decode_both(interior_heatmaps((40, 64)), (160, 256)), strict=True):
        torch.testing.assert_close(person["keypoints"], expected["keypoints"], atol=1e-4, rtol=1e-6)


def test_post_process_pose_estimation__at_the_border_ours_is_nearer_to_the_truth():
    box = [[[0.0, 0.0, 75.0, 100.0]]]
    edge = torch.tensor([0.0, 0.4, 1.0, 2.0, 3.3, 23.0, 45.0, 46.6, 47.0])
    truth = torch.cartesian_prod(edge, torch.tensor([0.0, 0.7, 2.0, 30.2, 61.0, 63.0]))
    heatmaps, _ = encode_heatmaps(truth[None], torch.ones(1, len(truth)), (64, 48), (64, 48), 2.0)
    (ours,), (expected,) = decode_both(heatmaps, boxes=box)
    error, upstream_error = (
        (image_to_crop(person["keypoints"][None], as_boxes(box[0]), (64, 48))[0] - truth).abs().amax(dim=1)
        for person in (ours, expected)
    )
    assert error.max() < 0.01
    assert upstream_error.max() > 0.4
    assert (error <= upstream_error + 0.01).all()
