from __future__ import annotations

import contextlib

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.io import read_npz, write_npz


@pytest.mark.parametrize("compress", [True, False])
def test_write_npz__round_trip(tmp_path, compress):
    arrays = {
        "map": np.arange(6, dtype=np.float32).reshape(1, 2, 3),
        "scale": 0.5,
        "model": "nano",
        "none": np.zeros(0),
    }
    stored = read_npz(write_npz(tmp_path / "a.b.npz", arrays, compress=compress))
    assert list(stored) == list(arrays)
    assert stored["map"].dtype == np.float32
    np.testing.assert_array_equal(stored["map"], arrays["map"])
    assert (stored["scale"].item(), stored["model"].item(), stored["none"].shape) == (0.5, "nano", (0,))
    assert [path.name for path in tmp_path.iterdir()] == ["a.b.npz"]


def test_write_npz__name_without_suffix_is_kept(tmp_path):
    assert write_npz(tmp_path / "plain", {"a": 1}).name == "plain"
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_write_npz__same_arrays_same_bytes(tmp_path):
    first, second = (write_npz(tmp_path / name, {"a": np.ones(9)}).read_bytes() for name in ("1.npz", "2.npz"))
    assert first == second


def test_write_npz__refuses_objects(tmp_path):
    with pytest.raises(InputError, match="it holds Python objects"):
        write_npz(tmp_path / "a.npz", {"a": np.array([None, {}])})
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"not a zip at all"])
def test_read_npz__damaged_file(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a readable NPZ file"):
        read_npz(path)


def test_read_npz__single_array_is_not_an_npz(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(InputError, match="it is a single array"):
        read_npz(tmp_path / "a.npy")


@pytest.mark.parametrize("compress", [True, False])
def test_read_npz__any_changed_byte__is_refused_or_changes_nothing(tmp_path, compress):
    values = np.linspace(0, 1, 50, dtype=np.float32)
    path = write_npz(tmp_path / "a.npz", {"map": values}, compress=compress)
    whole = path.read_bytes()
    refused = []
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(InputError):
            assert all(np.array_equal(array, values) for array in read_npz(path).values())
            continue
        refused.append(place)
    assert len(refused) > len(whole) / 10


def test_read_npz__missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "gone.npz")
