import contextlib
import io
import math

import numpy as np
import pytest
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from sapiens2.assets import keypoint_table
from sapiens2.errors import InputError, MissingDependencyError
from sapiens2.metrics import OksMetric, keypoint_groups
from sapiens2.metrics.oks_evaluation import FIGURES


def _people(seed, num_keypoints, images=12):
    """Images with 0 to 4 people of many sizes, some unlabelled or crowds, and noisy, missing and invented poses."""
    rng = np.random.default_rng(seed)
    cases = []
    for image in range(images):
        number = int(rng.integers(0, 5))
        sizes = rng.uniform(15, 250, (number, 2))
        corners = rng.uniform(0, 300, (number, 2))
        target = corners[:, None] + rng.random((number, num_keypoints, 2)) * sizes[:, None]
        mask = rng.random((number, num_keypoints)) < 0.7
        mask[rng.random(number) < 0.2] = False
        found = rng.random(number) < 0.85
        noise = rng.normal(0, 1, target.shape) * rng.uniform(0, 0.15, (number, 1, 1)) * sizes[:, None]
        invented = rng.uniform(0, 400, (int(rng.integers(0, 3)), num_keypoints, 2))
        prediction = np.concatenate([(target + noise)[found], invented])
        cases.append(
            {
                "prediction": prediction,
                "target": target,
                "mask": mask,
                "image_id": image * 7,
                "scores": rng.integers(0, 6, len(prediction)) / 5,  # many ties
                "boxes": np.concatenate([corners, sizes], axis=1),
                "areas": sizes.prod(axis=1) * 0.6,
                "crowd": rng.random(number) < 0.1,
            }
        )
    return cases


def _oracle(cases, sigmas, indices, max_people=20):
    """pycocotools on the keypoints of a group."""
    truths, found = [], []
    for case in cases:
        for person in range(len(case["target"])):
            flags = 2.0 * case["mask"][person][indices]
            points = np.concatenate([case["target"][person][indices], flags[:, None]], axis=1)
            truths.append(
                {
                    "id": len(truths) + 1,
                    "image_id": case["image_id"],
                    "category_id": 1,
                    "keypoints": points.ravel().tolist(),
                    "num_keypoints": int((flags > 0).sum()),
                    "bbox": case["boxes"][person].tolist(),
                    "area": case["areas"][person],
                    "iscrowd": int(case["crowd"][person]),
                }
            )
        for points, score in zip(case["prediction"], case["scores"], strict=True):
            flat = np.concatenate([points[indices], np.ones((len(indices), 1))], axis=1).ravel().tolist()
            extent = np.ptp(points, axis=0).prod()
            found.append(
                {
                    "image_id": case["image_id"],
                    "category_id": 1,
                    "keypoints": flat,
                    "score": score,
                    "id": len(found) + 1,
                    "area": extent,
                }
            )
    images = [{"id": case["image_id"]} for case in cases]
    with contextlib.redirect_stdout(io.StringIO()):
        collections = []
        for annotations in (truths, found):
            collection = COCO()
            collection.dataset = {"images": images, "annotations": annotations, "categories": [{"id": 1}]}
            collection.createIndex()
            collections.append(collection)
        evaluation = COCOeval(*collections, "keypoints")
        evaluation.params.kpt_oks_sigmas = np.array(sigmas)[indices]
        evaluation.params.maxDets = [max_people]
        evaluation.evaluate()
        evaluation.accumulate()
        if max_people == 20:
            evaluation.summarize()
            return [math.nan if value == -1 else value for value in evaluation.stats]
    precision, recall = evaluation.eval["precision"], evaluation.eval["recall"]
    return [precision[..., 0, 0].mean(), recall[..., 0, 0].mean()]


def _fed(cases, sigmas, **settings):
    metric = OksMetric(sigmas, **settings)
    for case in cases:
        metric.update(**case)
    return metric


