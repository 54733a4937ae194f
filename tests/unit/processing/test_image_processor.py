"""The image processor: settings, whole images, people, label maps and keypoints."""

from __future__ import annotations

import io
import json
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from sapiens2.errors import ConfigurationError, InputError
from sapiens2.processing import Sapiens2ImageProcessor

SIZE = {"height": 64, "width": 48}
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


@pytest.fixture(scope="module")
def processor() -> Sapiens2ImageProcessor:
    return Sapiens2ImageProcessor(size=SIZE)


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))


def raw(pixel_values: torch.Tensor) -> torch.Tensor:
    """Undo rescaling and normalising."""
    return (pixel_values * STD + MEAN) * 255


# Settings


def test_image_processor__defaults_of_the_reference() -> None:
    processor = Sapiens2ImageProcessor()
    assert dict(processor.size) == {"height": 1024, "width": 768}
    assert dict(processor.crop_size) == {"height": 224, "width": 224}
    assert (processor.do_resize, processor.do_pad, processor.do_center_crop) == (True, False, False)
    assert (processor.do_rescale, processor.do_normalize, processor.do_reduce_labels) == (True, True, False)
    assert (processor.resample, processor.rescale_factor) == (2, 1 / 255)
    assert (processor.keypoint_heatmap_downscale_factor, processor.keypoint_heatmap_sigma) == (4, 6.0)


def test_image_processor__json_round_trip(tmp_path: Path) -> None:
    processor = Sapiens2ImageProcessor(size=SIZE, do_pad=True, do_reduce_labels=True, keypoint_heatmap_sigma=2.0)
    processor.save_pretrained(tmp_path)
    loaded = Sapiens2ImageProcessor.from_pretrained(tmp_path)
    assert loaded.to_dict() == processor.to_dict()
    stored = json.loads((tmp_path / "preprocessor_config.json").read_text())
    assert stored["image_processor_type"] == "Sapiens2ImageProcessor"
    assert stored["size"] == SIZE
    assert Sapiens2ImageProcessor.from_pretrained(tmp_path, do_pad=False).do_pad is False


def test_image_processor__bad_size() -> None:
    with pytest.raises(ConfigurationError, match="size"):
        Sapiens2ImageProcessor(size={"depth": 3})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"do_resize": "yes"}, "do_resize"),
        ({"size": {"depth": 3}}, "size"),
        ({"size": {"min_pixels": 10, "max_pixels": 20}}, "expected height and width"),
        ({"data_format": "channels_last"}, "channels_first"),
        ({"return_tensors": "tf"}, "return_tensors"),
        ({"image_std": [1.0, 0.0, 1.0]}, "image_std is"),
        ({"image_mean": [1.0, 0.0]}, "image_mean is"),
        ({"resample": 4}, "box"),
        ({"do_pad": True, "size": {"shortest_edge": 32}}, "do_pad=True"),
        ({"do_pad": True, "pad_size": {"height": 99, "width": 99}}, r"pad_size \(99, 99\) differs from size"),
        ({"do_resize": False, "do_pad": True, "pad_size": 10}, "smaller than an image"),
        ({"boxes": [[[1, 1, 9, 9]]], "size": {"shortest_edge": 32}}, "boxes need size"),
        ({"keypoint_heatmap_downscale_factor": 0, "boxes": [[]]}, "downscale_factor is 0"),
        ({"input_data_format": "hwc"}, "input_data_format"),
    ],
)
def test_preprocess__setting_that_makes_no_sense(
    processor: Sapiens2ImageProcessor, photo: Image.Image, setting: dict, message: str
) -> None:
    images = np.array(photo) if "input_data_format" in setting else photo
    with pytest.raises(InputError, match=message):
        processor(images, **setting)


