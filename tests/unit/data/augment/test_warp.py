from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import analytic_scene as scene
from sapiens2.assets import keypoint_table, part_table
from sapiens2.data import IGNORE_LABEL, Sample, check_values
from sapiens2.data.augment import (
    Affine,
    Letterbox,
    Mirror,
    PersonWindow,
    RandomFlip,
    RandomRotation,
    RandomScale,
    Warp,
    warp_sample,
)
from sapiens2.errors import InputError
from sapiens2.geometry import crop_people, project, resize_image
from sapiens2.processing import Sapiens2ImageProcessor

SIZE = (scene.HEIGHT, scene.WIDTH)
WHOLE = Affine.identity(SIZE)
TRANSFORMS = {
    "flip": WHOLE.flipped(),
    "enlarge": WHOLE.resized((171, 228)),
    "shrink": WHOLE.resized((60, 80)),
    "stretch": WHOLE.resized((140, 90)),
    "crop": WHOLE.cropped(10, 20, (60, 70)),
    "crop beyond the picture": WHOLE.cropped(-15, -10, (130, 150)),
    "turn": WHOLE.rotated(33),
    "letterbox": WHOLE.letterboxed((128, 96)),
    "window": WHOLE.windowed((60, 48), (54, 72), (128, 96), 25),
    "everything": WHOLE.resized((135, 180)).cropped(20, 30, (100, 110)).rotated(-50).flipped().letterboxed((128, 96)),
}


@pytest.fixture(scope="module")
def truth() -> Sample:
    return scene.scene()


def source_places(affine: Affine) -> tuple[np.ndarray, np.ndarray]:
    v, u = np.mgrid[: affine.target_hw[0], : affine.target_hw[1]]
    back = affine.inverse
    return back[0, 0] * u + back[0, 1] * v + back[0, 2], back[1, 0] * u + back[1, 1] * v + back[1, 2]


