from __future__ import annotations

from pathlib import Path

import pytest

from sapiens2.data.spec_text import read_sample_spec
from sapiens2.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: coco\nlimit: 1\nlimit: 2\n", "line 3: the key 'limit' occurs twice in one mapping"),
        ("kind: hub\ncolumns:\n  image: a\n  image: b\n", "line 4: the key 'image' occurs twice in one mapping"),
        ("{1: a, 1.0: b}", "the key 1.0 occurs twice"),
        ("? [a, b]\n: 1\n", "unhashable key"),
        ("kind: [", "no usable YAML"),
        ("kind: 2020-99-99", "no usable YAML: month must be"),
        ("[" * 5000, "nested too deeply"),
        ("- kind", "describes no data; expected a mapping"),
        ("", "describes no data; expected a mapping"),
    ],
)
def test_read_sample_spec__files_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=rf"data\.yaml(?s:.*){message}"):
        read_sample_spec(tmp_path / "data.yaml")


def test_read_sample_spec__text__keys_that_occur_twice() -> None:
    with pytest.raises(ConfigurationError, match="has the key 'count' twice"):
        read_sample_spec("synthetic:count=1,seed=2,count=3")


@pytest.mark.parametrize("text", ["1e-3", "1.0e-3", "1E-3", "0.001"])
def test_read_sample_spec__numbers(text: str, tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_text(f"kind: depth\nunit_m: {text}\n")
    assert read_sample_spec(tmp_path / "data.yaml")["unit_m"] == 0.001
    assert read_sample_spec(f"depth:unit_m={text}")["unit_m"] == 0.001


def test_read_sample_spec__byte_order_mark_and_merged_keys(tmp_path: Path) -> None:
    text = "base: &base {kind: coco, limit: 1}\ndata:\n  <<: *base\n  limit: 2\n"
    (tmp_path / "data.yaml").write_bytes(text.encode("utf-8-sig"))
    assert read_sample_spec(tmp_path / "data.yaml")["data"] == {"kind": "coco", "limit": 2}
