from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sapiens2.data.loaders import SyntheticPeople
from sapiens2.data.synthetic.series import SEEDS_PER_SERIES, PictureSeries
from sapiens2.errors import InputError


def test_picture__seeds_of_series__never_meet() -> None:
    first, second = PictureSeries(SEEDS_PER_SERIES, (64, 48), seed=1), PictureSeries(1, (64, 48), seed=2)
    assert first.picture(SEEDS_PER_SERIES - 1)[0] < second.picture(0)[0]
    assert first.picture(0)[0] > PictureSeries(SEEDS_PER_SERIES, (64, 48)).picture(SEEDS_PER_SERIES - 1)[0]


def test_picture__people__fill_the_range_whatever_the_count() -> None:
    series = PictureSeries(60, (64, 48), (0, 3), seed=5)
    people = [series.picture(index)[1] for index in range(60)]
    assert set(people) == {0, 1, 2, 3}
    longer = PictureSeries(90, (64, 48), (0, 3), seed=5)
    assert [longer.picture(index)[1] for index in range(60)] == people


def test_picture__golden() -> None:
    """Folders that were made stay the same: synth goes on where it stopped."""
    series = PictureSeries(4, (64, 48), (1, 3), seed=7)
    assert [series.picture(index) for index in range(4)] == [
        (70_000_000, 2),
        (70_000_001, 1),
        (70_000_002, 2),
        (70_000_003, 1),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, (64, 48)), "count must be a whole number from 1 to 10000000, got 0"),
        ((1, (8, 48)), "size_hw: a side in pixels must be a whole number from 16 to 4096, got 8"),
        ((1, (48, 4097)), "size_hw: a side in pixels must be a whole number from 16 to 4096, got 4097"),
        ((1, (64, 48), (2, 1)), "people must be a range within 0 to 6, got 2-1"),
        ((1, (64, 48), (1, 7)), "people must be a whole number from 0 to 6, got 7"),
        ((1, (64, 48), (1, 1), -1), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_series__numbers_out_of_range__are_named(arguments: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        PictureSeries(*arguments)


@pytest.mark.parametrize("value", [None, "2", 1.5, True, [1], float("nan")])
@pytest.mark.parametrize("name", ["count", "size_hw", "people", "seed"])
def test_series__what_is_no_number__is_named(name: str, value: Any) -> None:
    arguments = {"count": 1, "size_hw": (64, 48), name: value}
    with pytest.raises(InputError, match=f"{name} must be"):
        PictureSeries(**arguments)


@pytest.mark.parametrize("value", [None, "2", 1.5, True, [1], float("nan")])
@pytest.mark.parametrize(("name", "good"), [("size_hw", 64), ("people", 1)])
def test_series__pair_with_what_is_no_number__is_named(name: str, good: int, value: Any) -> None:
    for pair in ((good, value), (value, good)):
        with pytest.raises(InputError, match=f"{name}.* must be a whole number"):
            PictureSeries(**{"count": 1, "size_hw": (64, 48), name: pair})


def test_series__numpy_numbers_and_lists__are_the_same_series() -> None:
    other = PictureSeries(np.int64(4), [np.int32(64), 48], [np.uint8(1), 3], np.int64(7))
    assert other == PictureSeries(4, (64, 48), (1, 3), seed=7)
    assert type(other.count) is int
    assert type(other.size_hw) is tuple


@pytest.mark.parametrize("arguments", [{"people": 3}, {"size_hw": 64}, {"count": "2"}, {"seed": None}])
def test_synthetic_people__arguments_that_are_none__are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(arguments))} must be"):
        SyntheticPeople(**{"count": 2, **arguments})