def interior(affine: Affine, margin: float = 2.0) -> np.ndarray:
    x, y = source_places(affine)
    return (x > margin) & (x < SIZE[1] - 1 - margin) & (y > margin) & (y < SIZE[0] - 1 - margin)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_warp__points_and_normals_are_those_of_the_warped_scene(name: str, truth: Sample) -> None:
    affine = TRANSFORMS[name]
    warped = check_values(warp_sample(truth, affine))
    x, y = source_places(affine)
    points, normals, hit = scene.look(x, y)
    # away from the sphere's rim, where the nearest pixel decides
    near_rim = np.zeros_like(hit)
    for dx, dy in ((-1.6, 0), (1.6, 0), (0, -1.6), (0, 1.6)):
        near_rim |= scene.look(x + dx, y + dy)[2] != hit
    steep = np.abs((normals * points).sum(axis=0)) / np.linalg.norm(points, axis=0) < 0.65
    inner = interior(affine) & ~near_rim & ~(hit & steep)
    assert inner.sum() > 1000
    depth = warped.pointmap[2]
    np.testing.assert_allclose(depth[inner], points[2][inner], rtol=2e-3)
    wall = inner & ~hit
    np.testing.assert_allclose(depth[wall], points[2][wall], rtol=3e-4)  # 1 / Z of a plane is linear
    # a turn or a mirror about the optical axis keeps what normals and points have to do with each other
    facing = (warped.normals * warped.pointmap).sum(axis=0) / np.linalg.norm(warped.pointmap, axis=0)
    expected = (normals * points).sum(axis=0) / np.linalg.norm(points, axis=0)
    np.testing.assert_allclose(facing[inner], expected[inner], atol=0.03)
    np.testing.assert_allclose(warped.normals[2][inner], normals[2][inner], atol=0.03)
    np.testing.assert_allclose(np.linalg.norm(warped.normals, axis=0)[interior(affine)], 1, atol=1e-5)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_warp__points_reproject_to_their_own_pixels(name: str, truth: Sample) -> None:
    warped = warp_sample(truth, TRANSFORMS[name])
    pixels = project(torch.from_numpy(warped.pointmap)[None], torch.from_numpy(warped.intrinsics))[0].numpy()
    v, u = np.mgrid[: warped.size_hw[0], : warped.size_hw[1]]
    valid = np.isfinite(warped.pointmap[2])
    assert valid.any()
    np.testing.assert_allclose(pixels[:, valid], np.stack([u, v])[:, valid], atol=2e-3)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_warp__keypoints_follow_what_they_mark(name: str, truth: Sample) -> None:
    affine = TRANSFORMS[name]
    warped = warp_sample(truth, affine)
    mirrored = affine.is_mirrored
    order = np.array(keypoint_table().flip_permutation) if mirrored else np.arange(308)
    source = truth.keypoints[0, order]
    back = np.column_stack([warped.keypoints[0, :, :2], np.ones(308)]) @ affine.inverse.T
    np.testing.assert_allclose(back, source[:, :2], atol=1e-4)
    places = warped.keypoints[0, :, :2]
    inside = ((places >= 0) & (places < [warped.size_hw[1], warped.size_hw[0]])).all(axis=1)
    np.testing.assert_array_equal(warped.keypoints[0, :, 2], np.where(inside, source[:, 2], 0))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_warp__colours_are_those_of_the_warped_scene(name: str, truth: Sample) -> None:
    affine = TRANSFORMS[name]
    warped = warp_sample(truth, affine)
    x, y = source_places(affine)
    inner = interior(affine)
    np.testing.assert_allclose(warped.albedo[:, inner], scene.albedo(x, y)[:, inner], atol=0.01)
    np.testing.assert_allclose(warped.alpha[inner], scene.alpha(x, y)[inner], atol=0.015)
    image = warped.image.transpose(2, 0, 1) / 255
    np.testing.assert_allclose(image[:, inner], scene.albedo(x, y)[:, inner], atol=0.013)
    assert (warped.foreground <= warped.alpha + 1e-6).all()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_warp__composite_of_warped_layers_is_the_warped_composite(name: str, truth: Sample) -> None:
    background = np.array([0.9, 0.1, 0.4])[:, None, None]
    composite = truth.foreground + (1 - truth.alpha) * background
    picture = Sample(image=np.rint(composite * 255).astype(np.uint8).transpose(1, 2, 0))
    affine = TRANSFORMS[name]
    warped, expected = warp_sample(truth, affine), warp_sample(picture, affine)
    again = warped.foreground + (1 - warped.alpha) * background
    inside = np.ones(warped.size_hw, bool) if warped.mask is None else warped.mask
    np.testing.assert_allclose(again[:, inside] * 255, expected.image.transpose(2, 0, 1)[:, inside], atol=1.6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_warp__outside_nothing_is_known(name: str, truth: Sample) -> None:
    affine = TRANSFORMS[name]
    warped = warp_sample(truth, affine)
    x, y = source_places(affine)
    outside = (np.floor(x + 0.5) < 0) | (np.floor(x + 0.5) >= SIZE[1])
    outside |= (np.floor(y + 0.5) < 0) | (np.floor(y + 0.5) >= SIZE[0])
    assert outside.any() == (warped.mask is not None)
    assert (warped.parts[outside] == IGNORE_LABEL).all()
    assert (warped.parts[~outside] != IGNORE_LABEL).all()
    assert np.isnan(warped.normals[:, outside]).all()
    assert np.isnan(warped.pointmap[:, outside]).all()
    assert np.isnan(warped.albedo[:, outside]).all()
    assert (warped.image[outside] == 0).all()
    assert (warped.alpha[outside] == 0).all()
    assert (warped.foreground[:, outside] == 0).all()
    if warped.mask is not None:
        np.testing.assert_array_equal(warped.mask, ~outside)


def test_warp__flip_is_what_it_is_for_each_map(truth: Sample) -> None:
    flipped = warp_sample(truth, WHOLE.flipped())
    negated = np.array([-1, 1, 1], np.float32)[:, None, None]
    np.testing.assert_array_equal(flipped.image, truth.image[:, ::-1])
    np.testing.assert_array_equal(flipped.alpha, truth.alpha[:, ::-1])
    np.testing.assert_array_equal(flipped.foreground, truth.foreground[..., ::-1])
    np.testing.assert_array_equal(flipped.albedo, truth.albedo[..., ::-1])
    np.testing.assert_allclose(flipped.normals, truth.normals[..., ::-1] * negated, atol=1e-6)
    np.testing.assert_allclose(flipped.pointmap, truth.pointmap[..., ::-1] * negated, rtol=1e-5, atol=1e-6)
    assert flipped.intrinsics[0, 2] == SIZE[1] - 1 - truth.intrinsics[0, 2]
    np.testing.assert_array_equal(flipped.intrinsics[[0, 1, 1], [0, 1, 2]], truth.intrinsics[[0, 1, 1], [0, 1, 2]])
    swapped = np.array(part_table().flip_permutation)
    np.testing.assert_array_equal(flipped.parts, swapped[truth.parts[:, ::-1]])
    left, right = keypoint_table().index("left_wrist"), keypoint_table().index("right_wrist")
    assert flipped.keypoints[0, left, 0] == SIZE[1] - 1 - truth.keypoints[0, right, 0]
    x, y, width, height = truth.boxes_xywh[0]
    np.testing.assert_allclose(flipped.boxes_xywh[0], [SIZE[1] - 1 - x - width, y, width, height])


def test_warp__flip_twice_is_the_identity(truth: Sample) -> None:
    again = warp_sample(warp_sample(truth, WHOLE.flipped()), WHOLE.flipped())
    for field in truth.truths:
        np.testing.assert_allclose(getattr(again, field), getattr(truth, field), rtol=1e-6, atol=1e-6, err_msg=field)
    np.testing.assert_array_equal(again.image, truth.image)
    composed = warp_sample(truth, WHOLE.flipped().flipped())
    np.testing.assert_array_equal(composed.image, truth.image)


def test_warp__quarter_turn_turns_vectors(truth: Sample) -> None:
    square = warp_sample(truth, WHOLE.cropped(0, 10, (90, 90)))
    turned = warp_sample(square, Affine.identity((90, 90)).rotated(90))  # x turns to y
    expected = np.rot90(square.normals, -1, axes=(1, 2))
    np.testing.assert_allclose(turned.normals, np.stack([-expected[1], expected[0], expected[2]]), atol=1e-6)
    np.testing.assert_array_equal(turned.image, np.rot90(square.image, -1))
    np.testing.assert_array_equal(turned.parts, np.rot90(square.parts, -1))


def test_warp__label_maps_get_no_new_ids(truth: Sample) -> None:
    for affine in TRANSFORMS.values():
        assert set(np.unique(warp_sample(truth, affine).parts)) <= {0, 6, 15, IGNORE_LABEL}


def test_warp__whole_letterbox_is_that_of_the_processor(truth: Sample) -> None:
    processor = Sapiens2ImageProcessor(size={"height": 64, "width": 48}, do_pad=True)
    expected = processor(truth.image, segmentation_maps=truth.parts, return_tensors="pt", do_normalize=False)
    warped = warp_sample(truth, WHOLE.letterboxed((64, 48)))
    pixels = (expected["pixel_values"][0] * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(warped.image, pixels)
    np.testing.assert_array_equal(warped.parts, expected["labels"][0].numpy())


@pytest.mark.parametrize("size_hw", [(64, 48), (300, 225)])
def test_warp__plain_window_is_that_of_crop_people(size_hw: tuple[int, int], truth: Sample) -> None:
    warp = Warp((PersonWindow.plain(size_hw),), chosen="udp")
    crop = crop_people(torch.from_numpy(truth.image).permute(2, 0, 1), torch.from_numpy(truth.boxes_xywh), size_hw)
    expected = crop[0].round().clamp(0, 255).permute(1, 2, 0).numpy()
    difference = np.abs(warp(truth, np.random.default_rng(0)).image - expected)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.01  # halves that float32 rounds to the other side


def test_warp__shrinking_a_crop_equals_cropping_the_shrunk_picture() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (400, 300, 3), dtype=np.uint8)
    whole = Affine.identity((400, 300)).resized((100, 75))
    small = resize_image(torch.from_numpy(noise).permute(2, 0, 1)[None], (100, 75))[0].permute(1, 2, 0).numpy()
    part = warp_sample(Sample(image=noise), whole.cropped(30, 20, (40, 30))).image
    assert np.abs(part.astype(int) - small[30:70, 20:50].astype(int)).mean() < 2.5
    assert small.std() > 12


def test_warp__mask_hides_what_it_excludes(truth: Sample) -> None:
    from dataclasses import replace

    mask = np.zeros(SIZE, np.bool_)
    mask[20:70, 30:90] = True
    spoilt = truth.normals.copy()
    spoilt[:, ~mask] = 7.0
    sample = replace(truth, mask=mask, normals=spoilt)
    warped = warp_sample(sample, WHOLE.resized((171, 228)))
    np.testing.assert_allclose(np.linalg.norm(warped.normals, axis=0)[warped.mask], 1, atol=1e-5)
    assert np.isnan(warped.normals[:, ~warped.mask]).all()
    assert np.isnan(warped.pointmap[:, ~warped.mask]).all()
    assert np.isnan(warped.albedo[:, 0, 0]).all()


def test_warp__refuses_to_skew_a_camera(truth: Sample) -> None:
    with pytest.raises(InputError, match="Turning pixels that are not square"):
        warp_sample(truth, WHOLE.resized((140, 90)).rotated(30))


def test_warp__refuses_stale_mirrors(truth: Sample) -> None:
    mirror = Mirror.from_names(["left_eye", "right_eye"])
    with pytest.raises(InputError, match=r"308 keypoints, and the mirror knows partners of 2.*from_names"):
        warp_sample(truth, WHOLE.flipped(), mirror=mirror)
    mirror = Mirror.from_names(None, ["background", "left", "right"])
    with pytest.raises(InputError, match="Class id 15 is not among the 3 classes"):
        warp_sample(truth, WHOLE.flipped(), mirror=mirror)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.just(lambda a: a.flipped()),
            st.floats(-180, 180).map(lambda d: lambda a: a.rotated(d)),
            st.floats(0.4, 2.5).map(lambda s: lambda a: a.scaled(s)),
            st.tuples(st.integers(-20, 40), st.integers(-20, 40)).map(lambda t: lambda a: a.cropped(*t, (60, 50))),
        ),
        max_size=5,
    )
)
def test_affine__camera_and_points_agree(steps: list) -> None:
    """A point of the scene, seen by the new camera after the turn, lies where the affine map brings its pixel."""
    affine = WHOLE
    for step in steps:
        affine = step(affine)
    camera, axes = affine.camera(scene.INTRINSICS)
    point = np.array([0.4, -0.3, 2.5])
    pixel = (scene.INTRINSICS @ point)[:2] / point[2]
    seen = camera @ np.append(axes @ point[:2], point[2])
    np.testing.assert_allclose(seen[:2] / seen[2], affine.points(pixel), atol=1e-6)
    np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
    assert (np.linalg.det(axes) < 0) == affine.is_mirrored
    back = np.append(affine.points(pixel), 1) @ affine.inverse.T
    np.testing.assert_allclose(back, pixel, atol=1e-8)


