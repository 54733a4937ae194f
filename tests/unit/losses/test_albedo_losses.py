import numpy as np
import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.losses import albedo_recipe_loss, chromaticity_loss, l1_albedo_loss, squared_gradient_albedo_loss


@pytest.fixture
def targets():
    random = torch.rand((2, 3, 4, 5), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return 0.05 + 0.9 * random


@pytest.fixture
def albedos():
    random = torch.rand((2, 3, 4, 5), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return 0.05 + 0.9 * random


@pytest.fixture
def mask():
    mask = torch.ones((2, 4, 5), dtype=torch.bool)
    mask[0, 1:3, 2] = mask[1, 3, 4] = False
    return mask


def _published_total(albedos, targets, mask):
    """The published formulas, in numpy: sums over components, divided by pixel counts, weights 2, 2, 1."""
    p, g, m = albedos.numpy(), targets.numpy(), mask.numpy()
    l1 = np.abs(p - g).sum(axis=1)[m].mean()
    columns, rows = m[:, :, 1:] & m[:, :, :-1], m[:, 1:] & m[:, :-1]
    horizontal = ((np.diff(p, axis=3) - np.diff(g, axis=3)) ** 2).sum(axis=1)[columns].mean()
    vertical = ((np.diff(p, axis=2) - np.diff(g, axis=2)) ** 2).sum(axis=1)[rows].mean()
    chromaticity_p, chromaticity_g = (x / (x.sum(axis=1, keepdims=True) + 1e-6) for x in (p, g))
    chromaticity = np.abs(chromaticity_p - chromaticity_g).sum(axis=1)[m].mean()
    return 2 * l1 + 2 * (horizontal + vertical) / 2 + chromaticity


def test_albedo_recipe_loss__is_a_third_of_the_published_total(albedos, targets, mask):
    result = albedo_recipe_loss(albedos, targets, mask)
    assert 3 * result.total.item() == pytest.approx(_published_total(albedos, targets, mask), rel=1e-5)
    assert dict(result.weights) == {"l1": 2, "squared_gradient": 2, "chromaticity": 1}


def test_l1_albedo_loss__is_a_mean(targets):
    assert l1_albedo_loss(targets - 0.25, targets).item() == pytest.approx(0.25)


def test_squared_gradient_albedo_loss__is_squared_and_does_not_see_an_offset(albedos, targets):
    doubled = targets + 2 * (albedos - targets)
    expected = 4 * squared_gradient_albedo_loss(albedos, targets)
    torch.testing.assert_close(squared_gradient_albedo_loss(doubled, targets), expected)
    torch.testing.assert_close(4 * squared_gradient_albedo_loss(albedos + 0.3, targets), expected)


@pytest.mark.parametrize("brightness", [0.1, 0.5, 1.05])
def test_chromaticity_loss__does_not_see_the_brightness(albedos, targets, brightness):
    torch.testing.assert_close(chromaticity_loss(brightness * albedos, targets), chromaticity_loss(albedos, targets))


@pytest.mark.parametrize("shift", [-1.0, -5.0, 1.0, 5.0])
def test_chromaticity_loss__predictions_out_of_range_keep_a_gradient(albedos, targets, shift):
    outside = (albedos + shift).requires_grad_()
    value = chromaticity_loss(outside, targets)
    value.backward()
    assert value.item() > abs(shift) - 1
    assert (outside.grad * shift > 0).all()


@pytest.mark.parametrize(("colour", "excess"), [((0.5, -0.3, 0.5), 0.3), ((0.5, 0.0, 1.5), 0.5)])
def test_chromaticity_loss__excess_is_added_to_the_clamped_loss(targets, colour, excess):
    albedos = torch.tensor(colour, dtype=torch.float64).view(1, 3, 1, 1).expand_as(targets)
    expected = chromaticity_loss(albedos.clamp(0, 1), targets) + excess / 3
    torch.testing.assert_close(chromaticity_loss(albedos, targets), expected)


def test_chromaticity_loss__black_targets_do_not_count(albedos, targets, mask):
    black = targets.masked_fill(~mask[:, None], 0)
    torch.testing.assert_close(chromaticity_loss(albedos, black), chromaticity_loss(albedos, targets, mask))


def test_chromaticity_loss__black_predictions_have_a_bounded_gradient(targets):
    albedos = torch.zeros_like(targets, requires_grad=True)
    value = chromaticity_loss(albedos, targets)
    value.backward()
    assert value.item() == pytest.approx(1 / 3)
    assert 0 < (albedos.grad.abs().max() * targets.numel()).item() < 1e4


@pytest.mark.parametrize("loss", [l1_albedo_loss, squared_gradient_albedo_loss, chromaticity_loss])
def test_albedo_loss__eight_bit_targets_are_refused(loss, albedos, targets):
    with pytest.raises(InputError, match=r"albedo targets must lie in \[0, 1\], got values from .* Divide 8-bit"):
        loss(albedos, 255 * targets)


def test_albedo_loss__values_out_of_range_do_not_matter_outside_the_mask(albedos, targets, mask):
    marked = targets.masked_fill(~mask[:, None], 255)
    torch.testing.assert_close(l1_albedo_loss(albedos, marked, mask), l1_albedo_loss(albedos, targets, mask))
