"""The house is in order: layers, public names, sizes of modules and files, versions, and the wheel."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import sapiens2

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "sapiens2"
FOLDERS = ("src", "tests", "docs", "examples", "scripts", "benchmarks")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".json", ".yaml", ".yml", ".cff", ".typed", ""}
MAX_MODULE_BYTES = 20_000


def own_files() -> list[Path]:
    """What the repository holds, but for what tools leave behind."""
    nested = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    top = [path for path in ROOT.iterdir() if path.suffix in TEXT_SUFFIXES and path.name != ".coverage"]
    return sorted(path for path in [*nested, *top] if path.is_file())


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_layers__no_lower_one_imports_a_higher_one() -> None:
    assert script("check_import_direction").violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("package", "line", "message"),
    [
        ("geometry", "from sapiens2.models import Sapiens2Model", "geometry imports models, which is a higher layer"),
        ("io", "from sapiens2 import results", "io imports results, which is a higher layer"),
        ("losses", "def f():\n    import sapiens2.cli.main", "losses imports cli, which is a higher layer"),
        ("cli", "import torchvision.transforms", "torchvision.transforms must not be imported"),
        ("models", "from transformers.models.sapiens2 import modeling_sapiens2", "must not be imported"),
        ("results", "from .base import Result", "relative import"),
        ("helpers", "import os", "helpers has no layer"),
    ],
)
def test_layers__the_check_finds(package: str, line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "module.py").write_text(line + "\n")
    problems = script("check_import_direction").violations(tmp_path)
    assert len(problems) >= 1
    assert any(message in problem for problem in problems)


def test_public_names__all_import_and_say_what_they_are() -> None:
    for name in sapiens2.__all__:
        value = getattr(sapiens2, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), name
        assert name == "__version__" or value.__module__.startswith("sapiens2."), name
    assert set(sapiens2.__all__) <= set(dir(sapiens2))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sapiens2.nothing


def test_public_names__type_checkers_see_the_same() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.name == alias.asname  # the form that marks a re-export
            seen[alias.name] = node.module
    assert seen == {name: module for module, names in sapiens2._HOMES.items() for name in names}


def test_packages__export_what_they_list() -> None:
    for init in sorted(PACKAGE.glob("*/__init__.py")):
        module = importlib.import_module(f"sapiens2.{init.parent.name}")
        assert (module.__doc__ or "").strip().endswith((".", '"')), module.__name__
        assert "TODO" not in (module.__doc__ or "")
        names = list(getattr(module, "__all__", []))
        assert len(names) == len(set(names))
        assert [name for name in names if not hasattr(module, name)] == []


def test_modules__stay_small() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in PACKAGE.rglob("*.py")}
    assert {path: size for path, size in sizes.items() if size > MAX_MODULE_BYTES} == {}


def test_files__stay_small(tmp_path: Path) -> None:
    check = script("check_large_files")
    assert check.too_large([path.relative_to(ROOT).as_posix() for path in own_files()], ROOT) == []
    (tmp_path / "large.bin").write_bytes(bytes(check.LIMIT_BYTES + 1))
    assert check.too_large(["large.bin", "gone.bin"], tmp_path) == ["large.bin: 524,289 bytes, and 524,288 is the most"]
    (tmp_path / check.WEIGHTS).mkdir(parents=True)
    (tmp_path / "large.bin").rename(tmp_path / check.WEIGHTS / "large.bin")
    assert check.too_large([f"{check.WEIGHTS}large.bin"], tmp_path) == []


def test_files__name_no_place_of_one_machine() -> None:
    places = "|".join(["home", "root", "Users", "work", "mnt", "media", "opt", "srv"])
    pattern = re.compile(rf"(?<![\w.:/$~}}-])/(?:{places})/[\w.-]+", re.ASCII)
    own = re.compile("|".join(re.escape(str(path)) for path in {ROOT, Path.home()} if len(path.parts) > 1) or "(?!)")
    found = {}
    for path in own_files():
        if path.suffix in TEXT_SUFFIXES:
            text = path.read_text(encoding="utf-8")
            hits = [match[0] for regex in (pattern, own) for match in regex.finditer(text)]
            found |= {str(path.relative_to(ROOT)): hits} if hits else {}
    assert found == {}


def test_version__is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == sapiens2.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {sapiens2.__version__}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"[{sapiens2.__version__}]" in changelog or f"will be {sapiens2.__version__}" in changelog


def test_constraints__cover_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert {re.split(r"[<>=~! \[]", name)[0] for names in groups for name in names} == set(pinned)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network: the backend is installed with the linters."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_wheel__carries_all_that_is_needed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(n).decode() for n in names if n.endswith(".dist-info/METADATA"))
    source = {path.relative_to(ROOT / "src").as_posix() for path in own_files() if path.is_relative_to(PACKAGE)}
    assert {name for name in names if name.startswith("sapiens2/")} == source
    assert {"sapiens2/py.typed", "sapiens2/assets/sizes.json", "sapiens2/assets/samples/astronaut.jpg"} <= names
    for name in ("LICENSE", "NOTICE"):
        assert any(entry.endswith(f".dist-info/licenses/{name}") for entry in names)
    assert "License-Expression: Apache-2.0" in metadata
    assert not [name for name in names if not name.startswith(("sapiens2/", "sapiens2-"))]


CHECK = """
import sys
import sapiens2, sapiens2.assets
from pathlib import Path
assert Path(sapiens2.__file__).is_relative_to(sys.prefix), sapiens2.__file__
assert len(sapiens2.assets.keypoint_table()) == 308
assert len(sapiens2.assets.part_table()) == 29
assert sapiens2.assets.sample_photo().stat().st_size > 100_000
assert issubclass(sapiens2.InputError, ValueError)
assert not {"torch", "transformers", "numpy"} & set(sys.modules)
"""


def test_wheel__installs_elsewhere(wheel: Path, tmp_path: Path) -> None:
    """In a new environment without any dependency, from another folder: names, tables, photo and help need none."""
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    scripts = Path(sysconfig.get_path("scripts", "venv", {"base": str(home), "platbase": str(home)}))
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for command in ([python, "-c", CHECK], [scripts / "sapiens2", "--help"], [scripts / "sapiens2", "--version"]):
        process = subprocess.run(
            [str(word) for word in command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stderr
    assert process.stdout == f"sapiens2 {sapiens2.__version__}\n"
