"""The training pictures: generated once, kept as memory-mapped arrays, read at random."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic import SyntheticSample, render

__all__ = ["MAX_PEOPLE", "SIZE_HW", "Pool", "render_share"]

SIZE_HW = (256, 192)
MAX_PEOPLE = 3
PEOPLE_SHARES = (0.05, 0.78, 0.12, 0.05)
"""How often a picture shows 0, 1, 2 and 3 people."""

_PIXELS = SIZE_HW
FIELDS: Mapping[str, tuple[tuple[int, ...], str]] = {
    "foreground": ((*_PIXELS, 3), "u1"),
    "background": ((*_PIXELS, 3), "u1"),
    "alpha": (_PIXELS, "u1"),
    "parts": (_PIXELS, "u1"),
    "people": (_PIXELS, "u1"),
    "normals": ((*_PIXELS, 3), "i1"),
    "depth": (_PIXELS, "f4"),
    "albedo": ((*_PIXELS, 3), "u1"),
    "keypoints": ((MAX_PEOPLE, 308, 3), "f4"),
    "boxes": ((MAX_PEOPLE, 4), "f4"),
    "focal": ((), "f4"),
    "count": ((), "u1"),
    "done": ((), "u1"),
}


class Pool:
    """Arrays of all samples, one file per field; ``done`` says which samples are there.

    Args:
        folder: Where the files are.
        count: Samples to make room for when there are no files yet.
    """

    def __init__(self, folder: Path, count: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.arrays: dict[str, NDArray[np.generic]] = {}
        for name, (shape, dtype) in FIELDS.items():
            path = folder / f"{name}.npy"
            if path.exists():
                self.arrays[name] = np.lib.format.open_memmap(path, mode="r+")
            elif count is not None:
                self.arrays[name] = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(count, *shape))
            else:
                raise FileNotFoundError(f"{path} is not there: run the stage `pool` first")

    def __len__(self) -> int:
        return len(self.arrays["done"])

    def finished(self) -> NDArray[np.int64]:
        """Indices of the samples that are there."""
        return np.flatnonzero(self.arrays["done"])

    def row(self, index: int) -> dict[str, NDArray[np.generic]]:
        """All fields of a sample."""
        return {name: values[index] for name, values in self.arrays.items()}

    def write(self, index: int, sample: SyntheticSample) -> None:
        """Keep a sample."""
        people = len(sample.keypoints)
        keypoints, boxes = np.zeros((MAX_PEOPLE, 308, 3), np.float32), np.zeros((MAX_PEOPLE, 4), np.float32)
        keypoints[:people], boxes[:people] = sample.keypoints, sample.boxes_xywh
        values = {
            "foreground": _bytes(sample.foreground),
            "background": _bytes(sample.background),
            "alpha": _bytes(sample.alpha),
            "parts": sample.parts,
            "people": sample.people,
            "normals": np.rint(np.nan_to_num(sample.normals.transpose(1, 2, 0)) * 127).astype(np.int8),
            "depth": np.nan_to_num(sample.pointmap[2]),
            "albedo": _bytes(sample.albedo),
            "keypoints": keypoints,
            "boxes": boxes,
            "focal": sample.intrinsics[0, 0],
            "count": people,
            "done": 1,
        }
        for name, value in values.items():
            self.arrays[name][index] = value


def _bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    scaled = np.rint(np.clip(np.nan_to_num(values), 0, 1) * 255).astype(np.uint8)
    return scaled if scaled.ndim == 2 else scaled.transpose(1, 2, 0)


def render_share(folder: Path, count: int, seed: int, share: int, shares: int) -> None:
    """Render every ``shares``-th sample from ``share`` on; those that are there are left."""
    pool = Pool(folder, count)
    start, made = time.monotonic(), 0
    for index in range(share, count, shares):
        if pool.arrays["done"][index]:
            continue
        people = int(np.random.default_rng([seed + index, 5]).choice(len(PEOPLE_SHARES), p=PEOPLE_SHARES))
        pool.write(index, render(seed + index, SIZE_HW, people))
        made += 1
        if made % 500 == 0:
            print(f"share {share}: {made} rendered, {made / (time.monotonic() - start):.1f} a second", flush=True)
