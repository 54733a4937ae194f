from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sapiens2.errors import ConfigurationError, InputError
from sapiens2.training import build_recipe, read_recipe, write_recipe
from sapiens2.training.published import published_recipe, published_recipes
from sapiens2.training.recipe import Recipe
from sapiens2.training.recipe_files import RECIPE_LOSSES, loss_terms, recipe_text
from sapiens2.training.strict_fields import known_keys
from sapiens2.types import TASKS

SMALL = """
task: seg
model: {from: nano, labels: [background, coat]}
data: {train: {kind: synthetic, count: 3}}
training: {steps: 10}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL)
    return path


def test_read_recipe__what_is_left_out_has_defaults(file: Path) -> None:
    recipe = read_recipe(file)
    assert recipe.model.labels == ("background", "coat")
    assert (recipe.optimizer.weight_decay, recipe.optimizer.betas) == (0.1, (0.9, 0.999))
    assert recipe.model.rope_rescale is None
    assert recipe.data.train == {"kind": "synthetic", "count": 3}


def test_write_recipe__reads_back_as_the_same(file: Path, tmp_path: Path) -> None:
    recipe = read_recipe(file, ["lora={rank: 3}", "ema=true", "loss.weights={dice: 0.5}", "model.image_size=[64, 48]"])
    written = write_recipe(tmp_path / "effective.yaml", recipe)
    assert read_recipe(written) == recipe
    assert set(yaml.safe_load(written.read_text())) == {key for key in known_keys(Recipe) if "." not in key}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("optimizer.lr=1e-3", ("optimizer", "lr", 1e-3)),
        ("training.steps=2e3", ("training", "steps", 2000)),
        ("data.train=folder", ("data", "train", "folder")),
        ("ema.decay=.99", ("ema", "decay", 0.99)),
        ("training.precision=bf16", ("training", "precision", "bf16")),
        ("freeze.backbone=yes", ("freeze", "backbone", True)),
        ("optimizer.clip=0", ("optimizer", "clip", 0.0)),
    ],
)
def test_read_recipe__changes(file: Path, change: str, expected: tuple[str, str, Any]) -> None:
    section, key, value = expected
    found = getattr(getattr(read_recipe(file, [change]), section), key)
    assert found == value
    assert type(found) is type(value)


def test_read_recipe__false_and_true_switch_optional_sections(file: Path) -> None:
    assert read_recipe(file, ["lora=true"]).lora is not None
    assert read_recipe(file, ["lora=true", "lora=false"]).lora is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["lr=1"], r"lr is no key of a recipe. Did you mean optimizer.lr\? Expected task, model"),
        (["optimizer.learning_rate=1"], r"optimizer.learning_rate is no key.*Did you mean optimizer.lr\?"),
        (["optimizer.wieght_decay=1"], r"Did you mean optimizer.weight_decay\?"),
        (["training.batch=1"], r"Did you mean training.batch_size\?"),
        (["lora.target_modules=[a]"], r"Did you mean lora.targets\?"),
        (["optimizer.lr=fast"], r"optimizer.lr is the text 'fast'; expected a number > 0"),
        (["optimizer.lr=-1"], r"optimizer.lr is -1; expected a number > 0"),
        (["optimizer.lr=.nan"], r"optimizer.lr is nan; expected a finite number"),
        (["optimizer.layer_decay=1.5"], r"optimizer.layer_decay is 1.5; expected a number <= 1 and > 0"),
        (["optimizer.betas=[.9]"], r"optimizer.betas is \[0.9\]; expected a list of 2 entries, each a number"),
        (["optimizer.betas=[.9, 1]"], r"optimizer.betas is \[0.9, 1\]; expected a number >= 0 and < 1"),
        (["training.steps=1.5"], r"training.steps is 1.5; expected a whole number >= 1, or null"),
        (["training.steps=true"], r"training.steps is true; expected a whole number"),
        (["training.epochs=2"], r"training: steps is 10 and epochs is 2.0; give one of them, and null for the other"),
        (["lora={targets: []}"], "lora.targets is empty; name matrices of the layers"),
        (["training.steps=null"], "training: neither steps nor epochs is given"),
        (["task=parts"], r"task is the text 'parts'; expected pose or seg or"),
        (["model.labels=[background, no]"], r"model.labels is \['background', False\]; expected a list of entries"),
        (["model.labels=[a, a]"], "model.labels: expected names, each once"),
        (["model.mirror_pairs=[[coat, hat]]"], r"model.mirror_pairs names \['hat'\]"),
        (["model.image_size=[50, 48]"], r"model.image_size is \[50, 48\]; expected multiples of 16"),
        (["model.from="], "model.from is null; expected text"),
        (["loss.weights={dise: 1}"], r"loss.weights.dise is no term of seg. Did you mean dice\?"),
        (["loss.weights={dice: 0, cross_entropy: 0}"], "all terms have weight 0"),
        (["loss.weights={dice: -1}"], r"loss.weights is \{'dice': -1\}; expected a number >= 0"),
        (["task=normal", "model.labels=null", "loss.class_weights=published"], "loss.class_weights is for seg"),
        (["task=normal"], "model.labels is for pose and seg; the task is normal"),
        (["lora=true", "freeze.backbone=true"], "freeze: with lora the trunk is frozen already"),
        (["augmentation.backgrounds=x", "task=normal", "model.labels=null"], "augmentation.backgrounds is for seg and"),
        (["data.train.kind.x=1"], r"--set data.train.kind.x=1: data.train.kind is 'synthetic', which has no keys"),
        (["steps"], r"--set steps: expected section.key=value"),
        (["optimizer.=1"], r"expected section.key=value"),
        (["optimizer.lr=[1"], r"--set optimizer.lr=\[1: no usable YAML"),
        (["defaults=0.3b"], r"defaults is '0.3b'; expected one of 0.4b, 0.8b, 1b, 5b for seg"),
        (["defaults=1b", "task=matting", "model.labels=null"], "no training of matting was published"),
        (["optimizer=5"], "optimizer: got 5; expected a mapping of name, lr"),
    ],
)
def test_read_recipe__what_is_wrong_is_named(file: Path, changes: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_recipe(file, changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL + "task: pose\n", r"recipe.yaml: line 6: the key 'task' occurs twice"),
        ("task: [", r"recipe.yaml: no usable YAML"),
        ("- task", r"is no recipe: expected a mapping"),
        ("", r"is no recipe"),
        ("task: seg", r"recipe.yaml: model is missing; expected a mapping of from"),
        ("task: seg\nmodel: {}", r"model.from is missing; expected text"),
    ],
)
def test_read_recipe__files_that_are_none(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read_recipe(file)


def test_read_recipe__no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="is no text in UTF-8"):
        read_recipe(file)
    with pytest.raises(InputError, match="There is no recipe"):
        read_recipe(file.parent / "other.yaml")


def test_build_recipe__labels_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("background\nleft glove\n")
    document = yaml.safe_load(SMALL)
    document["model"]["labels"] = str(tmp_path / "classes.txt")
    assert build_recipe(document).model.labels == ("background", "left glove")
    document["model"]["labels"] = str(tmp_path / "nowhere.txt")
    with pytest.raises(InputError, match="nowhere"):
        build_recipe(document)


def test_build_recipe__published_defaults_under_own_values(file: Path) -> None:
    recipe = read_recipe(file, ["defaults=0.8b", "optimizer.lr=1e-5", "training.steps=7"])
    assert (recipe.optimizer.lr, recipe.optimizer.layer_decay, recipe.optimizer.clip) == (1e-5, 0.85, 4)
    assert (recipe.training.steps, recipe.training.batch_size, recipe.training.precision) == (7, 5, "fp32")
    assert recipe.schedule.warmup_steps == 500
    epochs = read_recipe(file, ["defaults=0.8b", "training={epochs: 2}"]).training
    assert (epochs.steps, epochs.epochs) == (None, 2)


def test_published_recipes__are_recipes() -> None:
    assert len(published_recipes()) == 20
    for task, size, _ in published_recipes():
        recipe = build_recipe({"task": task, "defaults": size, "model": {"from": size}, "data": {"train": "x"}})
        assert recipe.schedule.kind == "polynomial"
    assert published_recipe("pose", "5b")["optimizer"]["lr"] == 1e-4
    assert published_recipe("seg", "1b")["loss"] == {"class_weights": "published"}


@pytest.mark.parametrize("task", TASKS)
def test_loss_terms__are_keywords_of_the_recipe_loss(task: Any) -> None:
    terms = loss_terms(task)
    assert terms
    assert "composition" not in terms
    assert all(f"{term}_weight" in RECIPE_LOSSES[task].__kwdefaults__ for term in terms)


def test_recipe_text__is_plain_yaml(file: Path) -> None:
    assert yaml.safe_load(recipe_text(read_recipe(file)))["model"]["from"] == "nano"


def test_known_keys__are_all_in_the_guide() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "guide" / "training.md").read_text(encoding="utf-8")
    paths = known_keys(Recipe)
    leaves = [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]
    assert len(leaves) > 50
    assert [path for path in leaves if f"`{path}`" not in page] == []
