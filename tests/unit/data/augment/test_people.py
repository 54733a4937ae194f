from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import analytic_scene as scene
from sapiens2.assets import keypoint_table
from sapiens2.data import Sample
from sapiens2.data.augment import (
    Affine,
    HalfBody,
    PersonWindow,
    RandomAspectCrop,
    RandomFit,
    RandomPartCrop,
    RandomScale,
    SelectPerson,
    Warp,
    only_person,
)
from sapiens2.errors import InputError

ALWAYS = HalfBody(keypoint_table().upper_body, keypoint_table().lower_body, p=1.0, prefer_upper=1.0)


@pytest.fixture
def person() -> Sample:
    return scene.scene()


def test_select_person__draws_among_the_visible(person: Sample) -> None:
    points = np.concatenate([person.keypoints, person.keypoints * [1, 1, 0]]).astype(np.float32)
    boxes = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    two = replace(person, keypoints=points, boxes_xywh=boxes)
    for seed in range(5):
        assert SelectPerson()(two, np.random.default_rng(seed)).boxes_xywh.tolist() == [[1, 2, 3, 4]]
    drawn = {
        SelectPerson()(replace(two, keypoints=None), np.random.default_rng(seed)).boxes_xywh[0, 0] for seed in range(9)
    }
    assert drawn == {1, 5}
    assert only_person(two, 1).keypoints.shape == (1, 308, 3)
    nobody = replace(person, keypoints=None, boxes_xywh=np.zeros((0, 4), np.float32))
    with pytest.raises(InputError, match="scene: boxes_xywh: there is nobody to select"):
        SelectPerson()(nobody, np.random.default_rng(0))


def test_half_body__box_around_the_half(person: Sample) -> None:
    half = ALWAYS(person, np.random.default_rng(0))
    chosen = person.keypoints[0, list(keypoint_table().upper_body), :2]
    window = half.boxes_xywh[0, 2:] * 1.25  # what the crop will make of the box
    np.testing.assert_allclose(window, np.ptp(chosen, axis=0) * 1.5, rtol=1e-5)
    centre = half.boxes_xywh[0, :2] + half.boxes_xywh[0, 2:] / 2
    np.testing.assert_allclose(centre, chosen.mean(axis=0), rtol=1e-5)


def test_half_body__needs_enough_points(person: Sample) -> None:
    few = person.keypoints.copy()
    few[0, 8:, 2] = 0
    same = ALWAYS(replace(person, keypoints=few), np.random.default_rng(0))
    np.testing.assert_array_equal(same.boxes_xywh, person.boxes_xywh)
    lower_only = person.keypoints.copy()
    lower_only[0, list(keypoint_table().upper_body), 2] = 0
    half = ALWAYS(replace(person, keypoints=lower_only), np.random.default_rng(0))
    chosen = person.keypoints[0, list(keypoint_table().lower_body), :2]
    np.testing.assert_allclose(half.boxes_xywh[0, 2:] * 1.25, np.ptp(chosen, axis=0) * 1.5, rtol=1e-5)


def test_half_body__refuses_stale_lists(person: Sample) -> None:
    short = replace(person, keypoints=person.keypoints[:, :17].copy())
    with pytest.raises(InputError, match="17 keypoints, and the halves are those of a longer list"):
        ALWAYS(short, np.random.default_rng(0))
    with pytest.raises(InputError, match="needs keypoints and boxes"):
        ALWAYS(replace(person, keypoints=None), np.random.default_rng(0))
    HalfBody.from_names(keypoint_table().names[:17], p=1.0)(short, np.random.default_rng(0))


def test_person_window__jitter_stays_within_its_limits(person: Sample) -> None:
    window = PersonWindow((64, 48))
    plain = PersonWindow.plain((64, 48))(Affine.identity(person.size_hw), person, np.random.default_rng(0))
    shapes = set()
    for seed in range(60):
        jittered = window(Affine.identity(person.size_hw), person, np.random.default_rng(seed))
        ratio = plain.scales_xy[0] / jittered.scales_xy[0]
        assert 0.5 <= ratio <= 1.5
        angle = np.degrees(np.arctan2(jittered.matrix[1, 0], jittered.matrix[0, 0]))
        assert abs(angle) <= 80.5
        shapes.add(round(float(angle), 3) == 0)
    assert shapes == {True, False}


def test_person_window__wants_one_person(person: Sample) -> None:
    two = replace(person, keypoints=None, boxes_xywh=person.boxes_xywh.repeat(2, 0))
    with pytest.raises(InputError, match="2 people; expected one"):
        Warp((PersonWindow.plain((64, 48)),))(two, np.random.default_rng(0))


def test_random_aspect_crop__never_leaves_the_picture() -> None:
    """Every offset can come out, the last one included, and none that would give a window a row short."""
    sample = Sample(image=np.zeros((7, 9, 3), np.uint8))
    crop = RandomAspectCrop(p=1.0)
    seen = set()
    for seed in range(400):
        frame = crop(Affine.identity((7, 9)), sample, np.random.default_rng(seed))
        top, left = -frame.matrix[1, 2], -frame.matrix[0, 2]
        height, width = frame.target_hw
        assert 0 <= top <= 7 - height
        assert 0 <= left <= 9 - width
        seen.add((top == 0, top == 7 - height))
    assert {(True, False), (False, True)} <= seen


def test_random_part_crop__prefers_varied_windows() -> None:
    parts = np.zeros((80, 80), np.uint8)
    parts[:, 60:] = 3
    sample = Sample(image=np.zeros((80, 80, 3), np.uint8), parts=parts)
    crop = RandomPartCrop((30, 30), p=1.0)
    varied = 0
    for seed in range(30):
        shown = Warp((crop,))(sample, np.random.default_rng(seed)).parts
        varied += (shown == 0).mean() < 0.8 and (shown == 3).mean() < 0.8
    assert varied > 25
    small = Warp((RandomPartCrop((100, 90), p=1.0),))(sample, np.random.default_rng(0))
    assert small.size_hw == (100, 90)
    assert (small.parts[80:] == 255).all()
    np.testing.assert_array_equal(small.parts[:80, :80], parts)


def test_random_fit_and_scale__keep_the_aspect() -> None:
    sample = Sample(image=np.zeros((60, 90, 3), np.uint8))
    for seed in range(20):
        for step in (RandomFit((64, 48)), RandomScale(p=1.0)):
            frame = step(Affine.identity((60, 90)), sample, np.random.default_rng(seed))
            assert frame.scales_xy[0] == pytest.approx(frame.scales_xy[1])
            assert frame.target_hw[0] == pytest.approx(60 * frame.scales_xy[0], abs=0.51)
        assert RandomFit((64, 48))(Affine.identity((60, 90)), sample, np.random.default_rng(seed)).target_hw[1] <= 97


def test_affine__says_what_is_wrong() -> None:
    with pytest.raises(InputError, match="expected 2 x 3 finite numbers"):
        Affine(np.eye(3), (2, 2), (2, 2))
    with pytest.raises(InputError, match="each side must be at least 1"):
        Affine.identity((2, 2)).cropped(0, 0, (0, 2))
    with pytest.raises(InputError, match="it has no inverse"):
        Affine(np.zeros((2, 3)), (2, 2), (2, 2))
    with pytest.raises(InputError, match="expected a positive one, and 2 x 2"):
        Affine.identity((9, 9)).windowed((4, 4), (0, 3), (8, 8))
