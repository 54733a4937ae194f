"""Tiny folders of training data, good and with one fault, for the tests of loaders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sapiens2.io import write_normals_png

HEIGHT, WIDTH = 6, 8
STEMS = ("a", "b.left", "c")
RNG = np.random.default_rng(0)


def save_picture(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values)).save(path)


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def parts() -> np.ndarray:
    return np.arange(HEIGHT * WIDTH, dtype=np.uint8).reshape(HEIGHT, WIDTH) % 29


def normals() -> np.ndarray:
    vectors = np.random.default_rng(1).normal(size=(3, HEIGHT, WIDTH))
    vectors /= np.linalg.norm(vectors, axis=0)
    vectors[:, 0, 0] = 0  # no normal there
    return vectors.astype(np.float32)


def alpha() -> np.ndarray:
    return np.linspace(0, 255, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint8)


def foreground() -> np.ndarray:
    return (image(7).astype(np.uint16) * alpha()[..., None] // 255).astype(np.uint8)


def depth() -> np.ndarray:
    values = np.linspace(1, 3, HEIGHT * WIDTH, dtype=np.float32).reshape(HEIGHT, WIDTH)
    values[0, 0] = np.nan
    return values


def intrinsics() -> list[list[float]]:
    return [[10.0, 0.0, 3.5], [0.0, 11.0, 2.5], [0.0, 0.0, 1.0]]


def coco_document(num_keypoints: int = 3, names: tuple[str, ...] = ("nose", "left_eye", "right_eye")) -> dict[str, Any]:
    points = [[1.0 + k % 5, 2.0 + k % 3, 2] for k in range(num_keypoints)]
    return {
        "images": [
            {"id": 10 + index, "file_name": f"{stem}.png", "height": HEIGHT, "width": WIDTH}
            for index, stem in enumerate(STEMS)
        ],
        "annotations": [
            {
                "id": number,
                "image_id": image_id,
                "category_id": 1,
                "iscrowd": 0,
                "bbox": [1, 1, 5, 4],
                "keypoints": [value for point in points for value in point],
            }
            for number, image_id in ((1, 10), (2, 10), (3, 11))
        ],
        "categories": [{"id": 1, "name": "person", "keypoints": list(names), "skeleton": [[1, 2], [1, 3]]}],
    }


def write_json(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def write_everything(root: Path) -> Path:
    """Every kind of truth, as `sapiens2 synth` lays it out."""
    from sapiens2.assets import keypoint_table

    names = keypoint_table().names
    for index, stem in enumerate(STEMS):
        save_picture(root / "images" / f"{stem}.png", image(index))
        save_picture(root / "parts" / f"{stem}.png", parts())
        save_picture(root / "alpha" / f"{stem}.png", alpha())
        save_picture(root / "foreground" / f"{stem}.png", foreground())
        save_picture(root / "albedo" / f"{stem}.png", image(index + 20))
        (root / "normals").mkdir(exist_ok=True)
        write_normals_png(root / "normals" / f"{stem}.png", normals())
        (root / "depth").mkdir(exist_ok=True)
        np.savez(root / "depth" / f"{stem}.npz", depth=depth())
        write_json(root / "intrinsics" / f"{stem}.json", {"intrinsics": intrinsics()})
    write_json(root / "keypoints.json", coco_document(len(names), names))
    return root
