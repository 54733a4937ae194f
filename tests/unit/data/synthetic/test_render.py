from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sapiens2.assets import part_table
from sapiens2.data.sample import check_values
from sapiens2.data.synthetic import MAX_PEOPLE, SyntheticSample, render, render_frame
from sapiens2.errors import InputError


@pytest.fixture(params=["one_person", "three_people"])
def sample(request: pytest.FixtureRequest) -> SyntheticSample:
    return request.getfixturevalue(request.param)


def arrays(sample: SyntheticSample) -> dict[str, np.ndarray]:
    fields = {own.name: getattr(sample, own.name) for own in dataclasses.fields(sample)}
    return {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}


def test_render__same_seed__same_bytes(one_person: SyntheticSample) -> None:
    again = render(5, (128, 96), 1, framing="full")
    for name, value in arrays(one_person).items():
        assert value.tobytes() == arrays(again)[name].tobytes(), name


def test_render__after_another_scene__same_bytes(nobody: SyntheticSample) -> None:
    render(4, (32, 32), 1)
    assert render(3, (64, 48), 0).image.tobytes() == nobody.image.tobytes()


def test_render__other_seed__other_picture(one_person: SyntheticSample) -> None:
    assert not np.array_equal(render(6, (128, 96), 1, framing="full").image, one_person.image)


def test_render__shapes_and_formats(sample: SyntheticSample) -> None:
    height, width = sample.image.shape[:2]
    people = len(sample.boxes_xywh)
    assert sample.image.dtype == np.uint8
    assert sample.keypoints.shape == (people, 308, 3)
    for name in ("normals", "pointmap", "foreground", "background", "albedo"):
        assert getattr(sample, name).shape == (3, height, width), name
        assert getattr(sample, name).dtype == np.float32, name
    for name in ("parts", "people"):
        assert getattr(sample, name).shape == (height, width)
        assert getattr(sample, name).dtype == np.uint8


def test_render__composite__is_the_image(sample: SyntheticSample) -> None:
    composite = sample.foreground + (1 - sample.alpha) * sample.background
    assert np.abs(composite.transpose(1, 2, 0) * 255 - sample.image).max() <= 0.51


def test_render__alpha__has_the_levels_of_its_samples(sample: SyntheticSample) -> None:
    assert sample.alpha.min() >= 0
    assert sample.alpha.max() == 1
    assert np.allclose(sample.alpha * 25, np.rint(sample.alpha * 25), atol=1e-4)
    assert len(np.unique(sample.alpha)) > 12


def test_render__foreground__lies_under_alpha(sample: SyntheticSample) -> None:
    assert sample.foreground.min() >= 0
    assert (sample.foreground <= sample.alpha + 1e-5).all()


def test_render__parts__only_where_people_are(sample: SyntheticSample) -> None:
    known = sample.parts > 0
    assert known.any()
    assert (sample.alpha[known] > 0).all()
    assert (known == (sample.alpha >= 0.5))[np.abs(sample.alpha - 0.5) > 0.4].all()
    assert ((sample.people > 0) == known).all()
    assert sample.people.max() <= len(sample.boxes_xywh)
    assert sample.parts.max() < len(part_table())


def test_render__normals__unit_and_facing_the_camera(sample: SyntheticSample) -> None:
    known = sample.parts > 0
    normals = sample.normals[:, known]
    assert np.isnan(sample.normals[:, ~known]).all()
    assert np.abs(np.linalg.norm(normals, axis=0) - 1).max() < 1e-5
    rays = sample.pointmap[:, known] / np.linalg.norm(sample.pointmap[:, known], axis=0)
    assert ((normals * rays).sum(axis=0) < 0).all()


def test_render__pointmap__projects_back_to_its_pixels(sample: SyntheticSample) -> None:
    known = sample.parts > 0
    points = sample.pointmap[:, known].astype(np.float64)
    assert np.isnan(sample.pointmap[:, ~known]).all()
    assert (points[2] > 0.1).all()
    u, v, w = sample.intrinsics @ points
    rows, columns = np.nonzero(known)
    assert np.abs(u / w - columns).max() < 1e-3
    assert np.abs(v / w - rows).max() < 1e-3


def test_render__normals_agree_with_the_relief_of_the_pointmap(one_person: SyntheticSample) -> None:
    """Inside one person the slope of neighbouring points gives the same directions, but at folds and contours."""
    points = one_person.pointmap.astype(np.float64)
    right = points[:, 1:-1, 2:] - points[:, 1:-1, :-2]
    down = points[:, 2:, 1:-1] - points[:, :-2, 1:-1]
    slope = np.cross(down, right, axis=0)
    slope /= np.linalg.norm(slope, axis=0)
    cosine = (slope * one_person.normals[:, 1:-1, 1:-1]).sum(axis=0)
    assert np.nanmedian(cosine) > 0.93