def _figures(metric, group):
    figures = metric.compute()
    return [figures[f"{group}/{name}"] for name in FIGURES]


@pytest.mark.parametrize(("seed", "num_keypoints"), [(0, 17), (1, 17), (2, 5), (3, 1), (4, 40)])
def test_oks_metric__equals_pycocotools(seed, num_keypoints):
    cases = _people(seed, num_keypoints)
    sigmas = np.random.default_rng(seed).uniform(0.02, 0.12, num_keypoints)
    measured = _figures(_fed(cases, sigmas), "whole")
    assert 0 < measured[0] < 1
    np.testing.assert_allclose(measured, _oracle(cases, sigmas, np.arange(num_keypoints)), rtol=0, atol=1e-12)


def test_oks_metric__published_groups_equal_pycocotools():
    cases = _people(5, 308, images=6)
    metric = OksMetric.for_published_keypoints()
    for case in cases:
        metric.update(**case)
    for group, indices in keypoint_groups().items():
        expected = _oracle(cases, keypoint_table().sigmas, np.array(indices))
        np.testing.assert_allclose(_figures(metric, group), expected, rtol=0, atol=1e-12, err_msg=group)


def test_oks_metric__limit_of_people_equals_pycocotools():
    cases = _people(6, 17)
    sigmas = [0.08] * 17
    figures = _fed(cases, sigmas, max_people=1).compute()
    expected = _oracle(cases, sigmas, np.arange(17), max_people=1)
    np.testing.assert_allclose([figures["whole/oks_ap"], figures["whole/oks_ar"]], expected, atol=1e-12)


def _single(**changes):
    case = {
        "prediction": [[[10.0, 10.0], [50.0, 90.0]]],
        "target": [[[10.0, 10.0], [50.0, 90.0]]],
        "mask": None,
        "image_id": "a",
        "scores": [0.9],
        "boxes": [[0, 0, 100, 100]],
        "areas": [10000],
    }
    return case | changes


def test_oks_metric__perfect_is_one():
    figures = _fed([_single()], [0.05, 0.05]).compute()
    assert figures["whole/oks_ap"] == figures["whole/oks_ar"] == figures["whole/oks_ap_large"] == 1
    assert math.isnan(figures["whole/oks_ap_medium"])  # there is no medium person
    assert (figures["images"], figures["people"], figures["detections"]) == (1, 1, 1)


def test_oks_metric__similarity_is_the_formula():
    # One keypoint at a distance whose similarity is 0.72: right at the thresholds 0.50 to 0.70, wrong from 0.75 on.
    distance = math.sqrt(-math.log(0.72) * 2 * 10000 * (2 * 0.05) ** 2)
    case = _single(prediction=[[[10 + distance, 10]]], target=[[[10, 10]]])
    figures = _fed([case], [0.05]).compute()
    assert figures["whole/oks_ap"] == figures["whole/oks_ar"] == pytest.approx(0.5)
    assert (figures["whole/oks_ap_50"], figures["whole/oks_ap_75"]) == (1, 0)


def test_oks_metric__keypoint_that_was_not_found_has_no_similarity():
    lost = _single(prediction=[[[10, 10], [math.nan, math.nan]]])
    figures = _fed([lost], [0.05, 0.05]).compute()
    assert figures["whole/oks_ar"] == pytest.approx(0.1)  # similarity 0.5 reaches the first of ten thresholds
    corner = _single(prediction=[[[math.nan] * 2] * 2], target=[[[0, 0], [0, 0]]])
    assert _fed([corner], [0.05, 0.05]).compute()["whole/oks_ap"] == 0


def test_oks_metric__person_without_truth_in_a_group_is_ignored_there():
    other = _single(image_id="b", mask=[[True, False]], prediction=[[[10, 10], [60, 60]]], scores=[1.0])
    figures = _fed([_single(), other], [0.05, 0.05], groups={"first": [0], "second": [1]}).compute()
    assert figures["first/oks_ap"] == figures["second/oks_ap"] == 1