def test_warp__steps_are_seeded_and_picklable(truth: Sample) -> None:
    warp = Warp((RandomScale(p=1.0), RandomRotation(), RandomFlip(), Letterbox((64, 48))))
    again = pickle.loads(pickle.dumps(warp))
    first, second = warp(truth, np.random.default_rng(5)), again(truth, np.random.default_rng(5))
    np.testing.assert_array_equal(first.image, second.image)
    other = warp(truth, np.random.default_rng(6))
    assert not np.array_equal(first.image, other.image)
    assert "RandomRotation(degrees=60.0, p=0.5)" in repr(warp)


@pytest.mark.parametrize("size_hw", [(1, 1), (1, 40), (40, 1), (2, 3)])
def test_warp__tiny_pictures(size_hw: tuple[int, int]) -> None:
    sample = Sample(
        image=np.full((*size_hw, 3), 200, np.uint8),
        parts=np.ones(size_hw, np.uint8),
        normals=np.broadcast_to(np.array([0, 0, -1], np.float32)[:, None, None], (3, *size_hw)).copy(),
        pointmap=np.ones((3, *size_hw), np.float32),
        intrinsics=np.eye(3),
        alpha=np.ones(size_hw, np.float32),
    )
    for affine in (Affine.identity(size_hw).letterboxed((16, 12)), Affine.identity(size_hw).resized((1, 1))):
        warped = warp_sample(sample, affine)
        assert warped.image.max() == 200
        assert np.nanmin(warped.normals[2]) == -1
        assert warped.parts.min() == 1
        assert warped.alpha.max() == 1


def test_warp__albedo_ends_where_it_ends_and_is_not_darkened() -> None:
    albedo = np.full((3, 40, 40), 0.8, np.float32)
    albedo[:, :, 20:] = np.nan
    sample = Sample(image=np.zeros((40, 40, 3), np.uint8), albedo=albedo)
    for factor in (0.5, 2.5):
        warped = warp_sample(sample, Affine.identity((40, 40)).scaled(factor)).albedo
        known = np.isfinite(warped[0])
        expected = np.arange(warped.shape[2]) < 20 * factor
        np.testing.assert_array_equal(known, np.broadcast_to(expected, known.shape))
        np.testing.assert_allclose(warped[:, known], 0.8, atol=1e-5)
