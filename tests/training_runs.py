"""Tiny data, checkpoints and recipes of all tasks, for the tests of training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image

import tiny_models as tiny
from sapiens2.checkpoints import default_processor
from sapiens2.io import write_normals_png
from sapiens2.models import TASK_MODELS, Sapiens2Config
from sapiens2.types import Task

HEIGHT, WIDTH = 64, 48
COUNT = 6
CLASSES = ("background", "left glove", "right glove", "coat", "hat")
KEYPOINTS = ("tip", "left heel", "right heel")
TRUNK: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "image_size": [HEIGHT, WIDTH],
    "num_first_full_attention_layers": 1,
    "num_last_full_attention_layers": 1,
    "num_key_value_attention_heads": 1,
    "num_register_tokens": 2,
    "layerscale_value": 0.5,
}


def write_checkpoint(folder: Path, task: Task, **changes: Any) -> Path:
    """A task checkpoint with random weights."""
    torch.manual_seed(1)
    fields = {**tiny.fields_of(TASK_MODELS[task].__name__), **TRUNK, "pos_embed_rescale": None, **changes}
    if "id2label" in changes:
        fields.pop("num_labels")
    model = TASK_MODELS[task](Sapiens2Config(**fields))
    model.save_pretrained(folder)
    default_processor(model.config, task).save_pretrained(folder)
    return folder


def write_data(root: Path, *, classes: tuple[str, ...] = CLASSES, keypoints: tuple[str, ...] = KEYPOINTS) -> Path:
    """Pictures of bright rectangles with the truth of every task."""
    rng = np.random.default_rng(0)
    people = []
    for index in range(COUNT):
        stem = f"picture{index}"
        top, left = int(rng.integers(4, 20)), int(rng.integers(4, 14))
        box = (slice(top, top + 36), slice(left, left + 24))
        picture = rng.integers(0, 90, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        picture[box] = rng.integers(120, 255, (36, 24, 3), dtype=np.uint8)
        parts = np.zeros((HEIGHT, WIDTH), np.uint8)
        parts[box] = 1 + index % (len(classes) - 1)
        inside = parts > 0
        alpha = np.where(inside, 255, 0).astype(np.uint8)
        normals = np.zeros((3, HEIGHT, WIDTH), np.float32)
        normals[2, inside] = -1
        _save(root / "images" / f"{stem}.png", picture)
        _save(root / "parts" / f"{stem}.png", parts)
        _save(root / "alpha" / f"{stem}.png", alpha)
        _save(root / "foreground" / f"{stem}.png", np.where(inside[..., None], picture, 0).astype(np.uint8))
        _save(root / "albedo" / f"{stem}.png", np.where(inside[..., None], picture, 0).astype(np.uint8))
        _save(root / "masks" / f"{stem}.png", alpha)
        (root / "normals").mkdir(exist_ok=True)
        write_normals_png(root / "normals" / f"{stem}.png", normals)
        (root / "depth").mkdir(exist_ok=True)
        depth = np.where(inside, np.float32(2) + np.linspace(0, 1, WIDTH, dtype=np.float32), np.float32(np.nan))
        np.savez(root / "depth" / f"{stem}.npz", depth=depth)
        _write_json(root / "intrinsics" / f"{stem}.json", {"intrinsics": [[60.0, 0, 23.5], [0, 60.0, 31.5], [0, 0, 1]]})
        points = [(left + 12 + 3 * (k % 3), top + 6 + 5 * (k % 6), 2) for k in range(len(keypoints))]
        people.append((index, [left, top, 24, 36], [value for point in points for value in point]))
    (root / "classes.txt").write_text("\n".join(classes))
    _write_json(root / "keypoints.json", _coco(people, keypoints))
    return root


def write_recipe(path: Path, checkpoint: Path, folder: Path, task: Task, /, **sections: Any) -> Path:
    """A recipe of a few steps on the CPU."""
    recipe: dict[str, Any] = {
        "task": task,
        "model": {"from": str(checkpoint)},
        "data": {"train": source(folder, task), "eval": source(folder, task)},
        "optimizer": {"lr": 2e-3, "layer_decay": 0.9},
        "training": {"steps": 4, "batch_size": 2, "device": "cpu"},
        "log": {"every": 1, "save_every": 2, "pictures": 2, "tensorboard": False},
    }
    for name, section in sections.items():
        merge = isinstance(section, dict) and isinstance(recipe.get(name), dict)
        recipe[name] = {**recipe[name], **section} if merge else section
    path.write_text(yaml.safe_dump(recipe))
    return path


def source(data: Path, task: Task) -> Any:
    """What a recipe says of the data of a task."""
    return {
        "pose": {"kind": "coco", "annotations": str(data / "keypoints.json"), "images": str(data / "images")},
        "seg": {
            "kind": "classes",
            "images": str(data / "images"),
            "labels": str(data / "parts"),
            "classes": list(CLASSES),
        },
    }.get(task, str(data))


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """The weights in a checkpoint."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def _coco(people: list[Any], keypoints: tuple[str, ...]) -> dict[str, Any]:
    return {
        "images": [
            {"id": index, "file_name": f"picture{index}.png", "height": HEIGHT, "width": WIDTH}
            for index in range(COUNT)
        ],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1, "iscrowd": 0, "bbox": box, "keypoints": points}
            for i, box, points in people
        ],
        "categories": [{"id": 1, "name": "person", "keypoints": list(keypoints), "skeleton": []}],
    }


def _save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values)).save(path)


def _write_json(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
