from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import analytic_scene as scene
from sapiens2.data import Sample, check_values
from sapiens2.data.sample import _LAYOUTS
from sapiens2.errors import InputError


def test_sample__every_field_has_a_layout() -> None:
    assert set(_LAYOUTS) == {field.name for field in fields(Sample)} - {"name"}


def test_check_values__accepts_the_truth() -> None:
    sample = scene.scene()
    assert check_values(sample) is sample
    assert sample.size_hw == (scene.HEIGHT, scene.WIDTH)
    assert Sample(image=np.zeros((2, 3, 3), np.uint8)).truths == ()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("image", np.zeros((90, 120), np.uint8), r"image has shape \(90, 120\); expected \(H, W, 3\)"),
        ("image", np.zeros((90, 120, 3)), "image has dtype float64; expected uint8"),
        ("image", [[0]], "image is a list; expected a numpy array"),
        ("parts", np.zeros((90, 119), np.uint8), r"parts has shape \(90, 119\); expected \(90, 120\)"),
        ("normals", np.zeros((90, 120, 3), np.float32), r"normals has shape .* expected \(3, 90, 120\)"),
        ("pointmap", np.zeros((3, 90, 120)), "pointmap has dtype float64; expected float32"),
        ("keypoints", np.zeros((2, 308, 3), np.float32), r"boxes_xywh has shape \(1, 4\); expected \(2, 4\)"),
        ("keypoints", np.zeros((1, 308, 2), np.float32), r"keypoints has shape \(1, 308, 2\)"),
        ("mask", np.zeros((90, 120), np.uint8), "mask has dtype uint8; expected bool"),
        ("intrinsics", np.eye(4), r"intrinsics has shape \(4, 4\)"),
        ("alpha", None, "foreground is given without alpha"),
        ("intrinsics", None, "pointmap is given without intrinsics"),
        ("boxes_xywh", None, "keypoints is given without boxes_xywh"),
    ],
)
def test_sample__faults_of_layout(field: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"scene: {message}"):
        replace(scene.scene(), **{field: value})


def test_sample__empty_image() -> None:
    with pytest.raises(InputError, match="image is empty"):
        Sample(image=np.zeros((0, 5, 3), np.uint8))


def spoilt(field: str, index: Any, value: float) -> Sample:
    sample = scene.scene()
    values = getattr(sample, field).copy()
    values[index] = value
    return replace(sample, **{field: values})


@pytest.mark.parametrize(
    ("field", "index", "value", "message"),
    [
        ("boxes_xywh", (0, 2), 0, r"boxes_xywh 0 is \[30.0, 20.0, 0.0, 60.0\]"),
        ("boxes_xywh", (0, 0), np.nan, "expected finite x, y"),
        ("keypoints", (0, 4, 1), np.nan, "keypoints 4 of person 0 is visible and not finite"),
        ("keypoints", (0, 4, 2), np.nan, "keypoints 4 of person 0 is visible and not finite"),
        ("normals", (0, 3, 4), 2, "normals: 1 values are not of unit length, the first at row 3, column 4"),
        ("normals", (0, 3, 4), np.nan, "normals: 1 values have some finite components"),
        ("pointmap", (2, 3, 4), -1, r"pointmap: 1 values lie behind the camera .* row 3, column 4"),
        ("pointmap", (0, 3, 4), np.inf, "pointmap: 1 values have some finite coordinates"),
        ("intrinsics", (0, 0), 0, "focal lengths above zero"),
        ("intrinsics", (1, 0), 3, "expected .*f_x, 0, c_x"),
        ("alpha", (5, 6), 1.5, r"alpha ranges from .* to 1.5; expected 0 to 1"),
        ("alpha", (5, 6), np.nan, "alpha: 1 values are not finite, the first at row 5, column 6"),
        ("albedo", (1, 5, 6), 200, "albedo ranges from .* Divide 8-bit values by 255"),
        ("foreground", (1, 0, 0), 0.9, "foreground: 1 values are brighter than alpha"),
    ],
)
def test_check_values__faults(field: str, index: Any, value: float, message: str) -> None:
    with pytest.raises(InputError, match=rf"scene: .*{message}"):
        check_values(spoilt(field, index, value))


def test_check_values__nan_means_nothing_there() -> None:
    sample = scene.scene()
    for field in ("normals", "pointmap", "albedo"):
        values = getattr(sample, field).copy()
        values[:, :10] = np.nan
        sample = replace(sample, **{field: values})
    points = sample.keypoints.copy()
    points[0, 0] = (np.nan, np.nan, 0)
    check_values(replace(sample, keypoints=points))