def test_preprocess__unknown_setting(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    with pytest.raises(TypeError, match=r"no settings \['do_resiez'\]"):
        processor(photo, do_resiez=False)


def test_preprocess__integers_do_for_float_settings(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    assert processor(photo, rescale_factor=1, do_normalize=False)["pixel_values"][0].max() > 200


def test_preprocess__calls_leave_no_trace(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    before = processor.to_json_string(), dict(vars(processor))
    processor(photo, size=(32, 32), do_pad=True, image_mean=0.5, boxes=[[[0, 0, 9, 9]]], return_tensors="np")
    assert (processor.to_json_string(), dict(vars(processor))) == before


def test_preprocess__threads_share_a_processor(processor: Sapiens2ImageProcessor) -> None:
    photos = [np.random.default_rng(seed).integers(0, 256, (40, 30 + seed, 3), dtype=np.uint8) for seed in range(6)]
    settings = [{"size": (16 + seed, 32), "do_pad": bool(seed % 2)} for seed in range(6)]
    expected = [processor(image, **kwargs)["pixel_values"][0] for image, kwargs in zip(photos, settings, strict=True)]
    got: list[torch.Tensor | None] = [None] * 6

    def work(index: int) -> None:
        for _ in range(5):
            got[index] = processor(photos[index], **settings[index])["pixel_values"][0]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


# Whole images


def test_preprocess__kinds_of_tensors(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    as_list = processor([photo, photo])["pixel_values"]
    assert isinstance(as_list, list)
    assert as_list[0].shape == (3, 64, 48)
    as_torch = processor(photo, return_tensors="pt")["pixel_values"]
    assert as_torch.shape == (1, 3, 64, 48)
    assert as_torch.dtype == torch.float32
    assert as_torch.is_contiguous()
    as_numpy = processor(photo, return_tensors="np")["pixel_values"]
    assert isinstance(as_numpy, np.ndarray)
    assert np.array_equal(as_numpy, as_torch.numpy())


def test_preprocess__batch_equals_singles(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    images = [photo, np.array(photo)[:50], torch.zeros(3, 10, 10), Image.new("L", (3, 200), 9)]
    batch = processor(images, return_tensors="pt")["pixel_values"]
    assert batch.shape == (4, 3, 64, 48)
    for single, row in zip(images, batch, strict=True):
        assert torch.equal(processor(single, return_tensors="pt")["pixel_values"][0], row)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "F", "I"])
@pytest.mark.parametrize("boxes", [None, [[[2, 2, 20, 20]]]])
def test_preprocess__every_pil_mode(processor: Sapiens2ImageProcessor, mode: str, boxes) -> None:
    pixel_values = processor(Image.new(mode, (30, 40)), boxes=boxes, return_tensors="pt")["pixel_values"]
    assert pixel_values.shape == (1, 3, 64, 48)


def test_preprocess__normalises_as_imagenet(processor: Sapiens2ImageProcessor) -> None:
    white = processor(np.full((9, 9, 3), 255, np.uint8), return_tensors="pt")["pixel_values"][0]
    torch.testing.assert_close(white, ((1 - MEAN) / STD).expand_as(white))


@pytest.mark.parametrize("boxes", [None, [[[2, 2, 20, 20]]]])
def test_preprocess__float_images_are_not_rescaled_twice(
    processor: Sapiens2ImageProcessor, photo: Image.Image, boxes
) -> None:
    array = np.array(photo)
    expected = processor(array, boxes=boxes, return_tensors="pt")["pixel_values"]
    for image in (array / 255, (array / 255).astype(np.float32), array.astype(np.float32)):
        result = processor(image, boxes=boxes, return_tensors="pt")["pixel_values"]
        torch.testing.assert_close(result, expected, atol=0.02, rtol=0)  # uint8 is rounded after each pass
    honoured = processor(array / 255, do_rescale=False, boxes=boxes, return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(honoured, expected, atol=0.02, rtol=0)


def test_preprocess__normalised_tensor_passes_through(processor: Sapiens2ImageProcessor) -> None:
    ready = torch.randn(3, 64, 48, generator=torch.manual_seed(0))
    out = processor(ready, do_rescale=False, do_normalize=False, return_tensors="pt")["pixel_values"][0]
    assert torch.equal(out, ready)
    with pytest.raises(InputError, match="normalised already"):
        processor(ready)


def test_preprocess__neither_rescaled_nor_normalised_stays_uint8(processor: Sapiens2ImageProcessor) -> None:
    image = np.random.default_rng(0).integers(0, 256, (64, 48, 3), dtype=np.uint8)
    out = processor(image, do_rescale=False, do_normalize=False, return_tensors="pt")["pixel_values"][0]
    assert torch.equal(out, torch.from_numpy(image).permute(2, 0, 1))


def test_preprocess__input_is_never_changed(processor: Sapiens2ImageProcessor) -> None:
    image = torch.rand(3, 64, 48)
    before = image.clone()
    for settings in ({}, {"do_rescale": False}, {"do_resize": False}, {"boxes": [[[0, 0, 48, 64]]]}):
        processor(image, **settings)
    assert torch.equal(image, before)


def test_preprocess__exif_is_applied(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    photo.save(buffer, "png", exif=exif)
    turned = processor(Image.open(buffer), return_tensors="pt")["pixel_values"]
    expected = processor(photo.transpose(Image.Transpose.ROTATE_270), return_tensors="pt")["pixel_values"]
    assert torch.equal(turned, expected)


@pytest.mark.parametrize("shape", [(1, 500), (1000, 7), (500, 1), (1, 1), (63, 47), (640, 432)])
def test_preprocess__letterbox(processor: Sapiens2ImageProcessor, shape: tuple[int, int]) -> None:
    pixels = raw(processor(np.full((*shape, 3), 200, np.uint8), do_pad=True, return_tensors="pt")["pixel_values"][0])
    inside = (pixels > 100).all(dim=0)
    rows, columns = inside.any(dim=1), inside.any(dim=0)
    scale = min(64 / shape[0], 48 / shape[1])
    expected = max(1, int(shape[0] * scale)), max(1, int(shape[1] * scale))
    assert (int(rows.sum()), int(columns.sum())) == expected
    assert int(rows.nonzero()[0]) == (64 - expected[0]) // 2
    assert int(columns.nonzero()[0]) == (48 - expected[1]) // 2
    torch.testing.assert_close(pixels[:, ~inside], torch.zeros_like(pixels[:, ~inside]), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (32, (32, 32)),
        ((20, 30), (20, 30)),
        ({"shortest_edge": 32}, (32, 42)),
        ({"shortest_edge": 32, "longest_edge": 40}, (30, 40)),
        ({"longest_edge": 40}, (30, 40)),
        ({"max_height": 32, "max_width": 32}, (24, 32)),
    ],
)
def test_preprocess__every_form_of_size(processor: Sapiens2ImageProcessor, photo: Image.Image, size, expected) -> None:
    assert processor(photo, size=size, return_tensors="pt")["pixel_values"].shape[2:] == expected


def test_preprocess__sizes_that_cannot_be_stacked(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    images = [photo, photo.resize((20, 30))]
    shapes = [tuple(image.shape) for image in processor(images, do_resize=False)["pixel_values"]]
    assert shapes == [(3, 90, 120), (3, 30, 20)]
    with pytest.raises(InputError, match=r"pixel_values have different shapes.*\(3, 30, 20\).*do_pad=True"):
        processor(images, do_resize=False, return_tensors="pt")
    padded = processor(images, do_resize=False, do_pad=True, return_tensors="pt")["pixel_values"]
    assert padded.shape == (2, 3, 90, 120)
    fixed = processor(images, do_resize=False, do_pad=True, pad_size=(100, 128), return_tensors="pt")["pixel_values"]
    assert fixed.shape == (2, 3, 100, 128)


@pytest.mark.parametrize("crop_hw", [(32, 20), (33, 21), (100, 30), (100, 100), (64, 48)])
def test_preprocess__center_crop_keeps_the_middle(processor: Sapiens2ImageProcessor, crop_hw: tuple[int, int]) -> None:
    rows = np.arange(64, dtype=np.uint8)[:, None].repeat(48, 1) + 1
    out = processor(
        rows, do_center_crop=True, crop_size=crop_hw, do_rescale=False, do_normalize=False, return_tensors="pt"
    )["pixel_values"][0]
    assert out.shape[1:] == crop_hw
    kept = out[out > 0].unique().tolist()
    count = min(64, crop_hw[0])
    assert kept == list(range((64 - count) // 2 + 1, (64 - count) // 2 + 1 + count))


def test_preprocess__do_convert_rgb_false_refuses(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    assert processor(photo, do_convert_rgb=False)["pixel_values"][0].shape == (3, 64, 48)
    for image in (photo.convert("L"), np.zeros((9, 9, 4), np.uint8)):
        with pytest.raises(InputError, match="do_convert_rgb=False"):
            processor(image, do_convert_rgb=False)


def test_preprocess__no_image(processor: Sapiens2ImageProcessor) -> None:
    assert processor([], return_tensors="pt")["pixel_values"].shape == (0, 3, 64, 48)
    assert processor([], boxes=[], return_tensors="pt")["pixel_values"].shape == (0, 3, 64, 48)


# People


def test_preprocess__people_are_stacked_in_order(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    boxes = [[[0, 0, 30, 40]], [], [[5, 5, 20, 20], [50, 10, 30, 60]]]
    images = [photo, photo, np.array(photo)[::-1]]
    batch = processor(images, boxes=boxes, return_tensors="pt")["pixel_values"]
    assert batch.shape == (3, 3, 64, 48)
    singles = [
        processor(image, boxes=[[box]], return_tensors="pt")["pixel_values"][0]
        for image, of_image in zip(images, boxes, strict=True)
        for box in of_image
    ]
    assert all(torch.equal(a, b) for a, b in zip(batch, singles, strict=True))


@pytest.mark.parametrize("boxes", [[[]], [np.zeros((0, 4))], [torch.zeros(0, 4)], np.zeros((1, 0, 4))])
def test_preprocess__nobody(processor: Sapiens2ImageProcessor, photo: Image.Image, boxes) -> None:
    assert processor(photo, boxes=boxes, return_tensors="pt")["pixel_values"].shape == (0, 3, 64, 48)


@pytest.mark.parametrize(
    "boxes",
    [
        [[[9, 8, 30, 40]]],
        np.array([[[9, 8, 30, 40]]]),
        torch.tensor([[[9.0, 8, 30, 40]]]),
        [torch.tensor([[9.0, 8, 30, 40]])],
    ],
)
def test_preprocess__every_kind_of_boxes(processor: Sapiens2ImageProcessor, photo: Image.Image, boxes) -> None:
    expected = processor(photo, boxes=[[(9, 8, 30, 40)]], return_tensors="pt")["pixel_values"]
    assert torch.equal(processor(photo, boxes=boxes, return_tensors="pt")["pixel_values"], expected)


def test_preprocess__box_lists_for_another_number_of_images(
    processor: Sapiens2ImageProcessor, photo: Image.Image
) -> None:
    for boxes in ([[[1, 1, 9, 9]]], [[[1, 1, 9, 9]]] * 3):
        with pytest.raises(InputError, match=rf"{len(boxes)} images.*2 images"):
            processor([photo, photo], boxes=boxes)


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (2, 2)])
def test_preprocess__people_in_tiny_images_are_finite(
    processor: Sapiens2ImageProcessor, shape: tuple[int, int]
) -> None:
    image = np.full((*shape, 3), 100, np.uint8)
    out = processor(image, boxes=[[[0, 0, 1, 1], [-5, -5, 40, 40]]], return_tensors="pt")["pixel_values"]
    assert out.shape[0] == 2
    assert bool(torch.isfinite(out).all())


# Label maps


@pytest.fixture(scope="module")
def halves() -> np.ndarray:
    labels = np.zeros((90, 120), dtype=np.uint8)
    labels[:, 60:] = 28
    return labels


SETTINGS = [
    {},
    {"do_pad": True},
    {"boxes": [[[10, 10, 90, 60], [100, 50, 60, 90]]]},
    {"do_center_crop": True, "crop_size": (100, 100)},
    {"do_resize": False, "do_pad": True, "pad_size": (100, 130)},
    {"resample": 3},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("do_reduce_labels", [False, True])
def test_preprocess__labels_are_never_invented(
    processor: Sapiens2ImageProcessor, photo: Image.Image, halves: np.ndarray, settings: dict, do_reduce_labels: bool
) -> None:
    out = processor(photo, segmentation_maps=halves, do_reduce_labels=do_reduce_labels, return_tensors="pt", **settings)
    assert out["labels"].dtype == torch.int64
    assert out["labels"].shape == (out["pixel_values"].shape[0], *out["pixel_values"].shape[2:])
    expected = {255, 27} if do_reduce_labels else {0, 28, 255}
    assert set(out["labels"].unique().tolist()) <= expected
    assert {27 if do_reduce_labels else 28} <= set(out["labels"].unique().tolist())


@pytest.mark.parametrize("settings", SETTINGS)
def test_preprocess__padding_is_ignored(processor: Sapiens2ImageProcessor, photo: Image.Image, settings: dict) -> None:
    """The label map is all 5, so wherever the image is not, the label has to be 255."""
    white = Image.new("RGB", photo.size, "white")
    out = processor(white, segmentation_maps=np.full((90, 120), 5), return_tensors="pt", do_normalize=False, **settings)
    inside = out["pixel_values"].amin(dim=1) > 0.99
    outside = out["pixel_values"].amax(dim=1) == 0
    assert out["labels"][inside].unique().tolist() == [5]
    assert set(out["labels"][outside].unique().tolist()) <= {255}
    assert bool(outside.any()) == (settings not in ({}, {"resample": 3}))


def test_preprocess__labels_follow_the_image(processor: Sapiens2ImageProcessor, halves: np.ndarray) -> None:
    """A picture painted with its own labels: after any geometry they still agree, but for blended pixels."""
    picture = np.repeat((halves[..., None] > 0).astype(np.uint8) * 255, 3, axis=2)
    for settings in SETTINGS:
        out = processor(picture, segmentation_maps=halves, do_normalize=False, return_tensors="pt", **settings)
        bright, labels = out["pixel_values"][:, 0], out["labels"]
        assert labels[(bright > 0.95) & (bright < 1.05)].unique().tolist() == [28]
        assert (bright[labels == 28] > 0.4).float().mean() > 0.99


@pytest.mark.parametrize(
    "make",
    [
        lambda a: Image.fromarray(a),
        lambda a: Image.fromarray(a).convert("P"),
        lambda a: Image.fromarray(a.astype(np.int32)),
        lambda a: a.astype(np.uint16),
        lambda a: a.astype(np.float64),
        lambda a: torch.from_numpy(a),
        lambda a: a[None],
        lambda a: a[..., None],
        lambda a: [a],
        lambda a: torch.from_numpy(a)[None, None],
    ],
)
def test_preprocess__every_kind_of_label_map(
    processor: Sapiens2ImageProcessor, photo: Image.Image, halves: np.ndarray, make
) -> None:
    expected = processor(photo, segmentation_maps=halves, return_tensors="pt")["labels"]
    assert torch.equal(processor(photo, segmentation_maps=make(halves), return_tensors="pt")["labels"], expected)


@pytest.mark.parametrize("make", [lambda a: [a, a], lambda a: np.stack([a, a]), lambda a: [[a], [a]]])
def test_preprocess__label_maps_of_a_batch(
    processor: Sapiens2ImageProcessor, photo: Image.Image, halves: np.ndarray, make
) -> None:
    expected = processor(photo, segmentation_maps=halves, return_tensors="pt")["labels"][0]
    out = processor([photo, photo], segmentation_maps=make(halves), return_tensors="pt")["labels"]
    assert torch.equal(out, torch.stack([expected, expected]))


def test_preprocess__label_map_from_palette_file(
    processor: Sapiens2ImageProcessor, photo: Image.Image, halves: np.ndarray, tmp_path: Path
) -> None:
    image = Image.fromarray(halves).convert("P")
    image.putpalette([value for index in range(256) for value in (255 - index, index, 7)])
    image.save(tmp_path / "labels.png")
    out = processor(photo, segmentation_maps=str(tmp_path / "labels.png"), return_tensors="pt")["labels"]
    assert set(out.unique().tolist()) == {0, 28}


@pytest.mark.parametrize(
    ("label_map", "message"),
    [
        (np.zeros((120, 90)), r"\(120, 90\).*its image is \(90, 120\).*transposed"),
        (np.zeros((90, 120, 3)), r"shape \(90, 120, 3\)"),
        (Image.new("RGB", (120, 90)), "mode RGB"),
        (np.full((90, 120), 0.5), "fractions"),
        (np.full((90, 120), np.nan), "fractions or values that are not finite"),
        ([np.zeros((90, 120))] * 2, "2 segmentation maps for 1 images"),
        ([5], "is a int"),
    ],
)
def test_preprocess__no_label_map(
    processor: Sapiens2ImageProcessor, photo: Image.Image, label_map, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        processor(photo, segmentation_maps=label_map)


# Keypoints


def test_preprocess__keypoints_become_heatmaps(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    boxes = [[[10, 10, 30, 60]], [], [[0, 0, 40, 40], [60, 20, 40, 60]]]
    keypoints = [[[[20, 30, 2], [25, 40, 1], [20, 30, 0]]], [], np.full((2, 3, 3), 20.0)]
    out = processor([photo] * 3, boxes=boxes, keypoints=keypoints, return_tensors="pt")
    assert out["labels"].shape == (3, 3, 16, 12)
    assert out["label_weights"].shape == (3, 3)
    assert out["labels"].dtype == out["label_weights"].dtype == torch.float32
    assert out["label_weights"][0].tolist() == [1.0, 1.0, 0.0]
    assert out["label_weights"][2].tolist() == [0.0, 0.0, 0.0]  # outside the crop of the last person
    assert out["labels"][0, 2].abs().max() == 0


def test_preprocess__heatmap_peak_lies_on_the_keypoint(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    """The window of a 24 x 32 box is 30 x 40 pixels; UDP maps its edges to the first and the last heatmap pixel."""
    box, point = [20.0, 20.0, 24.0, 32.0], (20.0 - 3 + 30 * 5 / 11, 20.0 - 4 + 40 * 9 / 15)
    out = processor(photo, boxes=[[box]], keypoints=[[[[*point, 2]]]], keypoint_heatmap_sigma=1.5, return_tensors="pt")
    row, column = divmod(int(out["labels"][0, 0].argmax()), 12)
    assert (row, column) == (9, 5)
    torch.testing.assert_close(out["labels"].max(), torch.tensor(1.0), atol=1e-3, rtol=0)


def test_preprocess__nobody_with_keypoints(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    out = processor(photo, boxes=[[]], keypoints=[np.zeros((0, 308, 3))], return_tensors="pt")
    assert out["labels"].shape == (0, 308, 16, 12)
    assert out["label_weights"].shape == (0, 308)


def test_preprocess__invisible_keypoints_may_be_nan(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    keypoints = [[[[np.nan, np.nan, 0], [20, 30, 2]]]]
    out = processor(photo, boxes=[[[10, 10, 30, 60]]], keypoints=keypoints, return_tensors="pt")
    assert out["label_weights"].tolist() == [[0.0, 1.0]]
    assert bool(torch.isfinite(out["labels"]).all())


BOX = [10, 10, 30, 60]
POINT = [20, 30, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keypoints": [[[POINT]]]}, "keypoints need boxes"),
        ({"boxes": [[BOX]], "keypoints": [[[POINT]], [[POINT]]]}, "keypoints for 2 images, but 1"),
        ({"boxes": [[BOX]], "keypoints": [[[POINT]] * 2]}, "Image 0 has 1 boxes and keypoints for 2 persons"),
        ({"boxes": [[BOX]], "keypoints": [[]]}, "Image 0 has 1 boxes and keypoints for 0 persons"),
        ({"boxes": [[BOX, BOX]], "keypoints": [[[POINT], [POINT, POINT]]]}, "not a regular array"),
        ({"boxes": [[BOX]], "keypoints": [[[[20, 30]]]]}, r"shape \(1, 1, 2\); expected"),
        ({"boxes": [[BOX]], "keypoints": [[[[np.nan, 30, 2]]]]}, "visible keypoint that is not finite"),
        ({"boxes": [[BOX]], "keypoints": [[[POINT]]], "segmentation_maps": np.zeros((90, 120))}, "only one of them"),
        ({"boxes": [[BOX]], "keypoints": [[[POINT]]], "do_center_crop": True}, "do_center_crop=True"),
        ({"boxes": [[BOX]], "keypoints": [[[POINT]]], "keypoint_heatmap_downscale_factor": 40}, "at least 2 x 2"),
    ],
)
def test_preprocess__keypoints_that_do_not_fit(
    processor: Sapiens2ImageProcessor, photo: Image.Image, arguments: dict, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        processor(photo, **arguments)


def test_preprocess__persons_with_different_keypoint_sets(
    processor: Sapiens2ImageProcessor, photo: Image.Image
) -> None:
    with pytest.raises(InputError, match=r"different numbers of keypoints: \[1, 2\]"):
        processor([photo, photo], boxes=[[BOX], [BOX]], keypoints=[[[POINT]], [[POINT, POINT]]])


# Results


def test_post_process__methods_are_the_functions(processor: Sapiens2ImageProcessor) -> None:
    maps = torch.rand(1, 3, 64, 48, generator=torch.manual_seed(0))
    sizes = {"target_sizes": [(30, 40)]}
    assert processor.post_process_semantic_segmentation({"logits": maps}, **sizes)[0].shape == (30, 40)
    assert processor.post_process_normal_estimation({"normals": maps}, **sizes)[0]["normals"].shape == (3, 30, 40)
    assert processor.post_process_pointmap_estimation({"pointmaps": maps}, **sizes)[0]["pointmap"].shape == (3, 30, 40)
    assert processor.post_process_albedo_estimation({"albedos": maps}, **sizes)[0]["albedo"].shape == (3, 30, 40)
    outputs = {"alphas": maps[:, :1], "foregrounds": maps}
    assert processor.post_process_image_matting(outputs, backgrounds="white", **sizes)[0]["composite"].shape[1:] == (
        30,
        40,
    )


def test_post_process__size_of_the_call_decides_not_that_of_the_processor() -> None:
    """Preprocessing with another size than the processor's own: the padding that is cut is that of the call."""
    processor = Sapiens2ImageProcessor(do_pad=True)
    white = np.full((30, 90, 3), 255, np.uint8)
    pixels = processor(white, size=(32, 48), do_normalize=False, return_tensors="pt")["pixel_values"]
    albedo = processor.post_process_albedo_estimation({"albedos": pixels}, source_sizes=[white])[0]["albedo"]
    assert albedo.shape == (3, 30, 90)
    assert albedo.min() > 0.999


def test_post_process__padding_that_was_never_added_is_warned_of(processor: Sapiens2ImageProcessor) -> None:
    maps = torch.rand(1, 3, 64, 48)
    with pytest.warns(UserWarning, match=r"do_pad=False.*do_remove_padding"):
        processor.post_process_normal_estimation({"normals": maps}, source_sizes=[(30, 90)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        processor.post_process_normal_estimation({"normals": maps}, source_sizes=[(30, 90)], do_remove_padding=True)
        padding = Sapiens2ImageProcessor(size=SIZE, do_pad=True)
        padding.post_process_normal_estimation({"normals": maps}, source_sizes=[(30, 90)])


def test_post_process_pose_estimation__round_trip(processor: Sapiens2ImageProcessor, photo: Image.Image) -> None:
    """Targets made from keypoints decode to the same keypoints."""
    boxes = [[[10.0, 10.0, 30.0, 60.0]], [], [[50.0, 20.0, 40.0, 40.0]]]
    truth = np.array([[[20.0, 30.5, 2], [25.25, 40, 2]]]), np.zeros((0, 2, 3)), np.array([[[70.0, 30, 2], [61, 51, 2]]])
    size = {"size": (256, 192)}
    out = processor([photo] * 3, boxes=boxes, keypoints=list(truth), return_tensors="pt", **size)
    results = processor.post_process_pose_estimation(SimpleNamespace(heatmaps=out["labels"]), boxes)
    assert [len(people) for people in results] == [1, 0, 1]
    for people, points in zip(results, truth, strict=True):
        for person, expected in zip(people, points, strict=True):
            np.testing.assert_allclose(person["keypoints"].numpy(), expected[:, :2], atol=0.05)


@pytest.mark.parametrize(
    "view",
    [
        lambda ids: ids[::-1, ::-1],
        lambda ids: ids.astype(">u2"),
        lambda ids: ids.astype(">i4")[:, ::-1],
        lambda ids: ids.astype(np.float16),
        lambda ids: ids.astype(np.longdouble),
        lambda ids: np.asfortranarray(ids),
        lambda ids: np.broadcast_to(ids[:1], ids.shape),
        lambda ids: ids > 3,
    ],
)
@pytest.mark.parametrize("writeable", [True, False])
def test_preprocess__label_arrays_of_any_layout_and_number_format(view, writeable):
    ids = view(np.random.default_rng(3).integers(0, 7, (6, 8), dtype=np.uint8))
    expected = torch.from_numpy(np.array(ids, dtype=np.int64))
    if not writeable:
        ids.flags.writeable = False
    labels = Sapiens2ImageProcessor(do_resize=False)(
        np.zeros((6, 8, 3), np.uint8), segmentation_maps=[ids], return_tensors="pt"
    )["labels"]
    assert torch.equal(labels[0], expected)


@pytest.mark.parametrize("dtype", [np.complex64, object, "U1", "datetime64[s]"])
def test_preprocess__refuses_label_arrays_that_hold_no_real_numbers(dtype):
    with pytest.raises(InputError, match=r"segmentation_maps\[0\] array has dtype"):
        Sapiens2ImageProcessor(do_resize=False)(
            np.zeros((6, 8, 3), np.uint8), segmentation_maps=[np.zeros((6, 8), int).astype(dtype)]
        )


@pytest.mark.parametrize(
    "tensor", [torch.zeros((6, 8), dtype=torch.complex64), torch.zeros((6, 8), device="meta"), torch.eye(8).to_sparse()]
)
def test_preprocess__refuses_label_tensors_that_are_no_dense_numbers(tensor):
    with pytest.raises(InputError, match=r"segmentation_maps\[0\] tensor"):
        Sapiens2ImageProcessor(do_resize=False)(np.zeros((6, 8, 3), np.uint8), segmentation_maps=[tensor])


BAD_NUMBERS = [
    *[("rescale_factor", value) for value in (float("nan"), float("inf"), 0.0, -1.0)],
    *[("image_mean", value) for value in (float("nan"), [0.5, float("inf"), 0.5], [0.5, 0.5])],
    *[("image_std", value) for value in (0.0, float("nan"), [0.2, 0.0, 0.2], [1.0, float("inf"), 1.0], -1.0)],
    *[("keypoint_heatmap_sigma", value) for value in (0.0, -1.0, float("nan"), float("inf"))],
    ("keypoint_heatmap_downscale_factor", 0),
    *[("resample", value) for value in ("bilinear", "nope", 2.5)],
]


@pytest.mark.parametrize(("name", "value"), BAD_NUMBERS)
def test_settings__numbers_out_of_range_are_refused_at_construction_and_in_a_call(processor, photo, name, value):
    with pytest.raises(ConfigurationError, match=name):
        Sapiens2ImageProcessor(**{name: value})
    with pytest.raises(InputError, match=name):
        processor(photo, **{name: value})


def test_settings__numbers_that_are_not_used_are_not_checked(photo):
    Sapiens2ImageProcessor(size=SIZE, do_normalize=False, image_std=0.0)(photo)


@pytest.mark.parametrize("device", ["nope", "cuda:99", "meta"])
def test_preprocess__refuses_devices_that_are_not_there(processor, photo, device):
    with pytest.raises(InputError, match=rf"device '{device}'"):
        processor(photo, device=device)


POINTS = [[5.0, 6.0, 2.0], [1.0, 2.0, 0.0]]


@pytest.mark.parametrize(
    "keypoints",
    [
        torch.tensor([[POINTS]], requires_grad=True),
        [torch.tensor([POINTS], requires_grad=True)],
        [[torch.tensor(POINTS, requires_grad=True)]],
        [[[torch.tensor(point, requires_grad=True) for point in POINTS]]],
        np.array([[POINTS]], dtype=">f8")[:, :, ::-1][:, :, ::-1],
        np.array([[POINTS]], dtype=object),
        [[[[5, 6, 2], [None, None, 0]]]],
    ],
)
def test_preprocess__keypoints_in_any_container(processor, photo, keypoints):
    expected = processor(photo, boxes=[[[0, 0, 40, 50]]], keypoints=[[POINTS]])
    found = processor(photo, boxes=[[[0, 0, 40, 50]]], keypoints=keypoints)
    assert torch.equal(found["labels"][0], expected["labels"][0])
    assert not found["labels"][0].requires_grad


@pytest.mark.parametrize(
    "keypoints",
    [
        5,
        "points",
        {0: POINTS},
        np.array(5.0),
        [np.array([POINTS], dtype=complex)],
        [[[[1j, 0, 1]]]],
        [torch.tensor([POINTS], dtype=torch.complex64)],
        [torch.zeros((1, 2, 3), device="meta")],
        [torch.ones((1, 2, 3)).to_sparse()],
        [[[["1", "2", "3"]]]],
        [[[[1e300, 0, 1]]]],
    ],
)
def test_preprocess__refuses_what_is_no_keypoints(processor, photo, keypoints):
    with pytest.raises(InputError, match="keypoints"):
        processor(photo, boxes=[[[0, 0, 40, 50]]], keypoints=keypoints)


@pytest.mark.parametrize("boxes", [None, 5, "boxes"])
def test_post_process_pose_estimation__refuses_what_is_no_boxes(processor, boxes):
    with pytest.raises(InputError, match="Boxes are"):
        processor.post_process_pose_estimation({"heatmaps": torch.zeros((1, 2, 16, 12))}, boxes)
