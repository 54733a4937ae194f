from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

import analytic_scene as scene
import tiny_models as tiny
from sapiens2 import models
from sapiens2.codecs.udp_heatmap import decode_heatmaps
from sapiens2.data import (
    REQUIRED_TRUTH,
    AugmentedSamples,
    Sample,
    Targets,
    TargetSamples,
    collate_targets,
)
from sapiens2.data.augment import Recipe, Solarize, evaluation_recipe, training_recipe
from sapiens2.data.augment.acceptance import Acceptance
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.geometry import project
from sapiens2.models.tasks import TASK_MODELS
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.types import TASKS, Task

SIZE = (64, 48)


def processor(**options: Any) -> Sapiens2ImageProcessor:
    return Sapiens2ImageProcessor(size={"height": SIZE[0], "width": SIZE[1]}, **options)


def targets(task: Task, **options: Any) -> Targets:
    return Targets(task, processor(**options))


@pytest.fixture(scope="module")
def truth() -> Sample:
    sample = scene.scene()
    parts = np.where(sample.parts > 0, sample.parts, 0).astype(np.uint8)
    hole = np.ones(sample.size_hw, bool)
    hole[:12] = False  # else nearly all pixels are valid, which the recipes suspect
    return replace(sample, parts=parts, mask=hole)


def test_targets__normal_and_albedo_are_zero_where_nothing_is_known(truth: Sample) -> None:
    for task, values in (("normal", truth.normals), ("albedo", truth.albedo)):
        made = targets(task, do_pad=True)(truth)
        assert made["labels"].shape == (3, *SIZE)
        assert made["label_mask"].dtype == torch.bool
        assert (made["labels"][:, ~made["label_mask"]] == 0).all()
        assert torch.isfinite(made["labels"]).all()
        assert 0.3 < made["label_mask"].float().mean() < 0.5  # 48 x 36 of 64 x 48, less the hole
        assert float(made["labels"].abs().max()) <= np.nanmax(np.abs(values)) + 1e-5


def test_targets__pixel_values_are_those_of_the_processor(truth: Sample) -> None:
    for pad in (False, True):
        expected = processor(do_pad=pad)(truth.image, segmentation_maps=truth.parts, return_tensors="pt")
        made = targets("seg", do_pad=pad)(truth)
        torch.testing.assert_close(made["pixel_values"], expected["pixel_values"][0], atol=0.02, rtol=0)
        torch.testing.assert_close(made["labels"], expected["labels"][0])


def test_targets__pose_is_that_of_the_processor(truth: Sample) -> None:
    expected = processor()(truth.image, boxes=[truth.boxes_xywh], keypoints=[truth.keypoints], return_tensors="pt")
    made = targets("pose")(truth)
    torch.testing.assert_close(made["pixel_values"], expected["pixel_values"][0], atol=0.02, rtol=0)
    torch.testing.assert_close(made["label_weights"], expected["label_weights"][0])
    torch.testing.assert_close(made["labels"], expected["labels"][0], atol=2e-4, rtol=0)


def test_targets__pose_after_augmentation_marks_the_same_points(truth: Sample) -> None:
    sample = training_recipe("pose", SIZE).transform(truth, np.random.default_rng(4))
    made = targets("pose")(sample)
    seen = made["label_weights"] > 0
    assert seen.sum() > 50
    points, _ = decode_heatmaps(made["labels"][None])
    # heatmap pixels to pixels of the crop: (size - 1) ratios
    ratio = torch.tensor([47 / 11, 63 / 15])
    inner = seen & ((points[0] > 1) & (points[0] < torch.tensor([10.0, 14.0]))).all(-1)
    expected = torch.from_numpy(sample.keypoints[0, :, :2])
    torch.testing.assert_close((points[0] * ratio)[inner], expected[inner], atol=0.25, rtol=0)


def test_targets__pointmap_is_canonical(truth: Sample) -> None:
    made = targets("pointmap", do_pad=True)(truth)
    mask, scale = made["label_mask"], made["label_scales"]
    assert scale.shape == (1,)
    assert float(scale) == pytest.approx(768 / float(made["label_intrinsics"][0, 0]), rel=1e-6)
    assert float(made["label_intrinsics"][0, 0]) == pytest.approx(110 * 48 / 120)
    pixels = project(made["labels"][None], made["label_intrinsics"])[0]
    v, u = np.mgrid[: SIZE[0], : SIZE[1]]
    np.testing.assert_allclose(pixels[:, mask].numpy(), np.stack([u, v])[:, mask.numpy()], atol=1e-3)
    metres = made["labels"][2][mask] / scale
    depth = truth.pointmap[2][truth.mask]
    assert depth.min() - 0.05 < float(metres.min())
    assert float(metres.max()) < depth.max() + 0.05
    assert (made["labels"][:, ~mask] == 0).all()


