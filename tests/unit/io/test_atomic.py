from __future__ import annotations

import stat

import pytest

from sapiens2.errors import InputError
from sapiens2.io import atomic_path, write_bytes


def test_atomic_path__file_appears_only_at_the_end(tmp_path):
    target = tmp_path / "a.b.bin"
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"new")
        assert not target.exists()
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".bin")
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.b.bin"]


def test_atomic_path__error_keeps_the_old_file_and_leaves_nothing(tmp_path):
    target = write_bytes(tmp_path / "a.bin", b"old")

    def interrupted() -> None:
        with atomic_path(target) as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_atomic_path__block_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "a.bin"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == []


def test_atomic_path__names_as_long_as_the_file_system_allows(tmp_path):
    name = "n" * 251 + ".bin"
    assert write_bytes(tmp_path / name, b"x").name == name


def test_write_bytes__file_has_the_usual_permissions(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    mode = stat.S_IMODE(write_bytes(tmp_path / "atomic", b"").stat().st_mode)
    assert mode == stat.S_IMODE(plain.stat().st_mode)


def test_write_bytes__missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist; create it first"):
        write_bytes(tmp_path / "nowhere" / "a.bin", b"")


def test_write_bytes__folder_as_target(tmp_path):
    with pytest.raises(InputError, match="it is a folder"):
        write_bytes(tmp_path, b"")
