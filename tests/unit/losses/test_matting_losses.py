import numpy as np
import pytest
import torch
from scipy import ndimage
from torch.autograd import gradcheck

from sapiens2.errors import InputError
from sapiens2.losses import (
    alpha_l1_loss,
    composition_loss,
    foreground_l1_loss,
    laplacian_pyramid_loss,
    matting_recipe_loss,
)

SIZE_HW = (7, 6)


def _random(channels, seed):
    generator = torch.Generator().manual_seed(seed)
    return 0.05 + 0.9 * torch.rand((2, channels, *SIZE_HW), generator=generator, dtype=torch.float64)


@pytest.fixture
def alphas():
    return _random(1, 1)


@pytest.fixture
def foregrounds():
    return _random(3, 2)


@pytest.fixture
def labels():
    return _random(4, 3)


@pytest.fixture
def backgrounds():
    return _random(3, 4)


@pytest.fixture
def mask():
    mask = torch.ones((2, *SIZE_HW), dtype=torch.bool)
    mask[0, 1:3, 2] = mask[1, 5, 4] = False
    return mask


def test_alpha_l1_loss__matches_numpy(alphas, labels, mask):
    expected = np.abs(alphas.numpy() - labels.numpy()[:, 3:])[mask.numpy()[:, None]].mean()
    assert alpha_l1_loss(alphas, labels[:, 3:], mask).item() == pytest.approx(expected)


def test_foreground_l1_loss__is_a_mean(labels):
    foregrounds = labels[:, :3]
    assert foreground_l1_loss(foregrounds - 0.25, foregrounds).item() == pytest.approx(0.25)


def _numpy_pyramid_loss(alphas, targets, num_levels):
    """Bands of each map on its own, by convolution, with zeros inserted between the coarse pixels."""
    kernel = np.array([1, 4, 6, 4, 1]) / 16

    def smooth(image):
        for axis in (0, 1):
            image = ndimage.correlate1d(image, kernel, axis=axis, mode="nearest")
        return image

    def expand(image, size_hw):
        for axis, size in enumerate(size_hw):
            edges = [(1, 1) if a == axis else (0, 0) for a in (0, 1)]
            image = np.pad(image, edges, mode="edge")
            shape = [2 * n if a == axis else n for a, n in enumerate(image.shape)]
            spread = np.zeros(shape)
            spread[tuple(slice(None, None, 2) if a == axis else slice(None) for a in (0, 1))] = image
            spread = ndimage.correlate1d(spread, 2 * kernel, axis=axis, mode="constant")
            image = np.take(spread, range(2, 2 + size), axis=axis)
        return image

    def bands(image):
        result = []
        for _ in range(num_levels):
            coarse = smooth(image)[::2, ::2]
            result.append(image - expand(coarse, image.shape))
            image = coarse
        return result

    pairs = [zip(bands(a), bands(t), strict=True) for a, t in zip(alphas[:, 0], targets[:, 0], strict=True)]
    levels = zip(*pairs, strict=True)
    means = [np.mean([np.abs(a - t) for a, t in level]) for level in levels]
    return sum(2**level * mean for level, mean in enumerate(means)) / num_levels


@pytest.mark.parametrize("num_levels", [1, 2, 5])
@pytest.mark.parametrize("size_hw", [(7, 6), (6, 3), (1, 5)])
def test_laplacian_pyramid_loss__matches_scipy(alphas, labels, num_levels, size_hw):
    alphas, targets = (maps[..., : size_hw[0], : size_hw[1]] for maps in (alphas, labels[:, 3:]))
    expected = _numpy_pyramid_loss(alphas.numpy(), targets.numpy(), num_levels)
    assert laplacian_pyramid_loss(alphas, targets, num_levels=num_levels).item() == pytest.approx(expected)


def test_laplacian_pyramid_loss__does_not_see_a_constant_offset(labels):
    targets = labels[:, 3:]
    assert laplacian_pyramid_loss(targets + 0.4, targets).item() == pytest.approx(0, abs=1e-12)


def test_laplacian_pyramid_loss__doubled_error_is_double(alphas, labels):
    targets = labels[:, 3:]
    doubled = targets + 2 * (alphas - targets)
    torch.testing.assert_close(laplacian_pyramid_loss(doubled, targets), 2 * laplacian_pyramid_loss(alphas, targets))


def test_laplacian_pyramid_loss__mirrored_maps_of_odd_width_have_the_same_value(alphas, labels):
    maps = [alphas[..., :5], labels[:, 3:, :, :5]]
    expected = laplacian_pyramid_loss(*maps, num_levels=1)
    torch.testing.assert_close(laplacian_pyramid_loss(*(m.flip(-1) for m in maps), num_levels=1), expected)