@pytest.mark.parametrize("task", ["seg", "normal", "pointmap", "matting", "albedo"])
def test_targets__labels_of_a_stride_cover_the_same_view(task: Task, truth: Sample) -> None:
    whole = targets(task, do_pad=True)(truth)
    small = Targets(task, processor(do_pad=True), label_stride=4)(truth)
    assert small["pixel_values"].shape == (3, *SIZE)
    assert small["labels"].shape[-2:] == (16, 12)
    torch.testing.assert_close(small["pixel_values"], whole["pixel_values"])
    if task == "pointmap":
        torch.testing.assert_close(small["label_scales"], whole["label_scales"])
        pixels = project(small["labels"][None], small["label_intrinsics"])[0][:, small["label_mask"]]
        v, u = torch.meshgrid(torch.arange(16.0), torch.arange(12.0), indexing="ij")
        torch.testing.assert_close(pixels, torch.stack([u, v])[:, small["label_mask"]], atol=1e-3, rtol=0)
    if task == "albedo":
        both = whole["label_mask"][None, None].float()
        mean = torch.nn.functional.avg_pool2d(whole["labels"][None] * both, 4)
        share = torch.nn.functional.avg_pool2d(both, 4)
        sure = (share[0, 0] == 1) & small["label_mask"]
        torch.testing.assert_close(small["labels"][:, sure], mean[0][:, sure], atol=0.05, rtol=0)
    with pytest.raises(ConfigurationError, match="label_stride is 5; expected a divisor of"):
        Targets(task, processor(), label_stride=5)


def test_targets__matting_has_colours_then_alpha(truth: Sample) -> None:
    made = targets("matting", do_pad=True)(truth)
    assert made["labels"].shape == (4, *SIZE)
    alpha, mask = made["labels"][3], made["label_mask"]
    assert (made["labels"][:3] <= alpha + 1e-6).all()
    assert float(alpha.max()) > 0.95
    assert not mask[:14].any()


@pytest.mark.parametrize("task", TASKS)
def test_targets__say_what_is_missing(task: Task, truth: Sample) -> None:
    bare = Sample(image=truth.image, name="photo.jpg")
    with pytest.raises(InputError, match=rf"photo\.jpg: {REQUIRED_TRUTH[task][0]} is not known.*Known: nothing"):
        targets(task)(bare)


def test_targets__pose_wants_one_person(truth: Sample) -> None:
    two = replace(truth, keypoints=truth.keypoints.repeat(2, 0), boxes_xywh=truth.boxes_xywh.repeat(2, 0))
    with pytest.raises(InputError, match="2 people; expected one"):
        targets("pose")(two)


def test_targets__refuse_processors_without_a_size() -> None:
    with pytest.raises(ConfigurationError, match="targets need size"):
        Targets("seg", Sapiens2ImageProcessor(size={"shortest_edge": 64}))
    with pytest.raises(ConfigurationError, match="without a centre crop"):
        Targets("seg", processor(do_center_crop=True))
    with pytest.raises(ConfigurationError, match="no task 'pores'"):
        Targets("pores", processor())  # type: ignore[arg-type]


def test_collate__names_what_differs() -> None:
    one = {"pixel_values": torch.zeros(3, 4, 4), "labels": torch.zeros(4, 4)}
    assert collate_targets([one, one])["pixel_values"].shape == (2, 3, 4, 4)
    with pytest.raises(InputError, match="no samples"):
        collate_targets([])
    with pytest.raises(InputError, match=r"labels of sample 1 of the batch has shape \(2, 4\), and that of sample 0"):
        collate_targets([one, {**one, "labels": torch.zeros(2, 4)}])
    with pytest.raises(InputError, match=r"Sample 1 of the batch has \['labels'\]"):
        collate_targets([one, {"labels": one["labels"]}])


@pytest.mark.parametrize("task", TASKS)
def test_recipes__give_what_the_targets_take(task: Task, truth: Sample) -> None:
    recipe = pickle.loads(pickle.dumps(training_recipe(task, SIZE)))
    samples = AugmentedSamples([truth, truth], recipe, targets(task), seed=1)
    first = samples[0]
    assert first["pixel_values"].shape == (3, *SIZE)
    assert all(torch.isfinite(value.float()).all() for value in first.values())
    for name, value in samples[0].items():
        torch.testing.assert_close(value, first[name])
    assert not torch.equal(samples[1]["pixel_values"], first["pixel_values"])
    samples.set_epoch(1)
    assert not torch.equal(samples[0]["pixel_values"], first["pixel_values"])
    samples.set_epoch(0)
    torch.testing.assert_close(samples[0]["pixel_values"], first["pixel_values"])


