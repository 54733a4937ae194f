from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import sapiens2.models as models
import tiny_models as tiny
from sapiens2.assets import keypoint_table
from sapiens2.checkpoints import default_processor
from sapiens2.data import Sample
from sapiens2.errors import InputError
from sapiens2.models import TASK_MODELS
from sapiens2.training.measure import collect, figures_of, label_names, measure, report_of, task_metrics
from sapiens2.types import TASKS, Task

HEIGHT, WIDTH = 40, 32


def build(task: Task, **changes: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    config = models.Sapiens2Config(**tiny.fields_of(TASK_MODELS[task].__name__, **changes))
    return TASK_MODELS[task](config).eval(), default_processor(config, task)


def sample_with_everything(seed: int = 0, people: int = 2, keypoints: int = 5) -> Sample:
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(3, HEIGHT, WIDTH)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=0)
    alpha = rng.random((HEIGHT, WIDTH), np.float32)
    points = rng.random((people, keypoints, 3), np.float32) * [WIDTH, HEIGHT, 1]
    points[..., 2] = np.arange(keypoints) % 3
    return Sample(
        image=rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8),
        keypoints=points.astype(np.float32),
        boxes_xywh=np.array([[2, 3, 20, 30]] * people, np.float32),
        parts=rng.integers(0, 7, (HEIGHT, WIDTH)).astype(np.uint8),
        normals=normals,
        pointmap=(rng.random((3, HEIGHT, WIDTH)) + 1).astype(np.float32),
        intrinsics=np.array([[50.0, 0, 16], [0, 50, 20], [0, 0, 1]]),
        alpha=alpha,
        foreground=alpha * rng.random((3, HEIGHT, WIDTH), np.float32),
        albedo=rng.random((3, HEIGHT, WIDTH), np.float32),
        name=f"picture {seed}",
    )


SAMPLES = [sample_with_everything(seed) for seed in range(3)]


@pytest.mark.filterwarnings("ignore:Predicted scales")
@pytest.mark.parametrize("task", TASKS)
def test_measure__every_task_has_figures_whatever_the_batch(task: Task) -> None:
    model, processor = build(task)
    seen: list[int] = []
    report = measure(model, processor, SAMPLES, task, on_sample=lambda index, *_: seen.append(index))
    assert seen == [0, 1, 2]
    assert (report["task"], report["samples"]) == (task, 3)
    assert figures_of(report)
    one_by_one = figures_of(measure(model, processor, SAMPLES, task, batch_size=1), detailed=True)
    assert one_by_one == pytest.approx(figures_of(report, detailed=True), rel=1e-3, abs=1e-3)


def test_measure__a_perfect_answer() -> None:
    model, processor = build("matting")
    flat = replace(
        SAMPLES[0], alpha=np.ones((HEIGHT, WIDTH), np.float32), foreground=np.ones((3, HEIGHT, WIDTH), np.float32)
    )
    torch.nn.init.zeros_(model.decode_head.predictor.weight)
    torch.nn.init.constant_(model.decode_head.predictor.bias, 30.0)
    figures = figures_of(measure(model, processor, [flat], "matting"))
    assert figures["mad"] == pytest.approx(0, abs=1e-6)
    assert figures["mask_iou"] == 1


def test_measure__keeps_the_modes_of_the_model() -> None:
    model, processor = build("normal")
    model.train()
    model.model.eval()
    measure(model, processor, SAMPLES[:1], "normal")
    assert model.training
    assert model.decode_head.training
    assert not model.model.training


def test_collect__shares_of_the_samples_merge_into_the_whole() -> None:
    model, processor = build("seg")
    whole = measure(model, processor, SAMPLES, "seg", batch_size=1)
    first = collect(model, processor, SAMPLES, "seg", indices=[0, 2], batch_size=1)
    second = collect(model, processor, SAMPLES, "seg", indices=[1], batch_size=1)
    for metric, other in zip(first, second, strict=True):
        metric.merge(other)
    assert report_of(first, "seg", 3) == whole


def test_measure__missing_truth_is_named() -> None:
    model, processor = build("normal")
    with pytest.raises(InputError, match="picture 0: normals is not known, and normal is measured"):
        measure(model, processor, [replace(SAMPLES[0], normals=None)], "normal")


def test_label_names__own_and_published() -> None:
    names = {0: "background", 1: "left glove", 2: "right glove"}
    model, _ = build("seg", id2label=names)
    assert label_names("seg", model) == tuple(names.values())
    assert label_names("normal", build("normal")[0]) is None
    assert label_names("pose", build("pose")[0]) == tuple(f"keypoint_{index}" for index in range(5))


def test_task_metrics__oks_where_the_falloff_is_known() -> None:
    def kinds(names: tuple[str, ...]) -> list[str]:
        return [type(metric).__name__ for metric in task_metrics("pose", names)]

    assert kinds(keypoint_table().names[:17]) == ["PckMetric", "OksMetric"]
    assert kinds(("tip", "heel")) == ["PckMetric"]


def test_task_metrics__sides_of_own_classes_are_merged() -> None:
    (metric,) = task_metrics("seg", ("background", "left glove", "right glove"))
    assert metric.settings()["flip_pairs"] == [[1, 2]]
