import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from sapiens2.errors import InputError
from sapiens2.losses import (
    cosine_normal_loss,
    l1_normal_loss,
    normal_recipe_loss,
    squared_gradient_normal_loss,
    valid_normals,
)
from sapiens2.losses.directions import unit_vectors


@pytest.fixture
def normals():
    return torch.randn((2, 3, 4, 5), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def targets():
    raw = torch.randn((2, 3, 4, 5), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return raw / raw.norm(dim=1, keepdim=True)


@pytest.fixture
def mask():
    mask = torch.ones((2, 4, 5), dtype=torch.bool)
    mask[0, 1:3, 2] = mask[1, 3, 4] = False
    return mask


def _published_total(normals, targets, mask):
    """The published formulas, in numpy: sums over components, divided by pixel counts, weights 10, 1, 10."""
    p, g, m = normals.numpy(), targets.numpy(), mask.numpy()
    unit = p / (np.linalg.norm(p, axis=1, keepdims=True) + 1e-6)
    cosine = ((1 - (unit * g).sum(1)) * m).sum() / m.sum()
    l1 = (np.abs(p - g).sum(1) * m).sum() / m.sum()
    gradient = 0.0
    for axis in (1, 2):  # of the mask; one more of the maps
        first, second = [slice(None)] * 3, [slice(None)] * 3
        first[axis], second[axis] = slice(None, -1), slice(1, None)
        pair = m[tuple(first)] & m[tuple(second)]
        errors = (np.diff(p, axis=axis + 1) - np.diff(g, axis=axis + 1)) ** 2
        gradient += (errors.sum(1) * pair).sum() / pair.sum()
    return 10 * cosine + l1 + 10 * gradient


def test_normal_recipe_loss__weights_of_the_docstring_restore_the_published_total(normals, targets, mask):
    result = normal_recipe_loss(normals, targets, mask, l1_weight=3, squared_gradient_weight=30)
    assert result.total.item() == pytest.approx(_published_total(normals, targets, mask), rel=1e-5)


def test_normal_recipe_loss__default_weights(normals, targets):
    result = normal_recipe_loss(normals, targets)
    expected = (
        10 * cosine_normal_loss(normals, targets)
        + l1_normal_loss(normals, targets)
        + 10 * squared_gradient_normal_loss(normals, targets)
    )
    torch.testing.assert_close(result.total, expected)


def test_l1_normal_loss__is_a_mean(targets):
    assert l1_normal_loss(targets + 0.25, targets).item() == pytest.approx(0.25)


def test_squared_gradient_normal_loss__is_squared(normals, targets):
    doubled = targets + 2 * (normals - targets)
    expected = 4 * squared_gradient_normal_loss(normals, targets)
    torch.testing.assert_close(squared_gradient_normal_loss(doubled, targets), expected)


def test_squared_gradient_normal_loss__does_not_see_a_constant_offset(targets):
    assert squared_gradient_normal_loss(targets + 0.7, targets).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("sign", "expected"), [(1.0, 0.0), (-1.0, 2.0)])
@pytest.mark.parametrize("length", [0.01, 1.0, 300.0])
def test_cosine_normal_loss__sees_only_the_direction(targets, sign, expected, length):
    assert cosine_normal_loss(sign * length * targets, targets).item() == pytest.approx(expected, abs=1e-9)
    assert cosine_normal_loss(sign * targets, length * targets).item() == pytest.approx(expected, abs=1e-9)


def test_cosine_normal_loss__vanishing_prediction_keeps_a_bounded_gradient(targets):
    normals = torch.full_like(targets, 1e-12).requires_grad_()
    loss = cosine_normal_loss(normals, targets)
    loss.backward()
    assert loss.item() == pytest.approx(1, abs=1e-6)
    pixel_count = targets.numel() / 3
    lengths = normals.grad.norm(dim=1) * pixel_count
    assert (lengths > 1).all()
    assert (lengths < 1e4).all()


@pytest.mark.parametrize("mark", [-1000.0, -1e4, float("nan"), float("inf"), -float("inf")])
def test_valid_normals__marked_components(targets, mask, mark):
    for channel in range(3):
        marked = targets.clone()
        marked[:, channel].masked_fill_(~mask, mark)
        assert torch.equal(valid_normals(marked), mask[:, None])


def test_valid_normals__zero_vectors(targets, mask):
    zeroed = targets.masked_fill(~mask[:, None], 0)
    assert torch.equal(valid_normals(zeroed), mask[:, None])


def test_valid_normals__vectors_along_an_axis_are_directions():
    targets = torch.eye(3).repeat(1, 2, 1).reshape(1, 6, 3)[:, :3, :, None]
    assert valid_normals(targets).all()
    assert valid_normals(-targets).all()


def test_valid_normals__both_rules_hold_together(targets, mask):
    targets[0, :, 0, 0] = -1000
    expected = mask.clone()
    expected[0, 0, 0] = False
    assert torch.equal(valid_normals(targets, mask), expected[:, None])


@pytest.mark.parametrize("loss", [cosine_normal_loss, l1_normal_loss, squared_gradient_normal_loss])
@pytest.mark.parametrize("mark", [-1000.0, 0.0, float("nan")])
def test_normal_loss__marks_equal_the_mask(loss, normals, targets, mask, mark):
    marked = targets.masked_fill(~mask[:, None], mark)
    torch.testing.assert_close(loss(normals, marked), loss(normals, targets, mask))


def test_normal_loss__two_channels_are_refused():
    with pytest.raises(InputError, match=r"normals must have shape \(batch, 3, height, width\), got \(1, 2, 4, 4\)"):
        l1_normal_loss(torch.zeros((1, 2, 4, 4)), torch.zeros((1, 2, 4, 4)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unit_vectors__components_whose_squares_overflow(targets, dtype):
    huge = (targets * 1e20 if dtype == torch.float32 else targets * 1e200).to(dtype).requires_grad_()
    found = unit_vectors(huge)
    torch.testing.assert_close(found, targets.to(dtype))
    (found * torch.randn_like(found)).sum().backward()
    assert torch.isfinite(huge.grad).all()


def test_unit_vectors__gradient_is_that_of_the_direction(normals):
    assert gradcheck(unit_vectors, (10 * normals[:1, :, :2, :2]).requires_grad_())