@pytest.mark.parametrize("task", TASKS)
def test_evaluation_recipe__fits_and_does_nothing_else(task: Task, truth: Sample) -> None:
    recipe = evaluation_recipe(task, SIZE)
    one, two = (recipe.transform(truth, np.random.default_rng(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(one.image, two.image)
    assert one.size_hw == SIZE
    assert recipe.acceptance.fault(one) is None
    expected = targets(task, do_pad=task != "seg")(truth)
    torch.testing.assert_close(targets(task)(one), expected)


def test_recipes__unknown_tasks_and_further_tasks(truth: Sample) -> None:
    for build in (training_recipe, evaluation_recipe):
        with pytest.raises(InputError, match="no task 'depth'"):
            build("depth")
    both = training_recipe("normal", SIZE, also=["matting"]).transform(truth, np.random.default_rng(0))
    assert set(both.truths) == {"normals", "alpha", "foreground", "mask"}


def test_augmented__depends_on_seed_epoch_and_index_alone(truth: Sample) -> None:
    """The same with workers that live on from epoch to epoch, and in any order."""
    samples = AugmentedSamples([truth] * 4, training_recipe("seg", SIZE), targets("seg"), seed=3)
    alone = torch.stack([samples[index]["pixel_values"] for index in range(4)])
    loader = DataLoader(samples, batch_size=2, num_workers=1, collate_fn=collate_targets, persistent_workers=True)
    for epoch in (0, 1):
        samples.set_epoch(epoch)
        batches = torch.cat([batch["pixel_values"] for batch in loader])
        expected = torch.stack([samples[index]["pixel_values"] for index in range(4)])
        torch.testing.assert_close(batches, expected)
    assert not torch.equal(batches, alone)


def test_augmented__rejection_is_never_silent(truth: Sample) -> None:
    empty = replace(truth, parts=np.zeros_like(truth.parts), name="empty")
    limits = Recipe(Solarize(), Acceptance(min_labelled_share=0.01))
    mixed = AugmentedSamples([empty, truth], limits, seed=0)
    assert {mixed[0].name for _ in range(3)} == {"scene"}  # replaced by an accepted one
    hopeless = AugmentedSamples([empty], limits)
    with pytest.raises(InputError, match=r"None of 20 .* sample 0 was accepted \(empty: classes cover 0.00% of it"):
        hopeless[0]
    assert TargetSamples([empty], lambda sample: sample.name)[0] == "empty"  # evaluation rejects nothing
    with pytest.raises(InputError, match="no samples to augment"):
        AugmentedSamples([], limits)
    with pytest.raises(IndexError):
        mixed[2]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Acceptance(min_valid_pixels=100_000), "pixels with truth, fewer than 100000"),
        (Acceptance(max_valid_share=0.5), r"86.7% of its pixels have truth, more than 50.0%"),
        (Acceptance(min_canonical_depth=30.0), "nearest point has a canonical depth of"),
        (Acceptance(min_albedo_spread=0.9), "its albedo varies by 0.2"),
        (Acceptance(min_visible_keypoints=400), "308 visible keypoints, fewer than 400"),
    ],
)
def test_acceptance__says_why(limits: Acceptance, message: str, truth: Sample) -> None:
    import re

    assert re.search(message, limits.fault(truth) or "")
    assert Acceptance().fault(truth) is None
    nothing = replace(truth, mask=np.zeros(truth.size_hw, bool))
    assert Acceptance(min_canonical_depth=1.0, min_albedo_spread=0.5).fault(nothing) is None


def test_acceptance__counts_pixels_not_values(truth: Sample) -> None:
    few = np.zeros(truth.size_hw, bool)
    few[0, :15] = True
    assert Acceptance(min_valid_pixels=16).fault(replace(truth, mask=few))
    few[0, 15] = True
    assert Acceptance(min_valid_pixels=16).fault(replace(truth, mask=few)) is None


@pytest.mark.parametrize("task", TASKS)
def test_trainer__trains_on_augmented_samples(task: Task, truth: Sample, tmp_path: Path) -> None:
    model_class = TASK_MODELS[task]
    fields = tiny.fields_of(model_class.__name__, pos_embed_rescale=None)
    names = [f"point {index}" for index in range(fields["num_labels"])] if task == "pose" else None
    sample = truth if names is None else replace(truth, keypoints=truth.keypoints[:, : len(names)].copy())
    classes = [f"class {index}" for index in range(fields["num_labels"])] if task == "seg" else None
    if classes is not None:
        sample = replace(sample, parts=(sample.parts > 0).astype(np.uint8))
    torch.manual_seed(0)
    model = model_class(models.Sapiens2Config(**fields))
    height, width = tiny.pixels(1).shape[-2:]
    fitted = Sapiens2ImageProcessor(size={"height": height, "width": width})
    recipe = training_recipe(task, (height, width), keypoint_names=names, class_names=classes)
    stride = 1 if task in ("pose", "seg") else 4  # the tiny heads of maps end at a quarter
    data = AugmentedSamples([sample] * 4, recipe, Targets(task, fitted, stride))
    arguments = TrainingArguments(
        str(tmp_path),
        per_device_train_batch_size=2,
        num_train_epochs=1.5,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        logging_steps=1,
        dataloader_pin_memory=False,
        save_strategy="no",
    )
    trainer = Trainer(model, arguments, train_dataset=data, data_collator=collate_targets)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 3
    assert all(np.isfinite(loss) and loss > 0 for loss in losses)
    assert data.epoch == 1  # the Trainer has told the data set
