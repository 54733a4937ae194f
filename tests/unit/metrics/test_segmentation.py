import math

import numpy as np
import pytest
import torch

from sapiens2.assets import part_table
from sapiens2.errors import InputError
from sapiens2.metrics import SegmentationMetric


def _fed(prediction, target, mask=None, num_classes=4, **settings):
    metric = SegmentationMetric(num_classes, **settings)
    metric.update(prediction, target, mask)
    return metric


def test_segmentation_metric__hand_computed():
    #        truth 0 0 1 1 2 2, prediction 0 1 1 1 2 0
    metric = _fed([[0, 1, 1, 1, 2, 0]], [[0, 0, 1, 1, 2, 2]], class_names=["back", "arm", "leg", "hat"])
    figures = metric.compute()
    assert figures["iou/back"] == pytest.approx(1 / 3)
    assert figures["iou/arm"] == pytest.approx(2 / 3)
    assert figures["iou/leg"] == pytest.approx(1 / 2)
    assert math.isnan(figures["iou/hat"])
    assert math.isnan(figures["accuracy/hat"])
    assert figures["mean_iou"] == pytest.approx(1 / 2)
    assert figures["accuracy/back"] == figures["accuracy/leg"] == 0.5
    assert figures["mean_accuracy"] == pytest.approx(2 / 3)
    assert figures["pixel_accuracy"] == pytest.approx(4 / 6)
    assert figures["foreground_class_agreement"] == pytest.approx(3 / 4)
    assert figures["foreground_iou"] == pytest.approx(3 / 5)
    assert metric.absent_classes() == ("hat",)
    assert metric.notes() == ("classes in neither truth nor prediction, left out of all means: hat",)


def test_segmentation_metric__matches_sets_of_pixels():
    rng = np.random.default_rng(1)
    predictions, targets = rng.integers(0, 6, (2, 3, 20, 30))
    targets[rng.random(targets.shape) < 0.1] = 255
    mask = rng.random(targets.shape) < 0.8
    figures = _fed(predictions, targets, mask, num_classes=6).compute()
    counted = mask & (targets != 255)
    ious = []
    for number in range(6):
        said, true = (predictions == number) & counted, (targets == number) & counted
        ious.append((said & true).sum() / (said | true).sum())
        assert figures[f"iou/{number}"] == pytest.approx(ious[-1])
        assert figures[f"accuracy/{number}"] == pytest.approx((said & true).sum() / true.sum())
    assert figures["mean_iou"] == pytest.approx(np.mean(ious))
    said, true = (predictions != 0) & counted, (targets != 0) & counted
    assert figures["foreground_iou"] == pytest.approx((said & true).sum() / (said | true).sum())
    assert figures["foreground_class_agreement"] == pytest.approx((predictions == targets)[true].mean())
    assert figures["pixels"] == counted.sum()


def test_segmentation_metric__perfect_is_one_although_classes_are_absent():
    labels = np.array([[0, 1], [1, 0]])
    figures = _fed(labels, labels, num_classes=29).compute()
    for name in ("mean_iou", "mean_accuracy", "pixel_accuracy", "foreground_class_agreement", "foreground_iou"):
        assert figures[name] == 1, name


def test_segmentation_metric__predicted_class_that_is_never_true_lowers_the_mean():
    metric = _fed([[0, 3]], [[0, 0]])
    assert metric.compute()["iou/3"] == 0
    assert metric.compute()["mean_iou"] == pytest.approx(1 / 4)
    assert metric.never_true_classes() == ("3",)
    assert "never true, with IoU 0: 3" in metric.notes()[-1]


def test_segmentation_metric__ignored_label_as_prediction_is_wrong():
    figures = _fed([[255, 1]], [[1, 1]]).compute()
    assert figures["pixel_accuracy"] == figures["iou/1"] == figures["foreground_class_agreement"] == 0.5
    assert figures["foreground_iou"] == 0.5


def test_segmentation_metric__sides_merged_forgives_left_for_right():
    swapped = _fed([[0, 2, 1, 3]], [[0, 1, 2, 3]], flip_pairs=[(1, 2)]).compute()
    assert swapped["mean_iou"] == 0.5
    assert swapped["mean_iou_sides_merged"] == 1
    wrong = _fed([[0, 3, 1, 3]], [[0, 1, 2, 3]], flip_pairs=[(1, 2)]).compute()
    assert wrong["mean_iou_sides_merged"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)


def test_segmentation_metric__sides_merged_equals_merged_labels():
    rng = np.random.default_rng(2)
    table = part_table()
    prediction, target = rng.integers(0, len(table), (2, 40, 50))
    merge = np.arange(len(table))
    for first, second in table.flip_pairs:
        merge[second] = first
    own = SegmentationMetric.for_body_parts()
    own.update(prediction, target)
    merged = _fed(merge[prediction], merge[target], num_classes=len(table))
    assert own.compute()["mean_iou_sides_merged"] == merged.compute()["mean_iou"]


def test_segmentation_metric__rare_classes_are_left_out_above_a_share():
    target = np.zeros((10, 100), np.int64)
    target[0, :10], target[1, :11] = 1, 2  # exactly 1 %, and more than 1 %
    prediction = np.where(target == 1, 0, target)
    figures = _fed(prediction, target, min_pixel_percent=1).compute()
    assert figures["mean_iou_above_1_percent"] == pytest.approx((979 / 989 + 1) / 2)
    assert figures["mean_iou"] == pytest.approx((979 / 989 + 0 + 1) / 3)


def test_segmentation_metric__only_ignored_pixels_is_nan():
    figures = _fed([[0, 1]], [[255, 255]]).compute()
    assert all(math.isnan(value) for name, value in figures.items() if name not in {"images", "pixels"})


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_segmentation_metric__integer_dtypes_do_not_overflow(dtype):
    labels = torch.full((1, 300, 300), 28, dtype=dtype)
    metric = SegmentationMetric.for_body_parts()
    metric.update(labels, labels)
    assert metric.confusion[28, 28] == 90000
    assert metric.confusion.sum() == 90000


def test_segmentation_metric__rejects_what_is_no_class():
    with pytest.raises(InputError, match=r"target holds \[4\], which are neither classes 0 to 3 nor the ignored"):
        _fed([[0]], [[4]])
    with pytest.raises(InputError, match=r"prediction holds \[-1\]"):
        _fed([[-1]], [[0]])
    with pytest.raises(InputError, match=r"integer dtype, got torch\.float64"):
        _fed([[0.0]], [[0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_classes": 0}, "num_classes"),
        ({"class_names": ["a", "a"]}, "2 unique names"),
        ({"class_names": ["a"]}, "2 unique names"),
        ({"flip_pairs": [(0, 2)]}, "flip_pairs"),
        ({"flip_pairs": [(0, 1), (1, 0)]}, "flip_pairs"),
        ({"background": 2}, "background"),
        ({"ignore_index": 1}, "ignore_index 1"),
        ({"min_pixel_percent": 100}, "min_pixel_percent"),
    ],
)
def test_segmentation_metric__rejects_settings(settings, message):
    with pytest.raises(InputError, match=message):
        SegmentationMetric(**({"num_classes": 2} | settings))
