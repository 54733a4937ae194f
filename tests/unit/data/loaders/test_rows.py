from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import data_folders as made
from sapiens2.data.loaders import HubRows
from sapiens2.errors import ConfigurationError, InputError

COLUMNS = {
    "image": "picture",
    "parts": "annotation",
    "normals": "normals",
    "depth": "depth",
    "intrinsics": "camera",
    "alpha": "matte",
    "albedo": "albedo",
    "mask": "mask",
    "keypoints": "points",
    "boxes": "boxes",
}


def encoded(picture: Image.Image) -> dict[str, Any]:
    stream = io.BytesIO()
    picture.save(stream, format="PNG")
    return {"bytes": stream.getvalue(), "path": None}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "picture": Image.fromarray(made.image()),
        "annotation": encoded(Image.fromarray(made.parts())),
        "normals": made.normals().tolist(),
        "depth": made.depth().tolist(),
        "camera": made.intrinsics(),
        "matte": Image.fromarray(made.alpha()),
        "albedo": Image.fromarray(made.image(2)),
        "mask": Image.fromarray(made.alpha() > 100),
        "points": [[1.0, 2.0, 2, 3.0, 4.0, 1]],
        "boxes": [[0, 0, 5, 5]],
        **changes,
    }


def test_rows__every_field() -> None:
    sample = HubRows([row()], COLUMNS)[0]
    np.testing.assert_array_equal(sample.image, made.image())
    np.testing.assert_array_equal(sample.parts, made.parts())
    there = np.where(made.alpha() > 100, 1, np.nan)
    np.testing.assert_allclose(sample.pointmap[2], made.depth() * there)
    np.testing.assert_allclose(sample.normals[:, 1:], (made.normals() * there)[:, 1:], atol=1e-6)
    np.testing.assert_array_equal(np.isfinite(sample.albedo[0]), made.alpha() > 100)
    np.testing.assert_array_equal(sample.keypoints, [[[1, 2, 2], [3, 4, 1]]])
    assert sample.name == "row 0"


def test_rows__pictures_in_every_form(tmp_path: Path) -> None:
    picture = Image.fromarray(made.image())
    picture.save(tmp_path / "a.png")
    for value in (picture, made.image(), str(tmp_path / "a.png"), encoded(picture), {"path": str(tmp_path / "a.png")}):
        np.testing.assert_array_equal(HubRows([{"x": value}], {"image": "x"})[0].image, made.image())


def test_rows__nobody_is_no_fault() -> None:
    sample = HubRows([row(points=np.zeros((0, 2, 3)), boxes=[])], COLUMNS)[0]
    assert sample.keypoints.shape == (0, 2, 3)
    assert sample.boxes_xywh.shape == (0, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"picture": None}, "row 0, column 'picture' is None"),
        ({"picture": {"bytes": b"torn", "path": None}}, "row 0, column 'picture' is no picture"),
        ({"picture": {"text": 1}}, "row 0, column 'picture' is no picture"),
        ({"annotation": np.full((6, 8), 40)}, "row 0, column 'annotation': class id 40"),
        ({"normals": [[1, 2], [3]]}, "row 0, column 'normals' is no regular array"),
        ({"depth": "far"}, "row 0, column 'depth' holds no numbers"),
        ({"camera": [1, 2]}, r"row 0, column 'camera' has shape \(2,\); expected a camera matrix"),
        ({"annotation": np.zeros((3, 3), np.uint8)}, r"row 0: parts has shape \(3, 3\); expected \(6, 8\)"),
        ({"points": [[1.0, 2.0]]}, "row 0, column 'points'"),
        ({"boxes": [[1.0, 2.0]]}, "row 0, column 'boxes'"),
    ],
)
def test_rows__faults_name_row_and_column(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        HubRows([row(**changes)], COLUMNS)[0]


def test_rows__faults_of_columns() -> None:
    with pytest.raises(ConfigurationError, match=r"no fields \['colour'\]"):
        HubRows([row()], {**COLUMNS, "colour": "x"})
    with pytest.raises(ConfigurationError, match="name no image"):
        HubRows([row()], {"parts": "annotation"})
    with pytest.raises(ConfigurationError, match=r"no columns \['photo'\]; they have"):
        HubRows([row()], {"image": "photo"})
    assert len(HubRows([], {"image": "photo"})) == 0