def test_render__parts__agree_with_the_pose(one_person: SyntheticSample) -> None:
    """Where a visible ankle or eye is, the class is one of that side's leg or of the head."""
    table, names = part_table(), one_person.parts
    checked = 0
    for index, groups in ((1, {"head"}), (2, {"head"}), (0, {"head"})):
        x, y, seen = one_person.keypoints[0, index]
        if seen == 2:
            label = names[round(float(y)), round(float(x))]
            assert table.groups[label] in groups, table.names[label]
            checked += 1
    assert checked > 0


def test_render__albedo__in_range_where_people_are(sample: SyntheticSample) -> None:
    covered = sample.alpha > 0
    assert np.isnan(sample.albedo[:, ~covered]).all()
    albedo = sample.albedo[:, covered]
    assert albedo.min() >= 0
    assert albedo.max() <= 1


def test_render__nobody__empty_truth(nobody: SyntheticSample) -> None:
    assert nobody.keypoints.shape == (0, 308, 3)
    assert nobody.boxes_xywh.shape == (0, 4)
    assert not nobody.alpha.any()
    assert not nobody.parts.any()
    assert np.isnan(nobody.pointmap).all()


def test_render__three_people__each_has_pixels_and_a_box(three_people: SyntheticSample) -> None:
    for number, (x, y, width, height) in enumerate(three_people.boxes_xywh, start=1):
        rows, columns = np.nonzero(three_people.people == number)
        assert len(rows), number
        assert columns.min() >= x - 1
        assert columns.max() <= x + width + 1
        assert rows.min() >= y - 1
        assert rows.max() <= y + height + 1


def test_sample__passes_the_checks_of_loaders(sample: SyntheticSample) -> None:
    check_values(sample.sample())


def test_sample__alpha_is_known_everywhere(one_person: SyntheticSample) -> None:
    assert one_person.sample().mask is None


def test_sample__people_of_whom_nothing_is_shown__are_none(three_people: SyntheticSample) -> None:
    boxes, keypoints = three_people.boxes_xywh.copy(), three_people.keypoints.copy()
    boxes[0, 2:] = 0
    keypoints[1, :, 2] = 0
    own = dataclasses.replace(three_people, boxes_xywh=boxes, keypoints=keypoints).sample()
    assert np.array_equal(own.boxes_xywh, boxes[2:])
    assert np.array_equal(own.keypoints, keypoints[2:])
    check_values(own)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1, (64, 48), 1), "seed must be a whole number of at least 0, got -1"),
        ((0, (8, 48), 1), "a side in pixels must be a whole number from 16 to 4096, got 8"),
        ((0, (64, 48), MAX_PEOPLE + 1), "people must be a whole number from 0 to 6, got 7"),
        ((0, (100_000, 100_000), 1), "a side in pixels must be a whole number from 16 to 4096, got 100000"),
        ((0, (64, 48.0), 1), "a side in pixels must be a whole number from 16 to 4096, got 48.0"),
        *[((7, size, 1), "size_hw must be .height, width., got") for size in (64, None, "64x48", (64,), (64, 48, 3))],
        *[((value, (64, 48), 1), "seed must be a whole number of at least 0, got") for value in (None, 1.5, "7", True)],
        *[((0, (64, 48), value), "people must be a whole number from 0 to 6, got") for value in (None, 1.5, (1, 2))],
    ],
)
def test_render__bad_arguments__are_named(arguments: tuple, words: str) -> None:
    with pytest.raises(InputError, match=words):
        render(*arguments)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ((3, 3), "frame must be a whole number from 0 to 2, got 3"),
        ((-1, 3), "frame must be a whole number from 0 to 2, got -1"),
        ((0, 0), "frames must be a whole number of at least 1, got 0"),
        ((0, None), "frames must be a whole number"),
        ((0.5, 3), "frame must be a whole number"),
    ],
)
def test_render_frame__bad_place_in_a_clip__is_named(place: tuple, words: str) -> None:
    with pytest.raises(InputError, match=words):
        render_frame(0, (64, 48), 1, *place)


def test_render__unknown_framing__lists_them() -> None:
    with pytest.raises(InputError, match="one of full, knees"):
        render(0, (64, 48), 1, framing="head")


@pytest.mark.parametrize("seed", [70010000200, *range(40)])
def test_render__a_picture_without_people_is_made_for_every_seed(seed: int) -> None:
    sample = render(seed, (16, 16), 0)  # one in ten had nothing in it at all, and was an error

    assert sample.alpha.max() == 0
    assert sample.parts.max() == 0
    assert sample.keypoints.shape == (0, 308, 3)
