from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import training_runs as runs
from sapiens2.checkpoints import load_model, load_processor
from sapiens2.data.sources import open_samples
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.training import build_recipe
from sapiens2.training.measure import collect, label_names
from sapiens2.training.parts import TrainingParts
from sapiens2.training.pictures import comparison, comparison_sheet
from sapiens2.training.training_data import INDEX, SampleOrder, chosen_labels, collate, open_data, training_samples
from sapiens2.types import TASKS, Task

LABELS: dict[str, Any] = {
    "pose": {"id2label": dict(enumerate(runs.KEYPOINTS))},
    "seg": {"id2label": dict(enumerate(runs.CLASSES))},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_data(tmp_path_factory.mktemp("data"))


def made(task: Task, data: Path, tmp_path: Path, **sections: Any) -> Any:
    folder = runs.write_checkpoint(tmp_path / "model", task, **LABELS.get(task, {}))
    model = load_model(folder, task)
    recipe = build_recipe(
        {
            "task": task,
            "model": {"from": str(folder)},
            "data": {"train": runs.source(data, task)},
            "training": {"steps": 1},
            **sections,
        }
    )
    samples, _ = open_data(recipe.data, task)
    return training_samples(recipe, samples, load_processor(folder, model), model.config, label_names(task, model))


@pytest.mark.parametrize("task", TASKS)
def test_training_samples__labels_are_as_large_as_the_models_maps(task: Task, data: Path, tmp_path: Path) -> None:
    samples = made(task, data, tmp_path)
    batch = collate([samples[index] for index in (2, 4)])
    assert batch[INDEX].tolist() == [2, 4]
    model: Any = load_model(tmp_path / "model", task)
    with torch.no_grad():
        outputs = model(batch["pixel_values"])
    maps = next(value for value in outputs.values() if value.ndim == 4)
    assert batch["labels"].shape[-2:] == maps.shape[-2:]


def test_sample_order__depends_on_seed_and_epoch_alone(data: Path, tmp_path: Path) -> None:
    samples = made("seg", data, tmp_path)
    order = SampleOrder(samples, 3)
    first = list(order)
    assert sorted(first) == list(range(runs.COUNT))
    assert list(SampleOrder(samples, 3)) == first
    assert list(SampleOrder(samples, 4)) != first
    samples.set_epoch(1)
    assert list(order) != first
    samples.set_epoch(0)
    assert list(order) == first


def test_training_samples__without_augmentation_every_epoch_is_the_same(data: Path, tmp_path: Path) -> None:
    plain = made("pose", data, tmp_path, augmentation={"recipe": "none"})
    augmented = made("pose", data, tmp_path)
    first = [samples[0]["pixel_values"] for samples in (plain, augmented)]
    for samples in (plain, augmented):
        samples.set_epoch(5)
    assert torch.equal(plain[0]["pixel_values"], first[0])
    assert not torch.equal(augmented[0]["pixel_values"], first[1])


def test_training_samples__pictures_of_nobody_only_without_limits(data: Path, tmp_path: Path) -> None:
    samples = made("seg", data, tmp_path, augmentation={"limits": False})
    empty = replace(samples.augmented.samples[0], parts=np.zeros((runs.HEIGHT, runs.WIDTH), np.uint8))
    samples.augmented.samples = [empty]
    assert not samples[0]["labels"][samples[0]["labels"] != 255].any()
    limited = made("seg", data, tmp_path)
    limited.augmented.samples = [empty]
    with pytest.raises(InputError, match=r"^training sample 0 cannot be used: None of 20 augmented results"):
        limited[0]


@pytest.mark.parametrize("augmentation", [{}, {"recipe": "none"}, {"limits": False}], ids=["published", "none", "free"])
def test_training_samples__poses_of_nobody_give_way_to_others(augmentation: Any, data: Path, tmp_path: Path) -> None:
    samples = made("pose", data, tmp_path, augmentation=augmentation)
    somebody = samples.augmented.samples[1]
    nobody = replace(
        somebody,
        name="nobody",
        boxes_xywh=np.zeros((0, 4), np.float32),
        keypoints=np.zeros((0, len(runs.KEYPOINTS), 3), np.float32),
    )
    samples.augmented.samples = [somebody, somebody]
    assert samples[0]["labels"].any()
    assert not samples.augmented.replaced
    samples.augmented.samples = [nobody, somebody]
    first = samples[0]
    assert first["labels"].any()
    assert samples.augmented.replaced
    assert torch.equal(samples[0]["pixel_values"], first["pixel_values"])  # it depends on seed, epoch and index alone
    samples.augmented.samples = [nobody, nobody]
    with pytest.raises(InputError, match=r"None of 20 .* \(nobody: .*there is nobody to select"):
        samples[1]


@pytest.mark.parametrize("task", ["seg", "pose"])
@pytest.mark.parametrize("change", ["fewer", "more", "permuted"])
@pytest.mark.parametrize("key", ["train", "eval"])
def test_training_parts__data_of_other_labels_are_refused(
    key: str, change: str, task: Task, data: Path, tmp_path: Path
) -> None:
    own = runs.CLASSES if task == "seg" else runs.KEYPOINTS
    other = {"fewer": own[:-1], "more": (*own, "further"), "permuted": (own[0], *reversed(own[1:]))}[change]
    spec = runs.source(data, task)
    changed = {**spec, "classes": list(other)}
    if task == "pose":
        runs.write_data(tmp_path / "other", keypoints=other)
        changed = runs.source(tmp_path / "other", task)
    folder = runs.write_checkpoint(tmp_path / "model", task, **LABELS[task])
    document = {"task": task, "model": {"from": str(folder)}, "training": {"steps": 1}}
    recipe = build_recipe({**document, "data": {"train": spec, "eval": spec, key: changed}})
    what = "classes" if task == "seg" else "keypoints"
    with pytest.raises(ConfigurationError, match=rf"the {what} of data\.{key} are not those of the model: "):
        TrainingParts.of(recipe)


def test_training_parts__one_class_is_refused(data: Path, tmp_path: Path) -> None:
    folder = runs.write_checkpoint(tmp_path / "model", "seg", **LABELS["seg"])
    spec = {**runs.source(data, "seg"), "classes": ["coat"]}
    recipe = build_recipe(
        {
            "task": "seg",
            "model": {"from": str(folder), "labels": "data"},
            "data": {"train": spec},
            "training": {"steps": 1},
        }
    )
    with pytest.raises(ConfigurationError, match="the model has one class"):
        TrainingParts.of(recipe)


def test_training_samples__backgrounds(data: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"augmentation.backgrounds: .*none holds no pictures"):
        made("matting", data, tmp_path, augmentation={"backgrounds": str(tmp_path / "none")})
    (tmp_path / "behind").mkdir()
    shutil.copytree(data / "albedo", tmp_path / "behind" / "further")  # folders in it count
    swapped = made("matting", data, tmp_path, augmentation={"backgrounds": str(tmp_path / "behind")})
    assert swapped[0]["labels"].shape[0] == 4


def test_open_data__the_key_is_named(data: Path) -> None:
    def opened(train: Any, evaluation: Any = None) -> None:
        document = {"task": "seg", "model": {"from": "x"}, "training": {"steps": 1}}
        open_data(build_recipe({**document, "data": {"train": train, "eval": evaluation}}).data, "seg")

    with pytest.raises(InputError, match=r"data.train: There is no folder or file nowhere"):
        opened("nowhere")
    with pytest.raises(ConfigurationError, match=r"data.eval: data has kind 'clases'.*did you mean classes"):
        opened(str(data), {"kind": "clases"})


def test_chosen_labels__of_the_data(data: Path) -> None:
    section = build_recipe(
        {"task": "seg", "model": {"from": "x", "labels": "data"}, "data": {"train": "x"}, "training": {"steps": 1}}
    ).model
    assert chosen_labels(section, "seg", open_samples(runs.source(data, "seg"))) == runs.CLASSES
    with pytest.raises(ConfigurationError, match=r"model.labels is data, and the training data has no names"):
        chosen_labels(section, "seg", [])  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:Predicted scales")
@pytest.mark.parametrize("task", TASKS)
def test_comparison__has_three_panels(task: Task, data: Path, tmp_path: Path) -> None:
    folder = runs.write_checkpoint(tmp_path / "model", task, **LABELS.get(task, {}))
    model, samples = load_model(folder, task), open_samples(runs.source(data, task), task=task)
    processor = load_processor(folder, model)
    rows = []
    collect(
        model,
        processor,
        samples,
        task,
        indices=[0],
        on_sample=lambda _, sample, result: rows.append(comparison(sample, result, height=128)),
    )
    width = round(128 * runs.WIDTH / runs.HEIGHT)
    assert rows[0].shape == (128, 3 * width + 8, 3)
    assert comparison_sheet(model, processor, samples, task, rows=99, height=32).shape[0] == runs.COUNT * 36
