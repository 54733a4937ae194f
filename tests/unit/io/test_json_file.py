from __future__ import annotations

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.io import read_json, write_json


def test_write_json__round_trip_with_any_letters(tmp_path):
    document = {"name": "Ærø", "values": [1, 2.5, None, True], "nested": {"empty": []}}
    path = write_json(tmp_path / "a.json", document)
    assert read_json(path) == document
    assert "Ærø" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32(1), {1, 2}])
def test_write_json__refuses_what_the_standard_has_no_form_for(tmp_path, value):
    with pytest.raises(InputError, match="as JSON"):
        write_json(tmp_path / "a.json", {"value": value})
    assert [path.name for path in tmp_path.iterdir()] == []


def test_read_json__names_the_file_and_the_place(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": ')
    with pytest.raises(InputError, match=r"a\.json is not valid JSON: .*line 1"):
        read_json(path)
