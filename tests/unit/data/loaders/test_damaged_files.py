"""Files with bytes that are not as they were written are named, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sapiens2.data.loaders.files import read_map, read_rgb
from sapiens2.errors import InputError
from sapiens2.io import write_normals_png

VALUES = np.random.default_rng(0).random((9, 7)).astype(np.float32)
GREY = (VALUES * 255).astype(np.uint8)
UPWARD = np.concatenate([np.zeros((2, 9, 7), np.float32), np.ones((1, 9, 7), np.float32)])

WRITERS: dict[str, Callable[[Path], object]] = {
    "plain.npy": lambda path: np.save(path, VALUES),
    "stored.npz": lambda path: np.savez(path, depth=VALUES),
    "deflated.npz": lambda path: np.savez_compressed(path, depth=VALUES),
    "grey.png": lambda path: Image.fromarray(GREY).save(path),
    "normals16.png": lambda path: write_normals_png(path, UPWARD),
    "colour.jpg": lambda path: Image.fromarray(np.stack([GREY] * 3, axis=-1)).save(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_read__damaged(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    draw = np.random.default_rng(1)
    readers = [read_map] if path.suffix in (".npy", ".npz") else [read_map, read_rgb]
    messages: list[str] = []
    for attempt in range(120):
        damaged = bytearray(whole)
        if attempt % 3 == 0:
            damaged = damaged[: draw.integers(len(whole))]
        else:  # the beginning, where what comes next is described, as often as any place
            end = len(whole) if attempt % 3 == 1 else min(len(whole), 130)
            for place in draw.integers(end, size=3):
                damaged[place] = draw.integers(256)
        path.write_bytes(damaged)
        for read in readers:
            try:
                read(path)
            except InputError as error:
                messages.append(str(error))
    assert len(messages) > 40
    assert [own for own in messages if str(path) not in own or "allow_pickle" in own] == []


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
@pytest.mark.parametrize("kind", ["garbage", "objects"])
def test_read__arrays__no_advice_to_unpickle(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if kind == "garbage":
        path.write_bytes(b"no array at all")
    else:
        objects = np.array([{"depth": 1}], dtype=object)
        (np.save if path.suffix == ".npy" else np.savez)(path, objects, allow_pickle=True)
    with pytest.raises(InputError, match=r"is not a readable .* it is damaged, or holds Python objects$"):
        read_map(path)
