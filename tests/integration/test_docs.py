"""The documentation is true as far as code can tell: its blocks and examples run, its links lead somewhere."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import doc_pages
from sapiens2.assets import sample_photo
from sapiens2.checkpoints import default_processor, entries
from sapiens2.models import Sapiens2Config, Sapiens2Model

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
TEXTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = sorted(page for page in (ROOT / "docs" / "reference").glob("*.md") if page.stem != "README")
LANGUAGES = {"python", "bash", "json", "text"}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
INLINE_CODE = re.compile(r"`[^`\n]*`")

pytestmark = [
    pytest.mark.filterwarnings("ignore:Predicted scales"),  # random weights
    pytest.mark.filterwarnings("ignore:'pin_memory' argument"),  # Trainer without an accelerator
    pytest.mark.usefixtures("library_logging"),
]


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def nano_trunk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trunk")
    config = Sapiens2Config.from_size("nano")
    Sapiens2Model(config).save_pretrained(folder)
    default_processor(config, None).save_pretrained(folder)
    return folder


@pytest.fixture
def reader(tmp_path: Path, nano_checkpoints: Path, nano_trunk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a reader of the documentation works in: some pictures, boxes, and small published weights."""
    for entry in entries():
        place = tmp_path / entry.hub_id  # a folder of this name comes before the hub
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(nano_trunk if entry.task == "pretrain" else nano_checkpoints / f"nano-{entry.task}")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ("photo.jpg", "shoot/first.jpg", "shoot/sub/second.jpg", "more/third.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with Image.open(sample_photo()) as photo:
            photo.resize((160, 200)).save(tmp_path / name)
    Image.new("RGB", (400, 500), "teal").save(tmp_path / "people.jpg")
    (boxes,) = (b.code for b in doc_pages.blocks(ROOT / "docs/guide/command-line.md") if b.language == "json")
    (tmp_path / "boxes.json").write_text(boxes)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def run_process(*arguments: object) -> str:
    """Run Python where the Auto classes of this process stay as they are."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, arguments)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_page__every_block_runs_as_written(page: Path, reader: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "register_auto_classes()" in text:
        run_process(ROOT / "tests" / "doc_pages.py", page)
    else:
        doc_pages.run_page(page)


@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_page__fences_are_closed_and_have_a_language(page: Path) -> None:
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    found = doc_pages.blocks(page)
    assert len(fences) == 2 * len(found)
    assert {block.language for block in found} <= LANGUAGES


def test_run_page__says_where_a_page_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\n\n```python\nassert x == 1\nx.nothing\n```\n")
    with pytest.raises(AttributeError) as caught:
        doc_pages.run_page(page)
    assert (str(caught.traceback[-1].path), caught.traceback[-1].lineno + 1) == (str(page), 9)
    page.write_text("```bash\nmake nothing\nsapiens2 models --nonsense\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:3: .*exit code 2"):
        doc_pages.run_page(page)


@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_page__links_lead_somewhere(page: Path) -> None:
    text = doc_pages.FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(INLINE_CODE.sub("code", text)):
        if link.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} does not exist"
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", doc_pages.FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_docs__every_page_is_linked() -> None:
    """From the index of the documentation, or from an index that it links."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md", ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            waiting += [target] if target.suffix == ".md" and target.exists() else []
            waiting += sorted(target.glob("*.md")) if target.is_dir() and target.name == "adr" else []
    assert not [page_id(page) for page in (ROOT / "docs").rglob("*.md") if page not in reached]


@pytest.mark.parametrize("page", REFERENCE, ids=page_id)
def test_reference__lists_the_public_names_with_their_arguments(page: Path) -> None:
    module = importlib.import_module(f"sapiens2.{page.stem}")
    rows = re.findall(r"^\| `(\w+)(?:\((.*?)\))?` \| \S", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(module.__all__)
    for name, listed in rows:
        if listed:
            arguments = [part.removesuffix("=...") for part in listed.split(", ") if part != "*"]
            assert arguments == list(inspect.signature(getattr(module, name)).parameters), name


def test_reference__every_package_with_public_names_has_a_page() -> None:
    public = set(re.findall(r"sapiens2\.(\w+)`\]", (ROOT / "docs/reference/README.md").read_text(encoding="utf-8")))
    assert public == {page.stem for page in REFERENCE}


def example(name: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    return runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


def test_examples__predict(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example("predict.py", "photo.jpg", "--size", "nano", "--output", "results", monkeypatch=monkeypatch)
    assert (reader / "results" / "photo_overview.png").is_file()


def test_examples__finetune_trainer(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example("finetune_trainer.py", "--output", "tuned", "--steps", "2", monkeypatch=monkeypatch)
    assert {"config.json", "model.safetensors", "preprocessor_config.json"} <= {
        path.name for path in (reader / "tuned").iterdir()
    }


def test_examples__transformers_script(reader: Path, nano_checkpoints: Path) -> None:
    script = ROOT / "examples" / "transformers_script.py"
    out = run_process(script, nano_checkpoints / "nano-pose", "photo.jpg")
    assert re.match(r"sapiens2\.models\.\w+\.Sapiens2ForPoseEstimation on ", out)
    assert "308 keypoints" in out


def test_examples__all_are_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in (ROOT / "examples").glob("*.py") if f'"{path.name}"' not in source] == []
