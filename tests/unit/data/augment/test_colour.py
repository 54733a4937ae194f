from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import analytic_scene as scene
from sapiens2.data import Sample, check_values
from sapiens2.data.augment import (
    BackgroundSwap,
    BoxBlur,
    CoarseDropout,
    Compose,
    DownUpSample,
    GaussianBlur,
    GaussianNoise,
    KeepTruth,
    MedianBlur,
    PhotometricDistortion,
    Randomly,
    Solarize,
    recolour,
    transfer_colours,
)
from sapiens2.data.augment.lab import lab_to_srgb, srgb_to_lab
from sapiens2.errors import InputError

COLOUR = (PhotometricDistortion(), Solarize())
FAULTS = (GaussianBlur(), BoxBlur(), MedianBlur(), GaussianNoise(), DownUpSample(), CoarseDropout())


@pytest.fixture(scope="module")
def truth() -> Sample:
    sample = scene.scene()
    composite = sample.foreground + (1 - sample.alpha) * np.array([0.2, 0.6, 0.3])[:, None, None]
    return replace(sample, image=np.rint(composite * 255).astype(np.uint8).transpose(1, 2, 0).copy())


@pytest.mark.parametrize("transform", COLOUR + FAULTS, ids=lambda transform: type(transform).__name__)
def test_transforms__are_seeded_picklable_and_pure(transform: object, truth: Sample) -> None:
    before = truth.image.copy()
    first = transform(truth, np.random.default_rng(3))
    second = pickle.loads(pickle.dumps(transform))(truth, np.random.default_rng(3))
    np.testing.assert_array_equal(first.image, second.image)
    np.testing.assert_array_equal(truth.image, before)  # nothing is changed in place
    assert any(
        not np.array_equal(transform(truth, np.random.default_rng(seed)).image, truth.image) for seed in range(4)
    )
    check_values(first)
    assert type(transform).__name__ in repr(transform)
    np.testing.assert_array_equal(first.normals, truth.normals)


@pytest.mark.parametrize("transform", FAULTS, ids=lambda transform: type(transform).__name__)
def test_faults__leave_the_truth_alone(transform: object, truth: Sample) -> None:
    changed = transform(truth, np.random.default_rng(0))
    np.testing.assert_array_equal(changed.foreground, truth.foreground)
    np.testing.assert_array_equal(changed.alpha, truth.alpha)


@pytest.mark.parametrize("seed", range(6))
def test_recolour__layers_still_compose_the_picture(seed: int, truth: Sample) -> None:
    """Over black what shows is the foreground; the rest of the picture is the background's share."""
    black = np.rint(truth.foreground * 255).astype(np.uint8).transpose(1, 2, 0)
    over_black = replace(truth, image=black)
    changed = PhotometricDistortion(brightness=0)(over_black, np.random.default_rng(seed))
    np.testing.assert_allclose(changed.image.transpose(2, 0, 1), changed.foreground * 255, atol=1.5)


