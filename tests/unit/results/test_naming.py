from __future__ import annotations

import pytest

from sapiens2.errors import InputError
from sapiens2.results import file_stem
from sapiens2.results.naming import checked_stem


@pytest.mark.parametrize(
    ("source", "stem"),
    [
        (None, "image"),
        ("", "image"),
        ("a.jpg", "a"),
        ("in/a.b.jpg", "a.b"),
        ("in/a.b.JPEG", "a.b"),
        ("C:\\pictures\\a.b.png", "a.b"),
        ("frame.0001", "frame.0001"),
        ("v1.5", "v1.5"),
        (".jpg", ".jpg"),
        ("a..png", "a."),
        ("ünï cöde.webp", "ünï cöde"),
        ("https://host.org/x/a.b.jpg?size=3#top", "a.b"),
        ("https://host.org/my%20photo.png", "my photo"),
        ("https://host.org/", "image"),
    ],
)
def test_file_stem__takes_off_folders_and_media_suffixes_only(source, stem):
    assert file_stem(source) == stem


@pytest.mark.parametrize("stem", ["", ".", "..", "a/b", "/a", "..\\a", "C:a", "a\0"])
def test_checked_stem__refuses_what_is_not_a_plain_name(stem):
    with pytest.raises(InputError, match="plain file name"):
        checked_stem(stem, None)


def test_checked_stem__given_or_from_the_source():
    assert checked_stem("a.b", "x.jpg") == "a.b"
    assert checked_stem(None, "x.jpg") == "x"