def test_oks_metric__images_with_nobody_count_what_was_invented():
    nobody = {"prediction": [], "target": [], "mask": [], "scores": [], "boxes": [], "areas": [], "crowd": []}
    invented = _single(image_id="b", target=[], boxes=[], areas=[], scores=[1.0])
    clean, spoilt = ([_single(), _single(image_id="b", **nobody)], [_single(), invented])
    assert _fed(clean, [0.05, 0.05]).compute()["whole/oks_ap"] == 1
    assert _fed(spoilt, [0.05, 0.05]).compute()["whole/oks_ap"] == pytest.approx(0.5)


def test_oks_metric__no_truth_at_all_is_nan_and_noted():
    metric = _fed([_single(target=[], boxes=[], areas=[])], [0.05, 0.05])
    assert math.isnan(metric.compute()["whole/oks_ap"])
    assert metric.notes() == ("whole: no person has a keypoint with a truth",)


def test_oks_metric__scaling_the_picture_changes_nothing():
    cases = _people(7, 17)
    grown = [
        case | {name: 3 * case[name] for name in ("prediction", "target", "boxes")} | {"areas": 9 * case["areas"]}
        for case in cases
    ]
    small, large = (_fed(people, [0.08] * 17).compute() for people in (cases, grown))
    assert small["whole/oks_ap"] == pytest.approx(large["whole/oks_ap"], abs=1e-12)


def test_oks_metric__areas_of_boxes_are_noted():
    metric = _fed([_single(areas=None)], [0.05, 0.05])
    assert metric.notes() == ("the areas of 1 people are those of their boxes, not of their outlines",)
    assert metric.compute() == _fed([_single(areas=[10000])], [0.05, 0.05]).compute()


def test_oks_metric__same_image_counts_once_and_another_under_its_id_is_refused():
    metric = _fed([_single(), _single()], [0.05, 0.05])
    assert metric.compute()["images"] == 1
    with pytest.raises(InputError, match="image 'a' was added before with other people"):
        metric.update(**_single(scores=[0.8]))
    with pytest.raises(InputError, match="image 'a' was added before"):
        metric.merge(_fed([_single(scores=[0.8])], [0.05, 0.05]))


def test_oks_metric__tensors_equal_arrays():
    case = _people(8, 17)[3]
    tensors = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in case.items()
    }
    assert _fed([tensors], [0.08] * 17).state() == _fed([case], [0.08] * 17).state()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prediction": np.zeros((1, 3, 2))}, r"prediction must have shape \(N, 2, 2\)"),
        ({"scores": [0.5, 0.5]}, r"scores must have shape \(1,\)"),
        ({"scores": [math.nan]}, "scores must be finite"),
        ({"boxes": [[0, 0, -1, 1]]}, "must not be negative"),
        ({"areas": [-1]}, "must not be negative"),
        ({"areas": [1, 1]}, r"areas must have shape \(1,\)"),
        ({"crowd": [1]}, "crowd must be bool"),
        ({"mask": [[1, 1]]}, "mask must be bool"),
        ({"image_id": 1.5}, "image_id must be an integer or a text"),
    ],
)
def test_oks_metric__rejects(changes, message):
    with pytest.raises(InputError, match=message):
        _fed([_single(**changes)], [0.05, 0.05])


def test_oks_metric__rejects_settings():
    with pytest.raises(InputError, match="every sigma"):
        OksMetric([0.05, 0])
    with pytest.raises(InputError, match="max_people"):
        OksMetric([0.05], max_people=0)
    with pytest.raises(InputError, match="num_keypoints"):
        OksMetric([])


def test_compute__says_which_extra_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faster_coco_eval", None)
    with pytest.raises(MissingDependencyError, match=r"sapiens2\[train\]"):
        _fed([_single()], [0.05, 0.05]).compute()
