from __future__ import annotations

import math
from typing import Any

import pytest

import evaluation_cases as cases
from sapiens2.services.evaluation.map_measures import NormalMeasure
from sapiens2.services.evaluation.part_measure import PartMeasure
from sapiens2.services.evaluation.worst_cases import WorstCases


def kept(measure: Any, task: str, values: list[float], count: int) -> list[tuple[str, float]]:
    worst = WorstCases(measure, count)
    for index, value in enumerate(values):
        own = cases.sample(index, people=1)
        worst.consider(index, own, cases.truth(task, own), {measure.ranked_by: value})
    return [(case.name, case.value) for case in worst.cases()]


def test_worst_cases__lower_is_better__keeps_the_highest_first() -> None:
    found = kept(NormalMeasure(), "normal", [3, 9, math.nan, 1, 9], count=3)
    assert found == [("folder/001.png", 9), ("folder/004.png", 9), ("folder/000.png", 3)]


def test_worst_cases__higher_is_better__keeps_the_lowest_first() -> None:
    found = kept(PartMeasure(), "seg", [0.3, 0.9, 0.1], count=2)
    assert found == [("folder/002.png", 0.1), ("folder/000.png", 0.3)]


@pytest.mark.parametrize("values", [[], [math.nan]])
def test_worst_cases__nothing_to_rank__is_empty(values: list[float]) -> None:
    assert kept(NormalMeasure(), "normal", values, count=2) == []


def test_worst_cases__none_wanted__keeps_none() -> None:
    assert kept(NormalMeasure(), "normal", [1.0], count=0) == []


def test_worst_cases__small_pictures__are_enlarged_side_by_side() -> None:
    worst = WorstCases(NormalMeasure(), 1)
    own = cases.sample(0)
    worst.consider(0, own, cases.truth("normal", own), {"mean_angular_error_deg": 1.0})
    (case,) = worst.cases()
    height, width, _ = case.picture.shape
    assert height > 500
    assert width > 3 * 400
