"""Two minutes that show that everything of the training works: every loss falls by half on eight pictures.

``python -m scripts.nano.smoke`` exits with 1 when one does not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from scripts.nano.batches import MEAN, STD, compose, make_batch
from scripts.nano.networks import TASK_WEIGHTS, SharedNetwork, task_loss
from scripts.nano.pool import Pool, render_share

from sapiens2.types import TASKS, Task

__all__ = ["falls"]

PICTURES = 8
STEPS = 70


def falls(folder: Path, *, steps: int = STEPS) -> Mapping[Task, tuple[float, float]]:
    """Train all tasks on one batch; the loss of each before and after.

    Args:
        folder: Where the pictures are kept.
        steps: Steps of the training.
    """
    render_share(folder, PICTURES, 60_010_000_000, 0, 1)
    batch = make_batch(Pool(folder), np.arange(PICTURES), np.random.default_rng(0), None)
    batch.update(compose(batch))
    inputs = (batch["image"] - MEAN) / STD
    torch.manual_seed(0)
    network = SharedNetwork()
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, betas=(0.9, 0.98))
    first: dict[Task, float] = {}
    for step in range(steps + 1):
        outputs = network(inputs)
        losses = {task: task_loss(task, outputs, batch) for task in TASKS}
        if step == 0:
            first = {task: float(loss.detach()) for task, loss in losses.items()}
        optimizer.param_groups[0]["lr"] = 2e-3 * min(1.0, (step + 1) / 10)
        optimizer.zero_grad()
        torch.stack([TASK_WEIGHTS[task] * loss for task, loss in losses.items()]).sum().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimizer.step()
    return {task: (first[task], float(losses[task].detach())) for task in TASKS}


def main() -> int:
    """Print the table, and say whether all is well."""
    with tempfile.TemporaryDirectory() as folder:
        results = falls(Path(folder))
    for task, (before, after) in results.items():
        print(f"{task:10} {before:7.4f} -> {after:7.4f}{'' if after < before / 2 else '   HAS NOT FALLEN BY HALF'}")
    return int(any(after >= before / 2 for before, after in results.values()))


if __name__ == "__main__":
    sys.exit(main())
