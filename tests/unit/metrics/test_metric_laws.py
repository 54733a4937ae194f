"""What holds for every metric: order, processes, states, masks, nothing seen."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.metrics import (
    ImageMetric,
    MattingMetric,
    NormalMetric,
    OksMetric,
    PckMetric,
    PointmapMetric,
    SegmentationMetric,
)

H, W, IMAGES = 9, 11, 5


def _dense_updates(seed, prediction, target):
    rng = np.random.default_rng(seed)
    return [((prediction(rng), target(rng), rng.random((H, W)) > 0.3), {}) for _ in range(IMAGES)]


def _points(rng):
    return rng.uniform(0, 100, (2, 4, 2))


def _pck_updates():
    rng = np.random.default_rng(5)
    boxes = [[0, 0, 100, 60], [10, 10, 50, 120]]
    return [((_points(rng), _points(rng), rng.random((2, 4)) > 0.2), {"boxes": boxes}) for _ in range(IMAGES)]


def _oks_updates():
    rng = np.random.default_rng(6)
    updates = []
    for image in range(IMAGES):
        truth = _points(rng)
        details = {"image_id": image, "scores": [0.5, 0.5], "boxes": [[0, 0, 100, 100]] * 2, "areas": [5000, 9000]}
        updates.append(((truth + rng.normal(0, 4, truth.shape), truth, rng.random((2, 4)) > 0.2), details))
    return updates


def _directions(rng):
    return rng.normal(size=(3, H, W))


def _scene(rng):
    return rng.uniform(1, 3, (3, H, W))


def _colours(rng):
    return rng.random((3, H, W))


def _matte(rng):
    return rng.random((H, W))


def _classes(rng):
    return rng.integers(0, 4, (H, W))


CASES = {
    "normal": (lambda: NormalMetric(mask_description="people"), _dense_updates(1, _directions, _directions)),
    "pointmap": (lambda: PointmapMetric(alignment="scale"), _dense_updates(2, _scene, _scene)),
    "matting": (lambda: MattingMetric(empty_alpha_limit=0.1), _dense_updates(3, _matte, _matte)),
    "image": (lambda: ImageMetric(clip_predictions=False), _dense_updates(4, _colours, _colours)),
    "segmentation": (
        lambda: SegmentationMetric(4, flip_pairs=[(1, 2)], min_pixel_percent=5),
        _dense_updates(5, _classes, _classes),
    ),
    "pck": (lambda: PckMetric(4, groups={"a": [0, 1], "all": [0, 1, 2, 3]}), _pck_updates()),
    "oks": (lambda: OksMetric([0.05] * 4, groups={"a": [0, 1], "all": [0, 1, 2, 3]}), _oks_updates()),
}
DENSE = ("normal", "pointmap", "matting", "image", "segmentation")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=DENSE)
def dense_case(request):
    return CASES[request.param]


def _fed(make, updates):
    metric = make()
    for arguments, details in updates:
        metric.update(*arguments, **details)
    return metric


def _assert_same(first, second):
    # To the last bit: NaN equals NaN, and nothing is "close".
    np.testing.assert_equal(second.compute(), first.compute())
    assert second.notes() == first.notes()
    assert second.state() == first.state()


def test_merge__any_split_and_order_gives_the_same_bits(case):
    make, updates = case
    whole = _fed(make, updates)
    for order in itertools.islice(itertools.permutations(range(IMAGES)), 0, None, 17):
        first = _fed(make, [updates[index] for index in order[:2]])
        second = _fed(make, [updates[index] for index in order[2:]])
        first.merge(second)
        _assert_same(whole, first)


def test_merge__empty_metric_changes_nothing_and_the_other_stays(case):
    make, updates = case
    whole, other, empty = _fed(make, updates), _fed(make, updates), make()
    empty.merge(other)
    other.merge(make())
    _assert_same(whole, empty)
    _assert_same(whole, other)


def test_state__survives_json_and_goes_on(case):
    make, updates = case
    part = _fed(make, updates[:2])
    restored = type(part).from_state(json.loads(json.dumps(part.state(), allow_nan=False)))
    _assert_same(part, restored)
    for arguments, details in updates[2:]:
        restored.update(*arguments, **details)
    _assert_same(_fed(make, updates), restored)


def test_from_state__rejects_the_state_of_another_metric_and_damage(case):
    make, updates = case
    metric = _fed(make, updates)
    with pytest.raises(InputError, match="state of 'Other'"):
        type(metric).from_state({**metric.state(), "metric": "Other"})
    with pytest.raises(InputError, match="damaged"):
        type(metric).from_state({"metric": type(metric).__name__, "settings": metric.settings()})
    with pytest.raises(InputError, match="damaged"):
        type(metric).from_state({**metric.state(), "settings": {"colour": "blue"}})


def test_merge__rejects_other_metrics_and_other_settings():
    with pytest.raises(InputError, match="NormalMetric cannot be merged with ImageMetric"):
        NormalMetric().merge(ImageMetric())
    with pytest.raises(InputError, match=r"mask_description: 'people' and 'all'"):
        NormalMetric(mask_description="people").merge(NormalMetric(mask_description="all"))


def test_compute__nothing_seen_is_nan_with_a_note(case):
    make, _ = case
    metric = make()
    counts = {"images", "pixels", "people", "detections", "empty_images", "a/keypoints", "all/keypoints"}
    for name, value in metric.compute().items():
        assert (value == 0) if name in counts else math.isnan(value), name
    assert metric.notes() == ("no image was seen",)


def test_report__is_strict_json_with_settings_and_notes(case):
    make, updates = case
    for metric in (make(), _fed(make, updates)):
        report = json.loads(json.dumps(metric.report(), allow_nan=False))
        assert report["settings"] == metric.settings()
        assert report["values"].keys() == metric.compute().keys()
        assert report["notes"] == list(metric.notes())


def test_compute__names_are_the_same_before_and_after(case):
    make, updates = case
    assert make().compute().keys() == _fed(make, updates).compute().keys()


def test_update__tensors_and_batches_equal_arrays(dense_case):
    make, updates = dense_case
    predictions, targets, masks = (np.stack(arrays) for arrays in zip(*(call for call, _ in updates), strict=True))
    metric = make()
    metric.update(torch.tensor(predictions).requires_grad_(predictions.dtype.kind == "f"), torch.tensor(targets), masks)
    _assert_same(_fed(make, updates), metric)


def test_update__masked_pixels_do_not_matter(dense_case):
    make, updates = dense_case
    changed = []
    for (prediction, target, mask), details in updates:
        noise = np.random.default_rng(8)
        other_prediction, other_target = prediction.copy(), target.copy()
        if prediction.dtype.kind == "f":
            other_prediction[..., ~mask] = np.nan
            other_target[..., ~mask] = noise.choice([np.inf, np.nan, 1e6], other_target[..., ~mask].shape)
        else:
            other_prediction[~mask] = other_target[~mask] = 3
        changed.append(((other_prediction, other_target, mask), details))
    _assert_same(_fed(make, updates), _fed(make, changed))


def test_update__image_without_counted_pixels_is_noted(dense_case):
    make, updates = dense_case
    metric = _fed(make, updates)
    before = metric.compute()
    (prediction, target, mask), _ = updates[0]
    metric.update(prediction, target, np.zeros_like(mask))
    after = metric.compute()
    assert after.pop("images") == before.pop("images") + 1
    np.testing.assert_equal(after, before)
    assert any("1 of 6 images had no pixel that counts" in note for note in metric.notes())


def test_update__image_without_mask_among_masked_ones_is_noted(dense_case):
    make, updates = dense_case
    metric = _fed(make, updates)
    metric.update(*updates[0][0][:2])
    assert any("1 of 6 images came without a mask" in note for note in metric.notes())


def test_update__rejects_shapes_that_differ_and_masks_that_are_not_bool(dense_case):
    make, updates = dense_case
    (prediction, target, mask), _ = updates[0]
    metric = make()
    with pytest.raises(InputError, match="bring the prediction to the size of the target"):
        metric.update(prediction, target[..., :-1], mask)
    with pytest.raises(InputError, match="mask must be a bool"):
        metric.update(prediction, target, mask.astype(np.uint8))
    with pytest.raises(InputError, match="mask has shape"):
        metric.update(prediction, target, mask[:-1])
    with pytest.raises(InputError, match="prediction must be"):
        metric.update(prediction[..., None, None, None], target, mask)
    assert metric.notes() == ("no image was seen",)  # a refused update leaves nothing behind


def test_update__read_only_reversed_and_byte_swapped_arrays(dense_case):
    make, updates = dense_case
    (prediction, target, mask), _ = updates[0]
    swapped = target.astype(target.dtype.newbyteorder("S"))
    reversed_view = prediction[..., ::-1].copy()[..., ::-1]
    reversed_view.flags.writeable = False
    metric = make()
    metric.update(reversed_view, swapped, mask)
    _assert_same(_fed(make, updates[:1]), metric)


@pytest.mark.parametrize("name", ["normal", "pointmap", "matting", "image"])
def test_update__rejects_nan_where_it_counts(name):
    make, updates = CASES[name]
    (prediction, target, mask), _ = updates[0]
    broken = prediction.copy()
    broken[..., np.argwhere(mask)[0][0], np.argwhere(mask)[0][1]] = np.nan
    with pytest.raises(InputError, match="prediction is NaN or infinite at 1 of"):
        make().update(broken, target, mask)


@pytest.mark.parametrize("value", [[["a", "b"]], [[1], [2, 3]], [[1j]]])
def test_update__rejects_what_is_no_number(value):
    with pytest.raises(InputError, match="prediction"):
        MattingMetric().update(value, [[0.0]])
