"""How the nano checkpoints are trained: batches keep picture and truth together, and every loss falls."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the scripts are no part of the package

from scripts.nano.batches import Augmentation, batch_indices, compose, make_batch  # noqa: E402
from scripts.nano.networks import SharedNetwork, task_network_from_shared  # noqa: E402
from scripts.nano.pool import Pool, render_share  # noqa: E402
from scripts.nano.smoke import falls  # noqa: E402

from sapiens2.assets import part_table  # noqa: E402
from sapiens2.types import TASKS  # noqa: E402


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    folder = tmp_path_factory.mktemp("pool")
    render_share(folder, 8, 60_010_000_000, 0, 1)
    return Pool(folder)


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


def test_mirrored_window__swaps_the_classes_of_sides(pool: Pool) -> None:
    plain = truth(pool, 0, None)
    swap = torch.tensor(part_table().flip_permutation)
    found = [truth(pool, seed, Augmentation())["turn"][:, 2] for seed in range(2)]
    assert {-1.0, 1.0} <= set(torch.cat(found).tolist())  # both ways occur
    assert torch.equal(swap[swap], torch.arange(29))
    assert int(plain["parts"].max()) < 29


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


@pytest.mark.slow
def test_smoke__every_loss_falls_by_half(tmp_path: Path) -> None:
    for task, (before, after) in falls(tmp_path).items():
        assert after < before / 2, task
