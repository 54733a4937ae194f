"""Readers of fields take any array that a file can hold: they give a map of their range, or say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sapiens2.data.loaders.depth import as_camera_matrix
from sapiens2.data.loaders.fields import (
    as_albedo,
    as_alpha,
    as_depth,
    as_foreground,
    as_mask,
    as_normals,
    as_parts,
    as_trimap,
)
from sapiens2.errors import ConfigurationError, InputError

READERS: dict[str, Callable[[np.ndarray], Any]] = {
    "parts": lambda values: as_parts(values, 29, "map"),
    "normals": lambda values: as_normals(values, "map"),
    "depth": lambda values: as_depth(values, "map"),
    "depth in millimetres": lambda values: as_depth(values, "map", unit_m=0.001),
    "mask": lambda values: as_mask(values, "map"),
    "alpha": lambda values: as_alpha(values, "map"),
    "trimap": lambda values: as_trimap(values, "map")[0],
    "foreground": lambda values: as_foreground(values, "map"),
    "albedo": lambda values: as_albedo(values, "map"),
    "camera": lambda values: as_camera_matrix(values, "map"),
}
SHAPES = (
    *((), (0,), (4,), (0, 0), (2, 2), (3, 3), (0, 0, 3), (0, 5, 4), (2, 2, 0), (2, 2, 1), (1, 2, 2), (2, 2, 2)),
    *((2, 2, 3), (2, 2, 4), (3, 2, 2), (2, 2, 5), (2, 2, 2, 2)),
)
NUMBERS = ("?", "u1", "u2", "i8", "f2", "f4", "f8")
OTHERS = ("c16", "U3", "S2", "M8[s]", "V4")
LEVELS = (0.0, 0.5, 1.0, 7.0, -1.0, 255.0, 1e300, np.inf, np.nan)


def arrays(shape: tuple[int, ...], kind: str) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        levels = [level for level in LEVELS if kind[0] == "f" or (0 <= level < 256)]
        return [np.full(shape, level).astype(kind) for level in levels]


@pytest.mark.parametrize("reader", READERS)
def test_readers__any_numbers__make_a_finite_field_or_are_refused(reader: str) -> None:
    read, messages = 0, []
    for values in (own for shape in SHAPES for kind in NUMBERS for own in arrays(shape, kind)):
        try:
            field = READERS[reader](values)
        except InputError as error:
            messages.append(str(error))
        else:
            assert field.size, values.shape
            assert not np.isinf(field).any(), values
            read += 1
    assert read
    assert [own for own in messages if not own.startswith("map")] == []


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("reader", READERS)
def test_readers__no_numbers__are_refused(reader: str, kind: str) -> None:
    for shape in SHAPES:
        with pytest.raises(InputError, match=r"^map (has numbers of type|is no camera matrix)"):
            READERS[reader](np.zeros(shape, kind))


@pytest.mark.parametrize("unit_m", [0, -1.0, np.inf, np.nan])
def test_as_depth__units(unit_m: float) -> None:
    with pytest.raises(ConfigurationError, match=r"unit_m is .*; expected metres per unit, above zero and finite"):
        as_depth(np.ones((2, 2)), "map", unit_m=unit_m)


@pytest.mark.parametrize(
    "value",
    [None, "x", 5, [], [[1, 2], [3]], ["1", "2", "3", "4"], [10**400] * 4, {}, {"fx": 1}, {"intrinsics": None}]
    + [{"fx": wrong, "fy": 1, "cx": 1, "cy": 1} for wrong in (None, "x", [1], 10**400, 0, float("nan"))],
)
def test_as_camera_matrix__other_values__are_shown(value: Any) -> None:
    with pytest.raises(InputError, match=r"^camera (is|has) .*(expected|camera matrix|not finite)"):
        as_camera_matrix(value, "camera")
