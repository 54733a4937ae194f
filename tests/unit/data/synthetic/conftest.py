"""One set of rendered people for all tests: the body is read once per session."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sapiens2.data.synthetic import SyntheticSample

EXTRA = "needs the extra synth: pip install 'sapiens2[synth]'"
IS_INSTALLED = all(importlib.util.find_spec(name) for name in ("anny", "warp"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "data/synthetic" in item.path.as_posix() and not IS_INSTALLED:
            item.add_marker(pytest.mark.skip(reason=EXTRA))


@pytest.fixture(scope="session")
def one_person() -> SyntheticSample:
    from sapiens2.data.synthetic import render

    return render(5, (128, 96), 1, framing="full")


@pytest.fixture(scope="session")
def three_people() -> SyntheticSample:
    from sapiens2.data.synthetic import render

    return render(21, (96, 128), 3, framing="bust")


@pytest.fixture(scope="session")
def nobody() -> SyntheticSample:
    from sapiens2.data.synthetic import render

    return render(3, (64, 48), 0)
