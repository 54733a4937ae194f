from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from sapiens2.errors import InputError
from sapiens2.services.picture_files import find_pictures


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "b.JPG",
        "a.png",
        "a.jpg",
        "notes.txt",
        ".hidden.jpg",
        "v1.2.final.jpeg",
        "sub/a.png",
        "sub/deep/c.webp",
    ):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "in"


def names(inputs: Sequence[Path | str], **options: object) -> dict[str, str]:
    """Path of each result without its ending -> the picture's name."""
    found = find_pictures(inputs, **options)  # type: ignore[arg-type]
    return {(own.folder / own.stem).as_posix(): own.path.name for own in found.pictures}


def test_find_pictures__a_folder_in_any_case_without_hidden_files(tree: Path) -> None:
    assert names([tree]) == {"a.jpg": "a.jpg", "a.png": "a.png", "b": "b.JPG", "v1.2.final": "v1.2.final.jpeg"}


def test_find_pictures__sub_folders_are_mirrored(tree: Path) -> None:
    found = names([tree], recursive=True)
    assert found["sub/a"] == "a.png"
    assert found["sub/deep/c"] == "c.webp"
    assert len(found) == 6


def test_find_pictures__named_files_may_be_called_anything(tree: Path) -> None:
    assert names([tree / "notes.txt"]) == {"notes.txt": "notes.txt"}


def test_find_pictures__patterns_take_pictures_alone(tree: Path) -> None:
    assert set(names([f"{tree}/*"])) == {"a.jpg", "a.png", "b", "v1.2.final"}
    assert set(names([f"{tree}/**/*.webp"])) == {"c"}
    assert set(names([f"{tree}/[ab].*"])) == {"a.jpg", "a.png", "b"}


def test_find_pictures__a_name_that_looks_like_a_pattern_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "photo[1].jpg").touch()
    assert names([tmp_path / "photo[1].jpg"]) == {"photo[1]": "photo[1].jpg"}


def test_find_pictures__the_same_file_counts_once(tree: Path) -> None:
    assert list(names([tree / "b.JPG", tree, f"{tree}/sub/../b.*"])) == ["b", "a.jpg", "a.png", "v1.2.final"]


def test_find_pictures__files_of_one_name_keep_their_folders(tree: Path) -> None:
    assert names([tree / "a.png", tree / "sub" / "a.png"]) == {"a": "a.png", "sub/a": "a.png"}


def test_find_pictures__no_two_pictures_ever_share_a_name(tmp_path: Path) -> None:
    given = ["x.jpg", "x.png", "x.jpg.png", "X.gif", "q:1.jpg", "q_1.jpg", "ü ö.png", "trailing..png", "noext"]
    for name in given:
        (tmp_path / name).touch()
    found = find_pictures([tmp_path / name for name in given])
    stems = [own.stem.casefold() for own in found.pictures]
    assert len(set(stems)) == len(given)
    assert "ü ö" in stems
    assert not any(set(stem) & set('\\/:*?"<>|') for stem in stems)


def test_find_pictures__says_what_stands_for_nothing(tree: Path) -> None:
    (tree / "empty").mkdir()
    found = find_pictures([tree / "gone.jpg", f"{tree}/*.bmp", tree / "empty", tree / "b.JPG"])
    assert [own.path.name for own in found.pictures] == ["b.JPG"]
    assert [problem.removeprefix(str(tree)) for problem in found.problems] == [
        "/gone.jpg: there is no such file or folder",
        "/*.bmp: no picture matches this pattern",
        "/empty: no pictures in this folder (its sub-folders: --recursive)",
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_find_pictures__pipes_and_devices_are_not_waited_for(tree: Path) -> None:
    os.mkfifo(tree / "pipe.jpg")
    found = find_pictures([tree / "pipe.jpg", os.devnull, tree / "b.JPG"])
    assert [own.path.name for own in found.pictures] == ["b.JPG"]
    assert [problem.partition(": ")[0] for problem in found.problems] == [str(tree / "pipe.jpg"), os.devnull]
    assert all("only files are read" in problem for problem in found.problems)


def test_find_pictures__an_empty_name_is_not_the_current_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert find_pictures(["", " "]).pictures == ()
    assert find_pictures([""]).problems == ("an input is empty; write . for the current folder",)


def test_find_pictures__what_lies_in_the_output_is_no_input(tree: Path) -> None:
    (tree / "out").mkdir()
    (tree / "out" / "a_pose.png").touch()
    assert "out/a_pose" in names([tree], recursive=True)
    assert "out/a_pose" not in names([tree], recursive=True, output=tree / "out")


def test_find_pictures__the_output_must_not_be_an_input(tree: Path) -> None:
    with pytest.raises(InputError, match="is an input and the output"):
        find_pictures([tree], output=f"{tree}{os.sep}.")


@pytest.mark.parametrize("name", ["a_pose.png", "a_overview.jpg", "a_seg_classes.png"])
def test_find_pictures__no_result_replaces_an_input(tmp_path: Path, name: str) -> None:
    for own in ("a.jpg", name):
        (tmp_path / own).touch()
    inputs = [tmp_path / "a.jpg", tmp_path / name]
    with pytest.raises(InputError, match=r"the results of .*a\.jpg might replace .*a_"):
        find_pictures(inputs, output=tmp_path)
    assert len(find_pictures(inputs, output=tmp_path / "out").pictures) == 2
