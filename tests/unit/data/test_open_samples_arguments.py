from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sapiens2.data import open_samples
from sapiens2.errors import ConfigurationError


@pytest.mark.parametrize("spec", [None, 5, 1.5, [1], ["people"], b"people", {1}, object()])
def test_open_samples__what_is_no_description__is_named(spec: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"data is .*; expected a path, a mapping with kind, or a text such as"
    ):
        open_samples(spec)


@pytest.mark.parametrize("base", [5, [1], b"people"])
def test_open_samples__base_that_is_no_path__is_named(base: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"base is .*; expected a path"):
        open_samples(tmp_path, base=base)


@pytest.mark.parametrize("task", [5, 1.5, object(), [5], [None], [["seg"]], "segg"])
def test_open_samples__what_is_no_task__is_named(task: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no task .*; expected one of pose"):
        open_samples(tmp_path, task=task)
