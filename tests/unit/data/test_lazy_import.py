from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

import sapiens2.data

HEAVY = ("torch", "transformers")


def loaded_by(code: str) -> list[str]:
    code = f"import sys\n{code}\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return list(ast.literal_eval(done.stdout))


def test_import__synthetic_and_its_workers__load_nothing_heavy() -> None:
    code = "import sapiens2.data, sapiens2.data.synthetic, sapiens2.data.sample, sapiens2.services.synthesise"
    assert loaded_by(code) == []


@pytest.mark.parametrize("name", sapiens2.data.__all__)
def test_exports__each_is_that_of_its_module(name: str) -> None:
    home = next(module for module, names in sapiens2.data._HOMES.items() if name in names)
    assert getattr(sapiens2.data, name) is getattr(importlib.import_module(home), name)
    assert name in importlib.import_module(home).__all__
    assert name in dir(sapiens2.data)


def test_exports__unknown_name__is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'sapiens2\.data' has no attribute 'nothing'"):
        sapiens2.data.nothing  # noqa: B018
