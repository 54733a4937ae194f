"""Connected regions of masks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_component"]


def largest_component(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The largest set of True pixels that hang together by their sides (4-connected).

    Args:
        mask: ``(H, W)`` bool.

    Returns:
        ``(H, W)`` bool, all False when the mask is. Of equally large regions it is the one met first, row by row.
    """
    width = mask.shape[1]
    rows, starts, ends = _runs(mask)
    if not len(rows):
        return np.zeros_like(mask)
    labels = _joined(len(rows), *_touching(rows * (width + 1), starts, ends, width + 1))
    sizes = np.zeros(len(rows), np.int64)
    np.add.at(sizes, labels, ends - starts)
    chosen = labels == sizes.argmax()
    edges = np.zeros((len(mask), width + 1), np.int8)
    edges[rows[chosen], starts[chosen]] += 1
    edges[rows[chosen], ends[chosen]] -= 1  # a run ends before the next one starts, so no entry is met twice
    return edges.cumsum(axis=1)[:, :width] > 0


def _runs(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Row, first column and column after the last, of each horizontal run of True pixels, row by row."""
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    return rows, starts, np.nonzero(edges == -1)[1]


def _touching(
    offsets: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64], stride: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of runs in neighbouring rows that share a column; ``offsets`` are rows times ``stride``."""
    # The runs of the next row that a run touches are consecutive: from the first that ends behind its start to the
    # last that starts before its end. Keys of row and column together find both in one search.
    first = np.searchsorted(offsets + ends, offsets + stride + starts, side="right")
    last = np.searchsorted(offsets + starts, offsets + stride + ends, side="left")
    counts = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(len(starts)), counts)
    within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    return upper, first[upper] + within


def _joined(number: int, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Label each of ``number`` items by the lowest item that pairs connect it with."""
    labels = np.arange(number)
    while True:
        # All regions hook onto their lowest neighbour at once: their number at least halves in each pass.
        lowest = np.minimum(labels[first], labels[second])
        hooked = labels.copy()
        np.minimum.at(hooked, labels[first], lowest)
        np.minimum.at(hooked, labels[second], lowest)
        while not np.array_equal(hooked, hooked[hooked]):
            hooked = hooked[hooked]
        if np.array_equal(hooked, labels):
            return labels
        labels = hooked
