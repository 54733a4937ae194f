"""Laws that every loss of a dense map obeys: ``loss(predictions, targets, mask)``."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from sapiens2 import losses
from sapiens2.errors import InputError

SIZE_HW = (6, 5)
INTRINSICS = torch.tensor([[7.0, 0.0, 2.0], [0.0, 8.0, 2.5], [0.0, 0.0, 1.0]], dtype=torch.float64)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _directions(batch: int, seed: int) -> Tensor:
    vectors = torch.randn((batch, 3, *SIZE_HW), generator=_generator(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(vectors, dim=1)


def _points(batch: int, seed: int) -> Tensor:
    random = torch.rand((batch, 3, *SIZE_HW), generator=_generator(seed), dtype=torch.float64)
    return random + torch.tensor([-0.5, -0.5, 1.0], dtype=torch.float64).view(1, 3, 1, 1)


def _colours(batch: int, seed: int) -> Tensor:
    return torch.rand((batch, 3, *SIZE_HW), generator=_generator(seed), dtype=torch.float64) * 0.9 + 0.05


def _alphas(batch: int, seed: int) -> Tensor:
    return _colours(batch, seed)[:, :1]


def _composition(alphas: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Composition loss as a function of the alphas only: the foreground agrees, the background is white."""
    colours = torch.full_like(targets, 0.3).expand(-1, 3, -1, -1)
    labels = torch.cat([colours, targets], dim=1)
    return losses.composition_loss(alphas, colours.to(alphas.dtype), labels, torch.ones_like(colours), mask)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[[int, int], Tensor]]] = {
    "cosine_normal": (losses.cosine_normal_loss, _directions),
    "l1_normal": (losses.l1_normal_loss, _directions),
    "squared_gradient_normal": (losses.squared_gradient_normal_loss, _directions),
    "pointmap_l1": (losses.pointmap_l1_loss, _points),
    "multiscale_pointmap_l1": (losses.multiscale_pointmap_l1_loss, _points),
    "shift_invariant_pointmap_l1": (losses.shift_invariant_pointmap_l1_loss, _points),
    "silog": (losses.silog_loss, _points),
    "pointmap_normal": (losses.pointmap_normal_loss, _points),
    "l1_albedo": (losses.l1_albedo_loss, _colours),
    "squared_gradient_albedo": (losses.squared_gradient_albedo_loss, _colours),
    "chromaticity": (losses.chromaticity_loss, _colours),
    "alpha_l1": (losses.alpha_l1_loss, _alphas),
    "foreground_l1": (losses.foreground_l1_loss, _colours),
    "laplacian_pyramid": (losses.laplacian_pyramid_loss, _alphas),
    "composition": (_composition, _alphas),
}

RECIPES: dict[str, tuple[Callable[..., losses.LossTerms], Callable[[int, int], Tensor]]] = {
    "normal": (losses.normal_recipe_loss, _directions),
    "pointmap": (lambda p, t, mask=None: losses.pointmap_recipe_loss(p, t, mask=mask), _points),
    "albedo": (losses.albedo_recipe_loss, _colours),
}

every_loss = pytest.mark.parametrize(("loss", "make"), CASES.values(), ids=CASES.keys())
every_two_map_loss = pytest.mark.parametrize(
    ("loss", "make"),
    [case for name, case in CASES.items() if name != "composition"],  # its other inputs are made to fit here
    ids=[name for name in CASES if name != "composition"],
)
every_recipe = pytest.mark.parametrize(("recipe", "make"), RECIPES.values(), ids=RECIPES.keys())


def _mask(batch: int = 2) -> Tensor:
    mask = torch.rand((batch, *SIZE_HW), generator=_generator(9)) < 0.8
    mask[:, 2:4, 1:4] = True  # some neighbours count together
    mask[:, 0, 0] = False
    return mask


@every_loss
def test_loss__perfect_prediction_is_zero_with_finite_gradient(loss, make):
    targets = make(2, 1)
    predictions = targets.clone().requires_grad_()
    value = loss(predictions, targets)
    value.backward()
    assert value.shape == ()
    assert value.item() == pytest.approx(0, abs=1e-9)
    assert torch.isfinite(predictions.grad).all()


@every_loss
def test_loss__wrong_prediction_is_positive(loss, make):
    assert loss(make(2, 1), make(2, 2)).item() > 1e-3


@every_loss
def test_loss__gradient_is_that_of_the_value(loss, make):
    predictions, targets, mask = make(2, 1).requires_grad_(), make(2, 2), _mask()
    assert gradcheck(lambda p: loss(p, targets, mask), (predictions,))


@every_loss
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), -float("inf"), 1e30, 0.0])
def test_loss__masked_pixels_have_no_influence(loss, make, garbage):
    predictions, targets, mask = make(2, 1), make(2, 2), _mask()
    expected = loss(predictions, targets, mask)
    outside = ~mask[:, None].expand_as(predictions)
    predictions = predictions.masked_fill(outside, garbage).requires_grad_()
    value = loss(predictions, targets.masked_fill(outside, garbage), mask[:, None])
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert (predictions.grad[outside] == 0).all()
    assert torch.isfinite(predictions.grad).all()
    assert (predictions.grad != 0).any()


@every_loss
@pytest.mark.parametrize("mark", [float("nan"), float("inf")])
def test_loss__targets_that_are_not_finite_are_masked(loss, make, mark):
    predictions, targets, mask = make(2, 1), make(2, 2), _mask()
    marked = targets.clone()
    marked[:, -1].masked_fill_(~mask, mark)  # one component is enough
    torch.testing.assert_close(loss(predictions, marked), loss(predictions, targets, mask))


