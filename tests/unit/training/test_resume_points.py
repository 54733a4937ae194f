from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from sapiens2.training.resume_points import CheckpointNeeds, ResumePoints, damage, saved_processes

FULL = CheckpointNeeds(average=True)
FILES = {
    FULL: ("config.json", "model.safetensors", "average.safetensors", "rng_state.pth"),
    CheckpointNeeds(adapter=True): ("adapter_config.json", "adapter_model.safetensors", "rng_state.pth"),
    CheckpointNeeds(processes=2): ("config.json", "model.safetensors", "rng_state_0.pth", "rng_state_1.pth"),
}
CASES = [(needs, name) for needs, own in FILES.items() for name in (*own, "optimizer.pt", "scheduler.pt")]
CASES = [*CASES, (FULL, "trainer_state.json")]


def write(folder: Path, needs: CheckpointNeeds = FULL, step: int = 4) -> Path:
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir(parents=True)
    for name in (*FILES[needs], "optimizer.pt", "scheduler.pt"):
        if name.endswith(".json"):
            (checkpoint / name).write_text('{"a": 1}')
        elif name.endswith(".safetensors"):
            save_file({"a": torch.arange(12.0)}, checkpoint / name)
        else:
            torch.save({"a": torch.arange(12.0)}, checkpoint / name)
    (checkpoint / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return checkpoint


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("needs", FILES)
def test_damage__none_in_what_is_whole(needs: CheckpointNeeds, tmp_path: Path) -> None:
    assert damage(write(tmp_path, needs), needs) is None


@pytest.mark.parametrize(
    ("harm", "fault"),
    [(Path.unlink, "is missing"), (cut, "is damaged"), (empty, "is damaged")],
    ids=["missing", "cut", "empty"],
)
@pytest.mark.parametrize(("needs", "name"), CASES, ids=[name for _, name in CASES])
def test_damage__of_every_file_that_is_read(
    needs: CheckpointNeeds, name: str, harm: Callable[[Path], None], fault: str, tmp_path: Path
) -> None:
    whole = write(tmp_path, needs, step=2)
    checkpoint = write(tmp_path, needs)
    harm(checkpoint / name)
    assert str(damage(checkpoint, needs)).startswith(f"{name} {fault}")
    points = ResumePoints.in_folder(tmp_path, needs)
    assert points.whole == whole
    assert list(points.damaged) == [checkpoint]


def test_damage__of_bytes_in_the_middle_of_an_archive(tmp_path: Path) -> None:
    checkpoint = write(tmp_path)
    path = checkpoint / "optimizer.pt"
    content = bytearray(path.read_bytes())
    place = content.find(torch.arange(12.0).numpy().tobytes())
    content[place + 4] ^= 255
    path.write_bytes(bytes(content))
    assert "another checksum" in str(damage(checkpoint, FULL))


def test_damage__of_a_shard(tmp_path: Path) -> None:
    checkpoint = write(tmp_path)
    (checkpoint / "model.safetensors").rename(checkpoint / "model-1.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    assert damage(checkpoint, FULL) == "model-2.safetensors is missing"
    save_file({"b": torch.zeros(2)}, checkpoint / "model-2.safetensors")
    assert damage(checkpoint, FULL) is None


def test_damage__state_of_another_step(tmp_path: Path) -> None:
    checkpoint = write(tmp_path).rename(tmp_path / "checkpoint-9")
    assert damage(checkpoint, FULL) == "trainer_state.json is damaged (it is of step 4)"


def test_damage__another_number_of_processes_is_none(tmp_path: Path) -> None:
    checkpoint = write(tmp_path, CheckpointNeeds(processes=2))
    assert saved_processes(checkpoint) == 2
    assert damage(checkpoint, CheckpointNeeds(processes=4)) is None
    assert damage(checkpoint, CheckpointNeeds()) is None


def test_resume_points__latest_by_number_and_nothing_else(tmp_path: Path) -> None:
    assert ResumePoints.in_folder(tmp_path, FULL) == ResumePoints(None, {})
    write(tmp_path, step=9)
    write(tmp_path, step=10)
    (tmp_path / "checkpoint-last").mkdir()
    (tmp_path / "damaged-checkpoint-11").mkdir()
    assert ResumePoints.in_folder(tmp_path, FULL) == ResumePoints(tmp_path / "checkpoint-10", {})
