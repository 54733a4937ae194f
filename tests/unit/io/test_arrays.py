from __future__ import annotations

import numpy as np
import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_image, checked_mask


def test_checked_array__letters_stand_for_any_equal_size():
    assert checked_array(np.zeros((4, 4)), "a", ("N", "N")).shape == (4, 4)
    with pytest.raises(InputError, match=r"a must have shape \(N, N\), got \(4, 5\)"):
        checked_array(np.zeros((4, 5)), "a", ("N", "N"))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 1), (0, 3)])
def test_checked_array__refuses_other_shapes(shape):
    with pytest.raises(InputError, match=r"points must have shape \(N, 2\)"):
        checked_array(np.zeros(shape), "points", ("N", 2))


@pytest.mark.parametrize("value", [[[1, 2]], torch.tensor([[1, 2]]), np.array([[1, 2]], np.float64)])
def test_checked_array__becomes_float32(value):
    array = checked_array(value, "a", ("N", 2))
    assert array.dtype == np.float32
    assert array.tolist() == [[1.0, 2.0]]


def test_checked_array__float32_is_not_copied():
    array = np.zeros((2, 2), np.float32)
    assert checked_array(array, "a", (2, 2)) is array


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([["x", "y"]], "must hold numbers, got dtype <U1"),
        ([[1, 2], [3]], "cannot be read as a numpy array"),
        (torch.zeros(1, 2, requires_grad=True), "cannot be read as a numpy array"),
        ([[1j, 2]], "must hold numbers, got dtype complex128"),
        (None, "must hold numbers, got dtype object"),
    ],
)
def test_checked_array__refuses_what_is_not_real_numbers(value, message):
    with pytest.raises(InputError, match=message):
        checked_array(value, "a", ("N", 2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_checked_array__counts_values_that_are_not_finite(bad):
    with pytest.raises(InputError, match="a must be finite; 1 of 3 values"):
        checked_array([1.0, bad, 2.0], "a", ("N",), finite=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((4, 4, 3), np.float32), "image must be uint8 in 0..255, got float32"),
        (np.zeros((3, 4, 5), np.uint8), r"image must have shape \(H, W, 3\), got \(3, 4, 5\)"),
        (np.zeros((0, 4, 3), np.uint8), "image has no pixels"),
    ],
)
def test_checked_image__refuses(value, message):
    with pytest.raises(InputError, match=message):
        checked_image(value)


def test_checked_mask__none_is_everywhere():
    assert checked_mask(None, (2, 3)).all()


@pytest.mark.parametrize("mask", [np.ones((2, 3)), np.ones((3, 2), np.bool_)])
def test_checked_mask__refuses_numbers_and_other_sizes(mask):
    with pytest.raises(InputError, match=r"mask must be bool \(2, 3\), got"):
        checked_mask(mask, (2, 3))
