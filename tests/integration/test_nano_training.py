"""How the nano checkpoints are trained: batches keep picture and truth together, and every loss falls."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the scripts are no part of the package

from scripts.nano import batches, train  # noqa: E402
from scripts.nano.batches import MIDDLE, Augmentation, Window, batch_indices, compose, make_batch  # noqa: E402
from scripts.nano.export import CHECKPOINTS, export  # noqa: E402
from scripts.nano.networks import SharedNetwork, task_network_from_shared  # noqa: E402
from scripts.nano.pages import GUIDE, card, guide  # noqa: E402
from scripts.nano.pool import Pool, render_share  # noqa: E402
from scripts.nano.report import REPORT  # noqa: E402
from scripts.nano.smoke import falls  # noqa: E402
from scripts.nano.train import Stage, TrainingLog, run_stage  # noqa: E402

import sapiens2  # noqa: E402
from sapiens2.assets import keypoint_table, part_table  # noqa: E402
from sapiens2.checkpoints import load_model  # noqa: E402
from sapiens2.types import TASKS, Task  # noqa: E402


@pytest.fixture(scope="module")
def pool_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool")
    render_share(folder, 8, 60_010_000_000, 0, 1)
    return folder


@pytest.fixture(scope="module")
def pool(pool_folder: Path) -> Pool:
    return Pool(pool_folder)


def truth(pool: Pool, seed: int, augmentation: Augmentation | None) -> dict[str, torch.Tensor]:
    batch = make_batch(pool, np.arange(8), np.random.default_rng(seed), augmentation)
    return batch | compose(batch)


@pytest.mark.parametrize("seed", range(3))
def test_augmented_points__project_to_their_own_pixels(pool: Pool, seed: int) -> None:
    batch = truth(pool, seed, Augmentation())
    points, known, camera = batch["points"], batch["known"], batch["intrinsics"]
    rows, columns = torch.meshgrid(torch.arange(256.0), torch.arange(192.0), indexing="ij")
    across = camera[:, 0, 0, None, None] * points[:, 0] / points[:, 2] + camera[:, 0, 2, None, None]
    down = camera[:, 1, 1, None, None] * points[:, 1] / points[:, 2] + camera[:, 1, 2, None, None]
    assert (across - columns)[known].abs().max() < 1e-2
    assert (down - rows)[known].abs().max() < 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_augmented_normals__are_those_of_the_augmented_points(pool: Pool, seed: int) -> None:
    batch = truth(pool, seed, Augmentation())
    points, known = batch["points"], batch["known"]
    across, down = points[..., 1:-1, 2:] - points[..., 1:-1, :-2], points[..., 2:, 1:-1] - points[..., :-2, 1:-1]
    normals = F.normalize(torch.cross(down, across, dim=1), dim=1)
    inner = known[:, 1:-1, 1:-1] & known[:, 1:-1, 2:] & known[:, 1:-1, :-2] & known[:, 2:, 1:-1] & known[:, :-2, 1:-1]
    cosine = (normals * batch["normals"][..., 1:-1, 1:-1]).sum(1)[inner]
    assert cosine.median() > 0.97


def test_augmented_keypoints__stay_on_people(pool: Pool) -> None:
    batch = truth(pool, 1, Augmentation(backgrounds=0))
    hits = []
    for points, alpha in zip(batch["keypoints"], batch["matte"][:, 3], strict=True):
        seen = points[points[:, 2] > 1.5].round().long()
        hits += alpha[seen[:, 1].clamp(0, 255), seen[:, 0].clamp(0, 191)].tolist()
    assert np.mean(np.array(hits) > 0) > 0.9


@pytest.mark.parametrize("index", range(3))
def test_mirrored_window__is_the_mirrored_picture_with_sides_swapped(pool: Pool, index: int) -> None:
    row = pool.row(index)
    plain, mirrored = (Window(MIDDLE, np.ones(2), 0.0, flip, 0) for flip in (False, True))
    own, other = batches._warped(row, plain, TASKS), batches._warped(row, mirrored, TASKS)
    assert torch.equal(own["parts"].long(), torch.from_numpy(row["parts"]).long())
    swap = torch.tensor(part_table().flip_permutation)
    assert torch.equal(other["parts"].long(), swap[own["parts"].long()].flip(1))
    assert {
        name for name in own if name != "parts" and not torch.allclose(other[name], own[name].flip(-1), atol=0.02)
    } == set()

    points, mirror = batches._pose(row, plain)["keypoints"], batches._pose(row, mirrored)["keypoints"]
    expected = points[list(keypoint_table().flip_permutation)]
    seen = expected[:, 2] > 0
    assert torch.equal(mirror[:, 2], expected[:, 2])
    torch.testing.assert_close(mirror[seen, 0], 191 - expected[seen, 0], atol=1e-3, rtol=0)
    torch.testing.assert_close(mirror[seen, 1], expected[seen, 1], atol=1e-3, rtol=0)


def test_cloth__changes_the_background_alone(pool: Pool) -> None:
    still = {"person_windows": 0.0, "backgrounds": 0.0, "colours": 0.0, "quality": 0.0}
    plain = compose(make_batch(pool, np.arange(1), np.random.default_rng(2), Augmentation(**still)))
    draped = compose(make_batch(pool, np.arange(1), np.random.default_rng(2), Augmentation(**still, cloths=1.0)))
    changed = ((plain["image"] - draped["image"]).abs() > 1e-5).any(dim=1)
    assert 0.03 < changed.float().mean() < 0.99
    assert not changed[plain["matte"][:, 3] == 1].any()
    for name in plain.keys() - {"image"}:
        torch.testing.assert_close(draped[name], plain[name], rtol=0, atol=0)
    assert 0 <= draped["image"].min() <= draped["image"].max() <= 1


def test_make_batch__chance_and_maps_do_not_depend_on_the_tasks(pool: Pool) -> None:
    whole = truth(pool, 4, Augmentation())
    batch = make_batch(pool, np.arange(8), np.random.default_rng(4), Augmentation(), ["seg"])
    alone = batch | compose(batch)
    assert set(whole) - set(alone) == {"known", "covered", "normals", "depth", "points", "albedo"}
    assert all(torch.equal(alone[name], whole[name]) for name in alone)


def test_batch_indices__each_sample_once_in_an_epoch() -> None:
    indices = np.arange(100, 110)
    taken = np.concatenate([batch_indices(indices, 3, step, 4) for step in range(5)])
    assert sorted(taken[:10]) == sorted(taken[10:]) == list(indices)
    assert list(taken[:10]) != list(taken[10:])


@pytest.mark.parametrize("task", TASKS)
def test_task_network__starts_from_the_shared_one(task: str) -> None:
    torch.manual_seed(0)
    shared = SharedNetwork()
    own = task_network_from_shared(task, shared.state_dict()).network  # type: ignore[arg-type]
    assert torch.equal(own.model.norm.weight, shared.model.norm.weight)
    first = own.decode_head.upsample_layers[0].convolution.weight
    assert torch.equal(first, shared.heads[task].upsample_layers[0].convolution.weight)


def test_stages__go_on_from_the_checkpoint_of_the_package(
    pool_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "STAGES", {"seg": Stage(("seg",), 6, batch=2, warm_up=1, seed=1)})
    monkeypatch.setattr(train, "HELD_OUT", 2)
    (tmp_path / "pool").symlink_to(pool_folder)
    steps = []
    monkeypatch.setattr(TrainingLog, "add", lambda self, *_: steps.append(self.run.step))
    kept = load_model(train.CHECKPOINTS / "nano-seg", "seg", dtype=torch.float32).state_dict()
    run_stage("seg", tmp_path, compiled=False, go_on=6)  # no step is left
    same = torch.load(tmp_path / "seg" / "final.pt", weights_only=True)
    assert all(torch.equal(value, same[name]) for name, value in kept.items())
    run_stage("seg", tmp_path, compiled=False, go_on=5)
    changed = torch.load(tmp_path / "seg" / "final.pt", weights_only=True)
    assert steps == [6]
    assert not torch.equal(kept["model.norm.weight"], changed["model.norm.weight"])


class PowerCutError(Exception):
    """Somebody pulled the plug."""


def test_stages__go_on_after_a_stop_and_end_in_checkpoints_that_load(
    pool_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = {
        "shared": Stage(TASKS, 2, batch=2),
        "seg": Stage(("seg",), 3, batch=2, warm_up=1, seed=1),
        "pose": Stage(("pose",), 0, batch=2, seed=2),
    }
    monkeypatch.setattr(train, "STAGES", stages)
    monkeypatch.setattr(train, "HELD_OUT", 2)
    monkeypatch.setattr(train, "SAVE_EVERY", 1)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for work in (whole, stopped):
        work.mkdir()
        (work / "pool").symlink_to(pool_folder)
    for name in stages:
        run_stage(name, whole, compiled=False)
    (stopped / "shared").symlink_to(whole / "shared")

    add = TrainingLog.add

    def stop(self: TrainingLog, losses: list[float], norm: float, factor: float) -> None:
        add(self, losses, norm, factor)
        if self.run.step == 3:  # two steps are saved, the third is lost
            raise PowerCutError

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLog, "add", stop)
        with pytest.raises(PowerCutError):
            run_stage("seg", stopped, compiled=False)
    run_stage("seg", stopped, compiled=False)

    own = torch.load(whole / "seg" / "final.pt", weights_only=True)
    gone_on = torch.load(stopped / "seg" / "final.pt", weights_only=True)
    assert all(torch.equal(value, gone_on[name]) for name, value in own.items())
    steps = [json.loads(line)["step"] for line in (stopped / "seg" / "log.jsonl").read_text().splitlines()]
    assert steps == [1, 2, 3]

    for task in ("seg", "pose"):
        folder = export(task, whole, tmp_path)
        prediction = sapiens2.load(task, model=folder, device="cpu")(np.zeros((64, 48, 3), np.uint8))
        assert prediction is not None


class DeadProcess:
    """What ``multiprocessing.parent_process`` gives to an orphan."""

    def is_alive(self) -> bool:
        return False


def test_stage__ends_with_the_process_that_started_it(
    pool_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "STAGES", {"shared": Stage(("seg",), 1, batch=1)})
    monkeypatch.setattr(train, "HELD_OUT", 2)
    monkeypatch.setattr(train.multiprocessing, "parent_process", DeadProcess)
    (tmp_path / "pool").symlink_to(pool_folder)
    with pytest.raises(SystemExit, match="shared: stopped at step 0"):
        run_stage("shared", tmp_path, compiled=False)
    assert not (tmp_path / "shared" / "final.pt").exists()


@pytest.mark.parametrize("task", TASKS)
def test_card__is_what_the_committed_report_makes(task: Task) -> None:
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    assert (CHECKPOINTS / f"nano-{task}" / "README.md").read_text(encoding="utf-8") == card(task, report)


def test_guide__has_the_figures_of_the_committed_report() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert text == guide(text, json.loads(REPORT.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_smoke__every_loss_falls_by_half(tmp_path: Path) -> None:
    for task, (before, after) in falls(tmp_path).items():
        assert after < before / 2, task
