from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import sapiens2
from sapiens2.checkpoints import convert_checkpoint
from sapiens2.errors import CheckpointError, ConfigurationError
from sapiens2.inference import load, sources
from sapiens2.inference.sources import checkpoint_sources
from sapiens2.types import TASKS


def test_load__is_public() -> None:
    assert sapiens2.load is load


def test_load__a_checkpoint_of_the_task(nano_checkpoints: Path) -> None:
    predict = load("pose", model=nano_checkpoints / "nano-pose", device="cpu")
    assert predict.tasks == ("pose",)
    assert predict.model.dtype == torch.float32
    assert predict.device == torch.device("cpu")
    assert repr(predict) == "Predictor(tasks=['pose'], device='cpu')"


def test_load__dtype_reaches_the_weights(nano_checkpoints: Path) -> None:
    assert load("pose", model=nano_checkpoints, dtype="bf16", device="cpu").model.dtype == torch.bfloat16


def test_load__uses_the_processor_of_the_checkpoint(nano_checkpoints: Path, tmp_path: Path) -> None:
    shutil.copytree(nano_checkpoints / "nano-normal", tmp_path / "own")
    path = tmp_path / "own" / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_mean": [0.1, 0.2, 0.3]}))
    assert tuple(load("normal", model=tmp_path / "own").processor.image_mean) == (0.1, 0.2, 0.3)
    path.unlink()
    assert load("normal", model=tmp_path / "own").processor.do_pad is True


def test_load__another_task_than_the_checkpoints(nano_checkpoints: Path) -> None:
    with pytest.raises(CheckpointError, match="nano-seg is a seg checkpoint, and the task asked for is pose"):
        load("pose", model=nano_checkpoints / "nano-seg")


@pytest.mark.parametrize("name", ["nobody/has-this-checkpoint", "/no/such/folder"])
def test_load__what_is_nowhere_says_what_to_do(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError) as caught:
        load("pose", model=name)
    for part in (name, "hf download", "sapiens2 init --size nano --task pose", "was not found"):
        assert part in str(caught.value)


def test_load__published_weights_that_are_not_cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match="'facebook/sapiens2-seg-1b' was not found"):
        load("seg", size="1b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "pose"}, "neither was given"),
        ({"task": "pose", "size": "1b", "model": "x"}, "both were given"),
        ({"task": "face", "size": "1b"}, "task='face' is not known; choose one of pose, seg"),
        ({"task": [], "size": "1b"}, "no task was given"),
        ({"task": "pose", "size": "7b"}, "size='7b' is not known"),
        ({"task": "albedo", "size": "1b"}, "no albedo weights of size 1b were published"),
        ({"task": "all", "size": "0.1b"}, "no pose weights of size 0.1b were published"),
        ({"task": "all", "model": "some/hub-id"}, "'some/hub-id' was not found on this machine.*name the task too"),
        ({"task": "seg", "model": ""}, "model is empty"),
        ({"task": "all", "model": {"seg": " "}}, "model is empty"),
    ],
)
def test_load__arguments_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(**arguments)


def test_checkpoint_sources__sizes_are_hub_ids() -> None:
    assert checkpoint_sources("pose", size="0.4b") == {"pose": "facebook/sapiens2-pose-0.4b"}
    assert list(checkpoint_sources(["seg", "pose", "seg"], size="1b")) == ["pose", "seg"]
    assert list(checkpoint_sources("all", size="0.4b")) == ["pose", "seg", "normal", "pointmap"]
    assert checkpoint_sources("all", size="1b")["matting"] == "facebook/sapiens2-matting-1b"


def test_checkpoint_sources__packaged_checkpoints_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "nano-pose").mkdir(parents=True)
    (tmp_path / "checkpoints" / "nano-pose" / "config.json").write_text("{}")
    monkeypatch.setattr(sources, "files", lambda _package: tmp_path)
    assert checkpoint_sources("all", size="nano") == {"pose": str(tmp_path / "checkpoints" / "nano-pose")}


