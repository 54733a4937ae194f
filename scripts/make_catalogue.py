"""Count the parameters of every published checkpoint and write ``assets/catalogue.json``.

Models are built on the meta device: no memory is used. FLOPs are those of the original model card.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from sapiens2.models import TASK_MODELS, Sapiens2Config, Sapiens2Model

PUBLISHED = {
    "pretrain": ("0.1b", "0.4b", "0.8b", "1b", "1b-4k", "5b"),
    "pose": ("0.4b", "0.8b", "1b", "5b"),
    "seg": ("0.4b", "0.8b", "1b", "5b"),
    "normal": ("0.4b", "0.8b", "1b", "5b"),
    "pointmap": ("0.4b", "0.8b", "1b", "5b"),
    "matting": ("1b",),
    "albedo": (),
}
TERAFLOPS = {"0.1b": 0.342, "0.4b": 1.260, "0.8b": 2.592, "1b": 4.715, "5b": 15.722}


def count(task: str, size: str) -> int:
    with torch.device("meta"):
        if task == "pretrain":
            model = Sapiens2Model(Sapiens2Config.from_size(size))
        else:
            model = TASK_MODELS[task](Sapiens2Config.from_size(size, task))
    return sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    table = {
        "parameters": {task: {size: count(task, size) for size in sizes} for task, sizes in PUBLISHED.items()},
        "teraflops": TERAFLOPS,
    }
    path = Path(__file__).resolve().parents[1] / "src" / "sapiens2" / "assets" / "catalogue.json"
    path.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
