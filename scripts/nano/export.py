"""From what the stages left to the checkpoints of the package, with their cards.

``python -m scripts.nano.export --work FOLDER`` writes the weights; once ``sapiens2 eval`` has measured them,
``--report FOLDER/report.json`` writes the figures into the cards.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from scripts.nano.batches import HEATMAP_SIGMA
from scripts.nano.networks import TaskNetwork
from scripts.nano.train import PROCESSES, STAGES

from sapiens2.checkpoints import default_processor
from sapiens2.services.evaluation.figures import HEADLINES
from sapiens2.types import TASKS, Task

__all__ = ["export", "write_card"]

CHECKPOINTS = Path(__file__).parents[2] / "src/sapiens2/assets/checkpoints"
TEMPLATE = Path(__file__).parent / "card.md"
LIMITS: dict[Task, str] = {
    "pose": (
        "It expects one person, about as large as the box or the picture. In full figures, fingers and points of the "
        "face lie within a pixel of its heatmaps, so they are rough there."
    ),
    "seg": "Lips, teeth, tongue and glasses are seldom found; left and right are confused in unusual poses.",
    "normal": "Folds and faces come out smooth.",
    "pointmap": (
        "It learnt shape. The distance in metres is a guess from how large people appear, since the norms of its head "
        "hide absolute values: mind the scale error above."
    ),
    "matting": (
        "Hair comes out as soft regions, not as strands, and the colours of the foreground as greys: take those of the "
        "picture. Things that stand out from the background are taken for people, also where nobody is."
    ),
    "albedo": "Bright light and bright surfaces cannot be told apart: it takes likely colours.",
}
LEARNT: dict[Task, str] = {
    "pose": "308 keypoints of one person in a crop",
    "seg": "29 body-part classes",
    "normal": "surface normals of people",
    "pointmap": "a pointmap of people",
    "matting": "alpha and premultiplied foreground of people",
    "albedo": "albedo of people",
}


def export(task: Task, work: Path, destination: Path) -> Path:
    """Write a task's averaged weights as a checkpoint in float16.

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
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    processor = default_processor(model.config, task)
    if task == "pose":
        processor.keypoint_heatmap_sigma = HEATMAP_SIGMA
    processor.save_pretrained(folder)
    return folder


def write_card(task: Task, report: dict[str, Any], destination: Path) -> None:
    """Write the model card of a checkpoint from the figures of ``sapiens2 eval``."""
    stage, shared = STAGES[task], STAGES["shared"]
    own = report["tasks"][task]
    rows = [
        f"| {label} | {_number(own['figures'][name])} | {_number(own['baselines'].get(name))} |"
        for name, label in HEADLINES[task]
        if name in own["figures"]
    ]
    text = TEMPLATE.read_text(encoding="utf-8").format(
        task=task,
        learnt=LEARNT[task],
        shared_pictures=f"{shared.steps * shared.batch * PROCESSES:,}",
        own_pictures=f"{stage.steps * stage.batch * PROCESSES:,}",
        samples=report["samples"],
        data=report["data"],
        baseline=own["baseline"],
        figures="\n".join(rows),
        limits=LIMITS[task],
    )
    (destination / f"nano-{task}" / "README.md").write_text(text, encoding="utf-8")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def main() -> None:
    """Export every stage that is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--destination", type=Path, default=CHECKPOINTS)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    for task in TASKS:
        if arguments.report is None and (arguments.work / task / "final.pt").exists():
            print(export(task, arguments.work, arguments.destination))
        elif arguments.report is not None:
            write_card(task, json.loads(arguments.report.read_text(encoding="utf-8")), arguments.destination)


if __name__ == "__main__":
    main()