def test_checkpoint_sources__a_folder_of_checkpoints_is_told_apart_by_content(
    nano_checkpoints: Path, tmp_path: Path
) -> None:
    for name, task in {"one": "seg", "two.v2": "pose"}.items():
        shutil.copytree(nano_checkpoints / f"nano-{task}", tmp_path / name)
    (tmp_path / "notes").mkdir()
    convert_checkpoint(nano_checkpoints / "nano-matting", tmp_path / "x.safetensors", layout="original")
    convert_checkpoint(nano_checkpoints / "nano-albedo", tmp_path / "y.safetensors", layout="original")
    found = checkpoint_sources("all", model=tmp_path)
    assert {task: Path(path).name for task, path in found.items()} == {
        "pose": "two.v2",
        "seg": "one",
        "matting": "x.safetensors",
        "albedo": "y.safetensors",
    }
    assert checkpoint_sources("seg", model=tmp_path) == {"seg": str(tmp_path / "one")}
    assert load("matting", model=tmp_path, device="cpu").tasks == ("matting",)
    with pytest.raises(CheckpointError, match=r"no checkpoint for normal, pointmap; found seg: .*one; pose: .*two\.v2"):
        checkpoint_sources(["normal", "pose", "pointmap"], model=tmp_path)


def test_checkpoint_sources__two_checkpoints_of_a_task(nano_checkpoints: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(nano_checkpoints / "nano-seg", tmp_path / name)
    with pytest.raises(CheckpointError, match="holds two seg checkpoints, a and b"):
        checkpoint_sources("seg", model=tmp_path)


def test_checkpoint_sources__a_folder_without_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint for pose; found no task checkpoint"):
        checkpoint_sources("pose", model=tmp_path)
    with pytest.raises(CheckpointError, match="holds no checkpoint for any task"):
        checkpoint_sources("all", model=tmp_path)


def test_checkpoint_sources__all_of_one_checkpoint_is_its_task(nano_checkpoints: Path) -> None:
    assert list(checkpoint_sources("all", model=nano_checkpoints / "nano-normal")) == ["normal"]
    with pytest.raises(CheckpointError, match="is one checkpoint, and the tasks are pose, seg"):
        checkpoint_sources(["pose", "seg"], model=nano_checkpoints / "nano-normal")


def test_checkpoint_sources__a_mapping(nano_checkpoints: Path) -> None:
    mapping = {task: nano_checkpoints / f"nano-{task}" for task in TASKS}
    assert list(checkpoint_sources("all", model=mapping)) == list(TASKS)
    assert checkpoint_sources("seg", model=mapping) == {"seg": str(mapping["seg"])}
    with pytest.raises(CheckpointError, match="model holds no checkpoint for pose; found seg"):
        checkpoint_sources(["pose"], model={"seg": mapping["seg"]})


def test_checkpoint_sources__a_configuration_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"broken.config\.json is no configuration"):
        checkpoint_sources("pose", model=tmp_path)


@pytest.mark.parametrize("task", ["seg", "all"])
def test_checkpoint_sources__a_checkpoint_of_other_models(task: Any, tmp_path: Path) -> None:
    (tmp_path / "vit").mkdir()
    (tmp_path / "vit" / "config.json").write_text('{"model_type": "vit", "architectures": ["ViTModel"]}')
    with pytest.raises(CheckpointError, match=r"vit is no Sapiens2 checkpoint: its config\.json has model_type 'vit'"):
        load(task, model=tmp_path / "vit")


def test_checkpoint_sources__the_name_of_a_size_is_the_size_unless_there_is_such_a_folder(
    nano_checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert checkpoint_sources("pose", model="0.4b") == checkpoint_sources("pose", size="0.4b")
    (tmp_path / "0.4b").symlink_to(nano_checkpoints)
    assert checkpoint_sources("pose", model="0.4b")["pose"].startswith("0.4b")


@pytest.mark.parametrize("value", [5, 1.5, [1], b"x", {"pose": 5}, {"pose": None}, object()])
def test_load__what_is_no_model__is_named(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"model is .*; name a folder"):
        load("pose", model=value)


@pytest.mark.parametrize("value", [None, 5, 1.5, [5], [None], [["pose"]], object()])
def test_load__what_is_no_task__is_named(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"task=.* is not known; choose"):
        load(value, size="nano")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *[({"size": value}, "size=") for value in (5, ["nano"], b"nano")],
        *[({"device": value}, "device=") for value in (None, 1.5, [], "gpu")],
        *[({"dtype": value}, "dtype=") for value in (None, 5, [], "int8")],
    ],
)
def test_load__other_arguments_that_are_none__are_named(arguments: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load("pose", **{"size": "nano", **arguments})