def test_laplacian_pyramid_loss__no_level_is_refused(alphas):
    with pytest.raises(InputError, match="num_levels must be at least 1, got 0"):
        laplacian_pyramid_loss(alphas, alphas, num_levels=0)


def test_composition_loss__matches_numpy(alphas, foregrounds, labels, backgrounds, mask):
    predicted = foregrounds + (1 - alphas) * backgrounds
    true = labels[:, :3] + (1 - labels[:, 3:]) * backgrounds
    expected = np.abs(predicted.numpy() - true.numpy()).mean(axis=1)[mask.numpy()].mean()
    value = composition_loss(alphas, foregrounds, labels, backgrounds, mask)
    assert value.item() == pytest.approx(expected)


def test_composition_loss__on_black_is_the_foreground_loss(alphas, foregrounds, labels, backgrounds):
    value = composition_loss(alphas, foregrounds, labels, torch.zeros_like(backgrounds))
    torch.testing.assert_close(value, foreground_l1_loss(foregrounds, labels[:, :3]))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf")])
def test_composition_loss__broken_background_does_not_count(alphas, foregrounds, labels, backgrounds, mask, garbage):
    expected = composition_loss(alphas, foregrounds, labels, backgrounds, mask)
    outside = ~mask[:, None]
    alphas.requires_grad_()
    value = composition_loss(alphas, foregrounds, labels, backgrounds.masked_fill(outside, garbage))
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert (alphas.grad[outside] == 0).all()


def test_composition_loss__gradient_is_that_of_the_value(alphas, foregrounds, labels, backgrounds, mask):
    def loss(alphas, foregrounds):
        return composition_loss(alphas, foregrounds, labels, backgrounds, mask)

    assert gradcheck(loss, (alphas.requires_grad_(), foregrounds.requires_grad_()))


@pytest.mark.parametrize("wrong", ["alphas", "foregrounds", "labels", "backgrounds"])
def test_composition_loss__shapes_that_differ_are_refused_by_name(alphas, foregrounds, labels, backgrounds, wrong):
    maps = {"alphas": alphas, "foregrounds": foregrounds, "labels": labels, "backgrounds": backgrounds}
    maps[wrong] = maps[wrong][..., :-1]
    with pytest.raises(InputError) as error:
        composition_loss(**maps)
    assert str(tuple(maps[wrong].shape))[-5:] in str(error.value)
    assert "7, 6)" in str(error.value)


def test_matting_recipe_loss__adds_weighted_terms(alphas, foregrounds, labels, backgrounds, mask):
    result = matting_recipe_loss(
        alphas, foregrounds, labels, backgrounds=backgrounds, mask=mask, foreground_l1_weight=3
    )
    expected = (
        alpha_l1_loss(alphas, labels[:, 3:], mask)
        + laplacian_pyramid_loss(alphas, labels[:, 3:], mask)
        + 3 * foreground_l1_loss(foregrounds, labels[:, :3], mask)
        + composition_loss(alphas, foregrounds, labels, backgrounds, mask)
    )
    torch.testing.assert_close(result.total, expected)


def test_matting_recipe_loss__without_backgrounds_has_no_composition(alphas, foregrounds, labels):
    result = matting_recipe_loss(alphas, foregrounds, labels)
    assert set(result.terms) == {"alpha_l1", "laplacian_pyramid", "foreground_l1"}


def test_matting_recipe_loss__perfect_prediction_is_zero(labels, backgrounds):
    result = matting_recipe_loss(labels[:, 3:], labels[:, :3], labels, backgrounds=backgrounds)
    assert result.total.item() == 0


def test_matting_recipe_loss__three_channels_are_refused(alphas, foregrounds):
    with pytest.raises(InputError, match=r"labels must have shape \(batch, 4, height, width\), got \(2, 3, 7, 6\)"):
        matting_recipe_loss(alphas, foregrounds, foregrounds)


def test_matting_loss__eight_bit_labels_are_refused(alphas, foregrounds, labels, backgrounds):
    with pytest.raises(InputError, match=r"alpha targets must lie in \[0, 1\]"):
        matting_recipe_loss(alphas, foregrounds, 255 * labels)
    with pytest.raises(InputError, match=r"foreground targets must lie in \[0, 1\]"):
        foreground_l1_loss(foregrounds, 255 * labels[:, :3])
    with pytest.raises(InputError, match=r"backgrounds must lie in \[0, 1\]"):
        composition_loss(alphas, foregrounds, labels, 255 * backgrounds)
