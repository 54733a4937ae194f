import json
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from sapiens2.errors import InputError
from sapiens2.metrics.exact_sum import ExactSum
from sapiens2.metrics.totals import Totals

FLOATS = st.floats(-1e200, 1e200)


def _sum(terms):
    total = ExactSum()
    for term in terms:
        total.add(term)
    return total


@given(st.lists(FLOATS, max_size=20))
def test_exact_sum__equals_rational_arithmetic(terms):
    total = _sum(terms)
    assert sum(map(Fraction, total.parts)) == sum(map(Fraction, terms))
    assert total.value == float(sum(map(Fraction, terms)))


@given(st.lists(FLOATS, min_size=2, max_size=20), st.randoms())
def test_exact_sum__order_and_grouping_change_nothing(terms, random):
    shuffled = random.sample(terms, len(terms))
    cut = random.randrange(len(terms))
    merged = _sum(shuffled[:cut])
    merged.merge(_sum(shuffled[cut:]))
    assert merged.parts == _sum(terms).parts


def test_exact_sum__hand_computed():
    assert _sum([1e16, 1.0, -1e16]).value == 1.0
    assert _sum([]).value == 0.0
    assert _sum([0.1] * 10).value == 1.0


def test_exact_sum__state_restores_it():
    total = _sum([1e16, 1.0, 1e-30])
    assert ExactSum(json.loads(json.dumps(total.parts))).parts == total.parts


@pytest.mark.parametrize("term", [float("nan"), float("inf")])
def test_exact_sum__rejects_what_is_not_finite(term):
    with pytest.raises(InputError, match="finite"):
        _sum([1.0, term])


def test_totals__rejects_counts_that_are_no_integers():
    with pytest.raises(InputError, match="'pixels' must hold integers"):
        Totals.from_state({"sums": {}, "counts": {"pixels": 1.5}})
