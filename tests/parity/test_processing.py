"""Ours against transformers' image processor, which runs as a black box, over a grid of options.

Where transformers is wrong, the comparison stops at what is right in it; ``tests/unit/processing`` has the rest.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F
from transformers.models.sapiens2.image_processing_sapiens2 import Sapiens2ImageProcessor as OracleProcessor

from sapiens2.processing import Sapiens2ImageProcessor

SIZE = {"height": 64, "width": 48}
PIXEL_TOLERANCE = 1e-2
MAP_TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def ours() -> Sapiens2ImageProcessor:
    return Sapiens2ImageProcessor(size=SIZE, do_pad=True)


@pytest.fixture(scope="module")
def oracle() -> OracleProcessor:
    return OracleProcessor(size=SIZE, do_pad=True)


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth and noisy parts, so that every filter shows."""
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    small = Image.fromarray(noise[: max(1, height // 8), : max(1, width // 8)])
    smooth = np.array(small.resize((width, height), Image.Resampling.BICUBIC))
    return np.where(np.arange(width)[None, :, None] < width // 2, smooth, noise)


def assert_same(ours, oracle, tolerance: float = PIXEL_TOLERANCE) -> None:
    assert ours.keys() == oracle.keys()
    for name, expected in oracle.items():
        assert ours[name].dtype == expected.dtype, name
        torch.testing.assert_close(
            ours[name], expected, atol=tolerance, rtol=0, msg=lambda text, n=name: f"{n}: {text}"
        )


SHAPES = [(90, 120), (333, 251), (64, 48), (40, 30), (7, 60), (200, 31)]
SETTINGS = [
    {"do_pad": False},
    {"do_pad": True},
    {"do_pad": False, "resample": 0},
    {"do_pad": False, "resample": 3},
    {"do_pad": True, "resample": 3},
    {"do_pad": False, "size": (70, 50)},
    {"do_pad": False, "size": {"shortest_edge": 32}},
    {"do_pad": False, "size": {"shortest_edge": 32, "longest_edge": 50}},
    {"do_pad": False, "size": {"max_height": 40, "max_width": 33}},
    {"do_pad": True, "do_center_crop": True, "crop_size": 32},
    {"do_pad": False, "do_center_crop": True, "crop_size": (81, 33)},
    {"do_pad": False, "do_center_crop": True, "crop_size": (33, 81)},
    {"do_resize": False, "do_pad": False},
    {"do_resize": False, "do_pad": True},
    {"do_resize": False, "do_pad": False, "do_center_crop": True, "crop_size": (31, 30)},
    {"do_pad": True, "do_normalize": False},
    {"do_pad": True, "do_rescale": False},
    {"do_pad": False, "rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3},
    {"do_pad": False, "do_rescale": False, "do_normalize": False},
    {"do_pad": False, "image_mean": 0.5, "image_std": 0.25},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_preprocess__whole_images(ours, oracle, shape: tuple[int, int], settings: dict) -> None:
    image = picture(*shape)
    # pixels that are not normalised are up to 255 instead of about 2.6
    tolerance = PIXEL_TOLERANCE * (1 if settings.get("do_rescale", True) else 100)
    for kind in (image, Image.fromarray(image), torch.from_numpy(image).permute(2, 0, 1)):
        expected = oracle(kind, return_tensors="pt", **settings)
        assert_same(ours(kind, return_tensors="pt", **settings), expected, tolerance)


@pytest.mark.parametrize("settings", [{}, {"do_pad": False}, {"boxes": [[[10.5, 4, 30, 60]]]}], ids=str)
def test_preprocess__float_images(ours, oracle, settings: dict) -> None:
    image = picture(90, 120).astype(np.float32)
    assert_same(ours(image, return_tensors="pt", **settings), oracle(image, return_tensors="pt", **settings))
    scaled = image / 255
    expected = oracle(scaled, return_tensors="pt", do_rescale=False, **settings)
    assert_same(ours(scaled, return_tensors="pt", do_rescale=False, **settings), expected)
    assert_same(ours(scaled, return_tensors="pt", **settings), expected)  # recognised without the flag


@pytest.mark.parametrize("return_tensors", ["pt", "np", None])
def test_preprocess__kinds_of_results(ours, oracle, return_tensors: str | None) -> None:
    arguments = {"boxes": [[[10, 10, 30, 60]]], "keypoints": [[[[20, 30, 2]] * 4]], "return_tensors": return_tensors}
    result, expected = ours(picture(90, 120), **arguments), oracle(picture(90, 120), **arguments)
    assert result.keys() == expected.keys()
    for name in expected:
        assert type(result[name]) is type(expected[name])
        assert len(result[name]) == len(expected[name])


BOXES = [
    [[[10, 10, 30, 60]]],
    [[[0, 0, 120, 90], [50.3, 20.7, 12.1, 9.9]]],
    [[[-20, -30, 60, 70], [100, 60, 60, 60], [40, 40, 3, 3]]],
    [[[300, 300, 20, 20]]],
]


@pytest.mark.parametrize("boxes", BOXES, ids=str)
@pytest.mark.parametrize("settings", [{}, {"do_normalize": False}, {"size": (80, 80)}], ids=str)
def test_preprocess__people(ours, oracle, boxes: list, settings: dict) -> None:
    image = picture(90, 120)
    result = ours(image, boxes=boxes, return_tensors="pt", **settings)["pixel_values"]
    expected = oracle(image, boxes=boxes, return_tensors="pt", **settings)["pixel_values"]
    assert result.shape == expected.shape
    torch.testing.assert_close(result, expected, atol=PIXEL_TOLERANCE, rtol=0)


@pytest.mark.parametrize("settings", [{}, {"keypoint_heatmap_sigma": 2.0}, {"keypoint_heatmap_downscale_factor": 2}])
def test_preprocess__keypoint_targets(ours, oracle, settings: dict) -> None:
    boxes = [[[10, 10, 30, 60], [50, 20, 60, 60]], [[0, 0, 80, 80]]]
    inside = np.random.default_rng(0).uniform(0.2, 0.8, (3, 7, 2))
    visibility = np.tile([2, 1, 0, 2, 2, 1, 0], (3, 1))
    flat = [box for of_image in boxes for box in of_image]
    points = [np.array(box[:2]) + inside[i] * np.array(box[2:]) for i, box in enumerate(flat)]
    people = [np.concatenate([p, v[:, None]], axis=1).tolist() for p, v in zip(points, visibility, strict=True)]
    arguments = {"boxes": boxes, "keypoints": [people[:2], people[2:]], "return_tensors": "pt", **settings}
    images = [picture(90, 120), picture(100, 100)]
    result, expected = ours(images, **arguments), oracle(images, **arguments)
    for name in ("labels", "label_weights"):
        assert result[name].shape == expected[name].shape
        torch.testing.assert_close(result[name], expected[name], atol=MAP_TOLERANCE, rtol=0)


@pytest.mark.parametrize("do_reduce_labels", [False, True])
@pytest.mark.parametrize("settings", [{"do_resize": False}, {"do_pad": False}], ids=str)
def test_preprocess__label_maps_where_nothing_is_interpolated(
    ours, oracle, settings: dict, do_reduce_labels: bool
) -> None:
    labels = np.random.default_rng(0).choice([0, 1, 5, 28, 254, 255], (64, 48)).astype(np.uint8)
    arguments = {"segmentation_maps": labels, "do_reduce_labels": do_reduce_labels, "return_tensors": "pt", **settings}
    assert_same(ours(picture(64, 48), **arguments), oracle(picture(64, 48), **arguments))


def test_preprocess__label_maps_away_from_edges(ours, oracle) -> None:
    labels = np.zeros((128, 96), dtype=np.uint8)
    labels[:, 48:] = 28
    arguments = {"segmentation_maps": labels, "do_pad": False, "return_tensors": "pt"}
    result, expected = ours(picture(128, 96), **arguments)["labels"], oracle(picture(128, 96), **arguments)["labels"]
    agree = result == expected
    assert bool(agree[..., :23].all())
    assert bool(agree[..., 25:].all())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"size": SIZE, "do_pad": True, "do_reduce_labels": True, "keypoint_heatmap_sigma": 2.0},
        {"do_convert_rgb": True, "image_mean": [0.5] * 3, "resample": 3, "crop_size": 100, "device": "cpu"},
    ],
    ids=str,
)
def test_save_pretrained__same_file_in_both_directions(settings: dict, tmp_path: Path) -> None:
    Sapiens2ImageProcessor(**settings).save_pretrained(tmp_path / "ours")
    OracleProcessor(**settings).save_pretrained(tmp_path / "oracle")
    files = [tmp_path / name / "preprocessor_config.json" for name in ("ours", "oracle")]
    assert json.loads(files[0].read_text()) == json.loads(files[1].read_text())
    assert OracleProcessor.from_pretrained(tmp_path / "ours").to_dict() == OracleProcessor(**settings).to_dict()
    assert (
        Sapiens2ImageProcessor.from_pretrained(tmp_path / "oracle").to_dict()
        == Sapiens2ImageProcessor(**settings).to_dict()
    )


# Results


def random_maps(channels: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(2, channels, 64, 48, generator=torch.Generator().manual_seed(seed))


SOURCES = [[(333, 251), (90, 120)], [(64, 48), (40, 30)], [(200, 31), (31, 200)]]


def restorations() -> list[dict]:
    cases: list[dict] = [{}, {"target_sizes": [(100, 50), (20, 70)]}]
    for sources in SOURCES:
        cases.append({"source_sizes": sources})
        cases.append({"source_sizes": sources, "target_sizes": [(100, 50), (20, 70)]})
        cases.append({"source_sizes": sources, "do_remove_padding": False})
    return cases


@pytest.mark.parametrize("sizes", restorations(), ids=str)
def test_post_process_pointmap_estimation(ours, oracle, sizes: dict) -> None:
    outputs = SimpleNamespace(pointmaps=random_maps(3), scales=torch.tensor([[2.0], [0.3]]))
    result = ours.post_process_pointmap_estimation(outputs, **sizes)
    for got, expected in zip(result, oracle.post_process_pointmap_estimation(outputs, **sizes), strict=True):
        torch.testing.assert_close(got["pointmap"], expected["pointmap"], atol=MAP_TOLERANCE, rtol=1e-5)


@pytest.mark.parametrize("sizes", restorations(), ids=str)
def test_post_process_normal_estimation__but_for_the_lengths(ours, oracle, sizes: dict) -> None:
    outputs = SimpleNamespace(normals=random_maps(3) + torch.tensor([0.0, 0.0, 4.0]).view(3, 1, 1))
    result = ours.post_process_normal_estimation(outputs, **sizes)
    for got, expected in zip(result, oracle.post_process_normal_estimation(outputs, **sizes), strict=True):
        unit = F.normalize(expected["normals"], dim=0)
        torch.testing.assert_close(got["normals"], unit, atol=MAP_TOLERANCE, rtol=0)


@pytest.mark.parametrize("target_sizes", [None, [(100, 50), (20, 70)], [(64, 48), (1, 1)]], ids=str)
def test_post_process_semantic_segmentation(ours, oracle, target_sizes) -> None:
    outputs = SimpleNamespace(logits=random_maps(29))
    result = ours.post_process_semantic_segmentation(outputs, target_sizes)
    expected = oracle.post_process_semantic_segmentation(outputs, target_sizes)
    assert all(torch.equal(a, b) for a, b in zip(result, expected, strict=True))
    scored = ours.post_process_semantic_segmentation(outputs, target_sizes, True)
    expected = oracle.post_process_semantic_segmentation(outputs, target_sizes, True)
    for got, want in zip(scored, expected, strict=True):
        assert type(got) is type(want)
        assert got.keys() == want.keys()
        torch.testing.assert_close(got.segmentation_scores, want.segmentation_scores, atol=MAP_TOLERANCE, rtol=0)
        assert torch.equal(got.segmentation, want.segmentation)


GREEN = torch.tensor([0, 177, 64], dtype=torch.uint8).view(3, 1, 1)


@pytest.mark.parametrize("target_sizes", [None, [(100, 50), (20, 70)]], ids=str)
@pytest.mark.parametrize(
    "backgrounds",
    [None, GREEN, Image.fromarray(picture(30, 70)), [picture(30, 70), picture(200, 100, 1)], torch.rand(3, 9, 8)],
)
def test_post_process_image_matting(ours, oracle, target_sizes, backgrounds) -> None:
    alphas = torch.rand(2, 1, 64, 48, generator=torch.manual_seed(0))
    outputs = SimpleNamespace(alphas=alphas, foregrounds=alphas * torch.rand(2, 3, 64, 48))
    result = ours.post_process_image_matting(outputs, target_sizes, backgrounds)
    expected = oracle.post_process_image_matting(outputs, target_sizes, backgrounds)
    for got, want in zip(result, expected, strict=True):
        assert got.keys() == want.keys()
        for name in ("alpha", "foreground"):
            torch.testing.assert_close(got[name], want[name], atol=MAP_TOLERANCE, rtol=0)
        if backgrounds is None:
            assert got["composite"] is want["composite"] is None
        else:
            assert got["composite"].dtype == want["composite"].dtype
            difference = (got["composite"].int() - want["composite"].int()).abs()
            assert difference.max() <= 1
            assert difference.float().mean() < 1e-3


def test_post_process_pose_estimation__inside_the_border(ours, oracle) -> None:
    boxes = [[[10, 10, 30, 60], [50, 20, 60, 60]], [[0, 0, 80, 80]]]
    rows, columns = torch.meshgrid(torch.arange(64.0), torch.arange(48.0), indexing="ij")
    centres = torch.rand(3, 5, 2, generator=torch.manual_seed(0)) * torch.tensor([18.0, 34.0]) + 15
    squared = (columns - centres[..., 0, None, None]) ** 2 + (rows - centres[..., 1, None, None]) ** 2
    outputs = SimpleNamespace(heatmaps=torch.exp(-squared / (2 * 2.0**2)))
    flipped = SimpleNamespace(heatmaps=outputs.heatmaps * 0.9)
    for arguments in (
        {},
        {"outputs_flipped": flipped},
        {"source_sizes": [(90, 120)] * 2, "target_sizes": [(45, 30)] * 2},
    ):
        result = ours.post_process_pose_estimation(outputs, boxes, **arguments)
        expected = oracle.post_process_pose_estimation(outputs, boxes, **arguments)
        for of_image, wanted in zip(result, expected, strict=True):
            for person, want in zip(of_image, wanted, strict=True):
                assert person.keys() == want.keys()
                torch.testing.assert_close(person["keypoints"], want["keypoints"], atol=0.02, rtol=0)
                torch.testing.assert_close(person["scores"], want["scores"], atol=MAP_TOLERANCE, rtol=0)
                torch.testing.assert_close(person["bbox"], want["bbox"], atol=MAP_TOLERANCE, rtol=0)
                assert torch.equal(person["labels"], want["labels"])