@every_loss
def test_loss__nothing_valid_is_zero_and_differentiable(loss, make):
    predictions = make(2, 1).requires_grad_()
    value = loss(predictions, make(2, 2), torch.zeros((2, *SIZE_HW), dtype=torch.bool))
    value.backward()
    assert value.item() == 0
    assert (predictions.grad == 0).all()


@every_loss
def test_loss__empty_batch_is_zero_and_differentiable(loss, make):
    predictions = make(0, 1).requires_grad_()
    value = loss(predictions, make(0, 2))
    value.backward()
    assert value.item() == 0
    assert predictions.grad.shape == predictions.shape


@every_loss
def test_loss__repeated_batch_has_the_same_value(loss, make):
    predictions, targets = make(1, 1), make(1, 2)
    torch.testing.assert_close(
        loss(predictions.repeat(3, 1, 1, 1), targets.repeat(3, 1, 1, 1)), loss(predictions, targets)
    )


@every_loss
def test_loss__sample_without_labels_does_not_dilute(loss, make):
    predictions, targets = make(2, 1), make(2, 2)
    mask = torch.ones((2, *SIZE_HW), dtype=torch.bool)
    mask[1] = False
    torch.testing.assert_close(loss(predictions, targets, mask), loss(predictions[:1], targets[:1]))


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"laplacian_pyramid"}))  # its filter mirrors the border
def test_loss__masked_padding_does_not_dilute(name):
    loss, make = CASES[name]
    predictions, targets = make(2, 1), make(2, 2)
    padded = [torch.nn.functional.pad(maps, (0, 4, 0, 3)) for maps in (predictions, targets)]
    mask = torch.nn.functional.pad(torch.ones((2, *SIZE_HW), dtype=torch.bool), (0, 4, 0, 3))
    torch.testing.assert_close(loss(*padded, mask), loss(predictions, targets))


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_loss__computes_in_float32_for_lower_precision(loss, make, dtype):
    predictions, targets = make(2, 1).to(dtype).requires_grad_(), make(2, 2).to(dtype)
    value = loss(predictions, targets)
    value.backward()
    assert value.dtype == torch.float32
    assert predictions.grad.dtype == dtype
    assert torch.isfinite(predictions.grad).all()
    torch.testing.assert_close(
        value.detach().double(), loss(predictions.detach().double(), targets.double()), rtol=1e-4, atol=1e-5
    )


@every_loss
def test_loss__float64_predictions_stay_float64(loss, make):
    assert loss(make(1, 1), make(1, 2).float()).dtype == torch.float64


@every_loss
def test_loss__autocast_changes_nothing(loss, make):
    predictions, targets, mask = make(2, 1).float(), make(2, 2).float(), _mask()
    expected = loss(predictions, targets, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(predictions, targets, mask)
    assert torch.equal(value, expected)


@every_loss
def test_loss__zero_predictions_have_finite_gradient_in_half_precision(loss, make):
    targets = make(2, 2).half()
    predictions = torch.zeros_like(targets, requires_grad=True)
    value = loss(predictions, targets)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(predictions.grad).all()


@every_loss
@pytest.mark.parametrize("size_hw", [(1, 1), (1, 4), (5, 1), (3, 2)])
def test_loss__thin_maps_are_finite(loss, make, size_hw):
    height, width = size_hw
    predictions = make(2, 1)[..., :height, :width].clone().requires_grad_()
    value = loss(predictions, make(2, 2)[..., :height, :width])
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(predictions.grad).all()


@every_loss
def test_loss__nan_in_a_valid_prediction_is_not_hidden(loss, make):
    predictions = make(2, 1)
    predictions[0, :, 2, 2] = float("nan")
    assert torch.isnan(loss(predictions, make(2, 2)))


@every_two_map_loss
def test_loss__shapes_that_differ_are_refused_by_name(loss, make):
    predictions, targets = make(2, 1), make(2, 2)[..., :-1]
    with pytest.raises(InputError) as error:
        loss(predictions, targets)
    assert str(tuple(predictions.shape)) in str(error.value)
    assert str(tuple(targets.shape)) in str(error.value)


@every_two_map_loss
def test_loss__maps_without_batch_are_refused(loss, make):
    with pytest.raises(InputError, match=r"must have shape \(batch, .*, height, width\), got \(\d, 6, 5\)"):
        loss(make(1, 1)[0], make(1, 2)[0])


@every_loss
def test_loss__mask_that_does_not_fit_is_refused(loss, make):
    with pytest.raises(InputError, match=r"mask has shape \(2, 5, 6\).*\(2, 6, 5\) or \(2, 1, 6, 5\)"):
        loss(make(2, 1), make(2, 2), torch.ones((2, 5, 6), dtype=torch.bool))


@every_loss
def test_loss__mask_that_is_not_bool_is_refused(loss, make):
    with pytest.raises(InputError, match=r"bool tensor, got torch.uint8.*mask > 0"):
        loss(make(2, 1), make(2, 2), torch.ones((2, *SIZE_HW), dtype=torch.uint8))


@every_recipe
def test_recipe__captures_in_one_graph(recipe, make):
    predictions, targets, mask = make(2, 1), make(2, 2), _mask()

    def total(predictions: Tensor) -> Tensor:
        return recipe(predictions, targets, mask).total

    compiled = torch.compile(total, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(predictions), total(predictions))


@every_recipe
def test_recipe__total_is_the_weighted_sum_of_the_terms(recipe, make):
    result = recipe(make(2, 1), make(2, 2))
    expected = sum(result.weights[name] * value.item() for name, value in result.terms.items())
    assert result.total.item() == pytest.approx(expected)
    assert result.total.shape == ()


def test_all__lists_what_is_exported():
    assert sorted(losses.__all__) == losses.__all__
    assert all(hasattr(losses, name) for name in losses.__all__)
