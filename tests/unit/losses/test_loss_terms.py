import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.losses.terms import LossTerms, logarithmic_above


def _constant(value):
    return lambda: torch.tensor(value, requires_grad=True)


def test_collect__weight_zero_leaves_the_term_out_without_computing_it():
    def fail():
        raise AssertionError("computed")

    result = LossTerms.collect({"a": (2.0, _constant(3.0)), "b": (0.0, fail)})
    assert set(result.terms) == set(result.weights) == {"a"}
    assert result.total.item() == 6


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_collect__weight_that_is_no_weight_is_refused(weight):
    with pytest.raises(InputError, match=f"weight of the loss term 'b' must be a number >= 0, got {weight}"):
        LossTerms.collect({"a": (1.0, _constant(1.0)), "b": (weight, _constant(1.0))})


def test_collect__no_term_left_is_refused():
    with pytest.raises(InputError, match=r"All loss terms \(a, b\) have weight 0"):
        LossTerms.collect({"a": (0.0, _constant(1.0)), "b": (0, _constant(1.0))})


def test_detached__holds_total_and_unweighted_terms_without_graph():
    values = LossTerms.collect({"a": (2.0, _constant(3.0)), "b": (1.0, _constant(4.0))}).detached()
    assert {name: value.item() for name, value in values.items()} == {"total": 10, "a": 3, "b": 4}
    assert not any(value.requires_grad for value in values.values())


@pytest.mark.parametrize("value", [0.0, 1.0, 4.0])
def test_logarithmic_above__is_the_identity_up_to_the_limit(value):
    assert logarithmic_above(torch.tensor(value), 4.0).item() == value


def test_logarithmic_above__is_continuous_with_its_slope_and_keeps_growing():
    values = torch.tensor([3.999999, 4.000001, 40.0, 4e6], dtype=torch.float64, requires_grad=True)
    results = logarithmic_above(values, 4.0)
    (slopes,) = torch.autograd.grad(results.sum(), values)
    assert results[1].item() == pytest.approx(results[0].item(), abs=1e-5)
    assert slopes.tolist() == pytest.approx([1.0, 1.0, 0.1, 1e-6], rel=1e-5)
    assert results.tolist() == sorted(results.tolist())
