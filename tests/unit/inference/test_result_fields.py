from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tiny_models as tiny
from sapiens2.assets.tables import part_table
from sapiens2.inference import Predictor
from sapiens2.inference.result_fields import label_fields
from sapiens2.models import Sapiens2Config, Sapiens2ForSemanticSegmentation
from sapiens2.processing import Sapiens2ImageProcessor


@pytest.mark.parametrize("num_labels", [1, 7, 28, 30, 300])
def test_label_fields__classes_without_names_are_numbered(num_labels: int) -> None:
    names = tuple(f"class_{index}" for index in range(num_labels))
    assert label_fields("seg", Sapiens2Config(num_labels=num_labels)) == {"class_names": names}


def test_label_fields__placeholders_for_29_classes_leave_the_published_names() -> None:
    assert label_fields("seg", Sapiens2Config(num_labels=29)) == {}
    assert label_fields("pose", Sapiens2Config(num_labels=308)) == {}


@pytest.mark.parametrize(
    ("id2label", "expected"),
    [
        ({0: "a", 1: "b"}, ("a", "b")),
        ({1: "a", 2: "b"}, ("class_0", "a")),
        ({5: "a"}, ("class_0",)),
        ({0: "a", 1: "LABEL_1"}, ("a", "LABEL_1")),
        ({0: "same", 1: "same"}, ("same", "same")),
    ],
)
def test_label_fields__sparse_and_repeated_names(id2label: dict[int, str], expected: tuple[str, ...]) -> None:
    assert label_fields("seg", Sapiens2Config(id2label=id2label)) == {"class_names": expected}


def test_label_fields__sparse_names_of_keypoints() -> None:
    assert label_fields("pose", Sapiens2Config(id2label={1: "a", 2: "b"})) == {"keypoint_names": ("keypoint_0", "a")}


@pytest.mark.parametrize(
    "labels", [{"num_labels": 7}, {"num_labels": 29}, {"num_labels": 300}, {"id2label": {1: "a", 2: "b"}}], ids=str
)
def test_predictor__segments_into_any_classes(labels: dict[str, Any]) -> None:
    fields = {**tiny.fields_of("Sapiens2ForSemanticSegmentation"), "num_labels": None, **labels}
    torch.manual_seed(0)
    model = Sapiens2ForSemanticSegmentation(Sapiens2Config(**{k: v for k, v in fields.items() if v is not None}))
    processor = Sapiens2ImageProcessor(size={"height": tiny.IMAGE_HW[0], "width": tiny.IMAGE_HW[1]})
    picture = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    result = Predictor({"seg": model}, {"seg": processor})(picture)
    count = model.config.num_labels
    assert len(result.names) == len(result.palette) == count
    assert result.segmentation.dtype == (np.uint16 if count > 255 else np.uint8)
    assert (result.names == part_table().names) == (count == 29)
    assert sum(entry["pixels"] for entry in result.to_dict()["classes"]) == 30 * 40
    assert result.plot().width >= 40