def test_recolour__changes_each_layer(truth: Sample) -> None:
    inverted = recolour(truth, lambda pixels: 255 - pixels)
    expected = truth.alpha - truth.foreground
    np.testing.assert_allclose(inverted.foreground, expected, atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(inverted.image.astype(int), 255 - truth.image.astype(int), atol=3)
    check_values(inverted)


def test_photometric__hue_turns_and_grey_stays() -> None:
    red = Sample(image=np.full((4, 4, 3), (200, 20, 20), np.uint8))
    grey = Sample(image=np.full((4, 4, 3), 90, np.uint8))
    transform = PhotometricDistortion(brightness=0, contrast=(1, 1), saturation=(1, 1), hue=18)
    seen = {tuple(transform(red, np.random.default_rng(seed)).image[0, 0].tolist()) for seed in range(40)}
    assert len(seen) > 10
    assert all(max(colour) == pytest.approx(200, abs=2) and min(colour) == pytest.approx(20, abs=3) for colour in seen)
    assert any(colour[1] > 60 for colour in seen)  # towards yellow: 36 degrees are 108 at most
    assert max(colour[1] for colour in seen) < 132
    assert all((transform(grey, np.random.default_rng(seed)).image == 90).all() for seed in range(5))


def test_gaussian_blur__keeps_the_mean_and_softens() -> None:
    spot = np.zeros((9, 9, 3), np.uint8)
    spot[4, 4] = 255
    blurred = GaussianBlur(sigmas=(1.0, 1.0))(Sample(image=spot), np.random.default_rng(0)).image[..., 0]
    weights = np.exp(-0.5 * np.arange(-1, 2) ** 2)
    expected = np.outer(weights, weights) / weights.sum() ** 2 * 255
    np.testing.assert_allclose(blurred[3:6, 3:6], expected, atol=0.51)
    assert blurred[3:6, 3:6].sum() == blurred.sum()
    flat = Sample(image=np.full((5, 6, 3), 77, np.uint8))
    assert (GaussianBlur()(flat, np.random.default_rng(0)).image == 77).all()


def test_gaussian_noise__has_the_variance_asked_for() -> None:
    flat = Sample(image=np.full((64, 64, 3), 128, np.uint8))
    noisy = GaussianNoise(variances=(16, 16))(flat, np.random.default_rng(0)).image.astype(float)
    assert noisy.std() == pytest.approx(4, rel=0.05)
    assert noisy.mean() == pytest.approx(128, abs=0.2)


def test_solarize__inverts_above_its_threshold() -> None:
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    changed = Solarize()(Sample(image=ramp), np.random.default_rng(0)).image[..., 0].ravel()
    np.testing.assert_array_equal(changed, [v if v <= 128 else 255 - v for v in range(256)])


def test_coarse_dropout__one_hole_of_the_right_size() -> None:
    white = Sample(image=np.full((100, 50, 3), 255, np.uint8))
    for seed in range(20):
        black = (CoarseDropout()(white, np.random.default_rng(seed)).image == 0).all(axis=-1)
        rows, columns = black.any(axis=1).sum(), black.any(axis=0).sum()
        assert 20 <= rows <= 40
        assert 10 <= columns <= 20
        assert black.sum() == rows * columns


def test_randomly_and_keep_truth(truth: Sample) -> None:
    never, always = Randomly(0.0, Solarize()), Randomly(1.0, Solarize())
    assert never(truth, np.random.default_rng(0)) is truth
    assert always(truth, np.random.default_rng(0)) is not truth
    kept = KeepTruth(("alpha", "foreground"))(truth, np.random.default_rng(0))
    assert kept.truths == ("alpha", "foreground")
    both = Compose((KeepTruth(("parts",)), always))(truth, np.random.default_rng(0))
    assert both.truths == ("parts",)


@pytest.fixture
def background(tmp_path: Path) -> Path:
    path = tmp_path / "behind.png"
    noise = np.random.default_rng(1).integers(80, 120, (40, 200, 3), dtype=np.uint8) + np.array([0, 60, 0], np.uint8)
    Image.fromarray(noise.astype(np.uint8)).save(path)
    return path


def test_background_swap__composes_over_the_new_background(background: Path, truth: Sample) -> None:
    swap = BackgroundSwap((background,), match_colours=False)
    swapped = check_values(swap(truth, np.random.default_rng(0)))
    behind = swapped.alpha < 0.003
    assert (swapped.image[behind][:, 1] >= 139).all()
    assert (swapped.image[behind][:, 0] <= 121).all()
    np.testing.assert_allclose(swapped.foreground, truth.foreground, atol=1e-4)
    solid = truth.alpha > 0.995
    np.testing.assert_allclose(swapped.image[solid], truth.image[solid], atol=2)


def test_background_swap__by_parts_keeps_what_is_unlabelled(background: Path, truth: Sample) -> None:
    parts = truth.parts.copy()
    parts[:5] = 255
    sample = replace(truth, alpha=None, foreground=None, parts=parts)
    swapped = BackgroundSwap((background,), match_colours=False)(sample, np.random.default_rng(0))
    np.testing.assert_array_equal(swapped.image[parts > 0], truth.image[parts > 0])
    assert (swapped.image[parts == 0][:, 1] >= 139).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_background_swap__all_or_nothing_in_front(share: float, background: Path, truth: Sample) -> None:
    """The original divides by the area of the mask, which is 0 here, and gets NaN."""
    sample = replace(truth, alpha=np.full(truth.size_hw, share, np.float32), foreground=None)
    swapped = BackgroundSwap((background,))(sample, np.random.default_rng(0))
    if share == 1:
        np.testing.assert_array_equal(swapped.image, truth.image)
    else:
        assert (swapped.image[..., 1] >= 139).all()


def test_background_swap__matches_colours(background: Path, truth: Sample) -> None:
    swapped = check_values(BackgroundSwap((background,))(truth, np.random.default_rng(0)))
    solid = truth.alpha > 0.9
    assert swapped.image[solid][:, 1].mean() == pytest.approx(160, abs=8)
    composite = swapped.foreground * 255 + (1 - swapped.alpha) * 100
    np.testing.assert_allclose(swapped.image.transpose(2, 0, 1)[:, solid], composite[:, solid], atol=10)


def test_background_swap__needs_to_know_where_people_are(background: Path) -> None:
    with pytest.raises(InputError, match="alpha or parts have to be known"):
        BackgroundSwap((background,))(Sample(image=np.zeros((4, 4, 3), np.uint8)), np.random.default_rng(0))
    with pytest.raises(InputError, match="There are no backgrounds"):
        BackgroundSwap(())


def test_transfer_colours__takes_mean_and_spread() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.uniform(60, 120, (500, 3)).astype(np.float32)
    like = rng.uniform(100, 150, (400, 3)).astype(np.float32)
    lab, wanted = srgb_to_lab(transfer_colours(pixels, like)), srgb_to_lab(like)
    np.testing.assert_allclose(lab.mean(axis=0), wanted.mean(axis=0), atol=0.2)
    np.testing.assert_allclose(lab.std(axis=0), wanted.std(axis=0), atol=0.2)
    np.testing.assert_allclose(transfer_colours(pixels, pixels), pixels, atol=0.6)
    flat = np.full((50, 3), 90, np.float32)
    assert np.isfinite(transfer_colours(flat, like)).all()
    np.testing.assert_array_equal(transfer_colours(pixels, like[:3]), pixels)


def test_lab__known_colours_and_round_trip() -> None:
    rgb = np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255], [128, 128, 128]], np.float32)
    lab = [
        [100, 0, 0],
        [0, 0, 0],
        [53.24, 80.09, 67.20],
        [87.74, -86.18, 83.18],
        [32.30, 79.19, -107.86],
        [53.59, 0, 0],
    ]
    np.testing.assert_allclose(srgb_to_lab(rgb), lab, atol=0.05)
    colours = np.random.default_rng(0).uniform(0, 255, (300, 3)).astype(np.float32)
    np.testing.assert_allclose(lab_to_srgb(srgb_to_lab(colours)), colours, atol=0.05)


