"""From what the stages left to the checkpoints of the package: ``python -m scripts.nano.export --work FOLDER``."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from scripts.nano.batches import HEATMAP_SIGMA
from scripts.nano.networks import TaskNetwork

from sapiens2.checkpoints import default_processor
from sapiens2.types import TASKS, Task

__all__ = ["CHECKPOINTS", "export"]

CHECKPOINTS = Path(__file__).parents[2] / "src/sapiens2/assets/checkpoints"


def export(task: Task, work: Path, destination: Path) -> Path:
    """Write a task's averaged weights as a checkpoint in float16. A card that is there stays.

    Raises:
        FloatingPointError: A weight does not fit into float16.
    """
    network = TaskNetwork(task)
    network.network.load_state_dict(torch.load(work / task / "final.pt", weights_only=True))
    model = network.network.half().eval()
    for name, value in model.state_dict().items():
        if not bool(torch.isfinite(value).all()):
            raise FloatingPointError(f"{task}: {name} does not fit into float16")
    model.config._attn_implementation = "sdpa"
    folder = destination / f"nano-{task}"
    card = folder / "README.md"
    kept = card.read_bytes() if card.exists() else None
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    processor = default_processor(model.config, task)
    if task == "pose":
        processor.keypoint_heatmap_sigma = HEATMAP_SIGMA
    processor.save_pretrained(folder)
    if kept is not None:
        card.write_bytes(kept)
    return folder


def main() -> None:
    """Export all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of what the stages left")
    parser.add_argument("--destination", type=Path, default=CHECKPOINTS)
    arguments = parser.parse_args()
    for task in TASKS:
        print(export(task, arguments.work, arguments.destination))


if __name__ == "__main__":
    main()
