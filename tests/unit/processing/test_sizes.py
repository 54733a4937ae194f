"""Sizes come as pairs, arrays, tensors, or as the images themselves."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from sapiens2.errors import InputError
from sapiens2.processing.sizes import as_sizes, warn_of_transposed_sizes

PAIRS = [(30, 40), (50, 20)]


@pytest.mark.parametrize(
    "sizes",
    [
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        torch.tensor(PAIRS),
        torch.tensor(PAIRS, dtype=torch.float32),
        np.array(PAIRS),
        [torch.tensor(pair) for pair in PAIRS],
        [np.array(pair) for pair in PAIRS],
        [tuple(torch.tensor(pair)) for pair in PAIRS],
        [tuple(np.array(pair)) for pair in PAIRS],
        [torch.Size(pair) for pair in PAIRS],
        [Image.new("RGB", (40, 30)), np.zeros((50, 20, 3), np.uint8)],
        [torch.zeros(3, 30, 40), (50, 20)],
    ],
)
def test_as_sizes__every_kind(sizes) -> None:
    result = as_sizes(sizes, 2, "target_sizes")
    assert result == PAIRS
    assert all(type(side) is int for pair in result for side in pair)


def test_as_sizes__none_and_empty() -> None:
    assert as_sizes(None, 3, "target_sizes") is None
    for empty in ([], (), torch.zeros(0, 2), np.zeros((0, 2))):
        assert as_sizes(empty, 0, "target_sizes") == []


def test_as_sizes__batch_of_one() -> None:
    for sizes in ((30, 40), torch.tensor([30, 40]), Image.new("L", (40, 30)), np.zeros((1, 30, 40, 3), np.uint8)):
        assert as_sizes(sizes, 1, "target_sizes") == [(30, 40)]


def test_as_sizes__image_with_exif_counts_as_displayed() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30)).save(buffer, "jpeg", exif=exif)
    assert as_sizes([Image.open(buffer)], 1, "source_sizes") == [(40, 30)]


@pytest.mark.parametrize("sizes", [[(30, 40)], [], torch.zeros(3, 2), (30, 40)])
def test_as_sizes__another_number(sizes) -> None:
    with pytest.raises(InputError, match=r"target_sizes has \d sizes for a batch of 2"):
        as_sizes(sizes, 2, "target_sizes")


@pytest.mark.parametrize("entry", [(0, 4), (3, -4), (3.5, 4), (3,), (3, 4, 5), ("3", "4"), None, (np.nan, 4), 7])
def test_as_sizes__no_size(entry) -> None:
    with pytest.raises(InputError, match=r"source_sizes\[1\] is .*positive whole numbers"):
        as_sizes([(1, 1), entry], 2, "source_sizes")


def test_as_sizes__wrong_array_shape_or_type() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 2, 2, 2, 2\)"):
        as_sizes(np.zeros((2,) * 5), 2, "target_sizes")
    with pytest.raises(InputError, match="target_sizes is a dict"):
        as_sizes({}, 2, "target_sizes")


def test_warn_of_transposed_sizes__only_where_transposed() -> None:
    with pytest.warns(UserWarning, match=r"target_sizes\[1\] = \(40, 30\).*transposed.*image\.size"):
        warn_of_transposed_sizes([(1, 2), (30, 40)], [(5, 6), (40, 30)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_transposed_sizes([(30, 40), (8, 8)], [(30, 40), (8, 8)])


@pytest.mark.parametrize(
    "sizes",
    [
        [(float("inf"), 4)],
        [(4, float("nan"))],
        [(True, True)],
        [(np.True_, 4)],
        np.ones((1, 2), dtype=bool),
        torch.ones((1, 2), dtype=torch.bool),
        torch.tensor([[float("inf"), 2.0]]),
        np.array(5),
        torch.tensor(5),
        torch.ones((1, 2), device="meta"),
        torch.ones((1, 2)).to_sparse(),
        np.ones((1, 2), dtype=complex),
    ],
)
def test_as_sizes__refuses_what_is_no_length(sizes):
    with pytest.raises(InputError, match="target_sizes"):
        as_sizes(sizes, 1, "target_sizes")