def test_transfer_colours__statistics_of_some_change_all() -> None:
    rng = np.random.default_rng(0)
    solid, soft = rng.uniform(60, 90, (200, 3)), rng.uniform(200, 250, (300, 3))
    pixels = np.concatenate([solid, soft]).astype(np.float32)
    like = rng.uniform(100, 150, (400, 3)).astype(np.float32)
    counted = np.arange(500) < 200
    changed = transfer_colours(pixels, like, counted)
    np.testing.assert_allclose(changed[:200], transfer_colours(pixels[:200], like), atol=1e-3)
    assert (changed[200:].mean(axis=0) > 200).all()  # brighter than the rest, as before


def test_background_swap__takes_statistics_of_solid_pixels(background: Path, truth: Sample) -> None:
    """A faint rim of any colour around people changes nothing about them."""
    alpha = np.where(truth.alpha > 0.5, 1, 0).astype(np.float32)
    rim = np.where(truth.alpha > 0.5, 1, 0.1).astype(np.float32)
    straight = np.where(alpha > 0, truth.albedo, 1)
    images = [
        BackgroundSwap((background,))(
            replace(truth, alpha=share, foreground=(straight * share).astype(np.float32)), np.random.default_rng(0)
        ).image
        for share in (alpha, rim)
    ]
    np.testing.assert_allclose(images[0][alpha == 1], images[1][alpha == 1], atol=1)
