"""Stages of the training: ``python -m scripts.nano.train STAGE --work FOLDER``; a stage that was stopped goes on.

``--go-on STEP`` takes a task's stage up at a step from the checkpoint of the package, for when the folder is gone: the
weights are those of float16, and the optimisers start anew.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from scripts.nano.batches import MEAN, STD, Augmentation, batch_indices, compose, make_batch, worsen
from scripts.nano.export import CHECKPOINTS
from scripts.nano.measure import measure
from scripts.nano.networks import TASK_WEIGHTS, SharedNetwork, TaskNetwork, task_loss, task_network_from_shared
from scripts.nano.pool import Pool, render_share
from torch import Tensor, nn

from sapiens2.checkpoints import load_model
from sapiens2.types import TASKS, Task

__all__ = ["PROCESSES", "STAGES", "Stage", "run_stage"]

POOL_COUNT = 13_328
POOL_SEED = 70_010_000_000
HELD_OUT = 256
"""Samples at the end of the pool that are never trained on."""

PREDICTOR_HASTE = 5
"""Factor of the learning rate of the predictors: they start small, and behind norms only they can make large logits."""

PROCESSES = 2
"""Processes that a stage is trained with; the figures in the cards belong to this number."""

LOG_EVERY = 20
SAVE_EVERY = 100
LABELS = ("inside", "parts", "keypoints", "intrinsics", "scales")


@dataclass(frozen=True)
class Stage:
    """How a stage is trained.

    Attributes:
        tasks: What is learnt; several share a trunk.
        steps: Steps of both processes together.
        batch: Pictures of a process in a step.
        matrix_lr: Learning rate of Muon, for the matrices of the trunk.
        lr: Learning rate of AdamW, for everything else.
        warm_up: Steps until the full rate.
        decay: Share of the steps, at the end, over which the rate falls to zero.
        augmentation: How pictures are changed.
        empty: Pictures of a batch, at least, that show nobody.
        seed: Seed of weights, order and chance.
    """

    tasks: tuple[Task, ...]
    steps: int
    batch: int = 24
    matrix_lr: float = 5e-3
    lr: float = 2e-3
    warm_up: int = 100
    decay: float = 0.6
    augmentation: Augmentation = field(default_factory=Augmentation)
    empty: int = 0
    seed: int = 0


def _task_stage(task: Task, steps: int, empty: int = 0, **augmentation: float) -> Stage:
    return Stage(
        (task,),
        steps,
        empty=empty,
        matrix_lr=2e-3,
        lr=2e-3,
        warm_up=30,
        decay=0.9,
        augmentation=Augmentation(**augmentation),
        seed=1 + TASKS.index(task),
    )


SHARED = "shared"
STAGES: dict[str, Stage] = {
    SHARED: Stage(TASKS, 1500),
    "seg": _task_stage("seg", 5600, 1, stretch=1.25, person_windows=0.4, cloths=0.25),
    "matting": _task_stage("matting", 2300, 6, stretch=1.25, person_windows=0.4, cloths=0.4),
    "normal": _task_stage("normal", 450, person_windows=0.4),
    "albedo": _task_stage("albedo", 470, person_windows=0.4, colours=0.25),  # how bright light is can only be learnt
    "pointmap": _task_stage("pointmap", 0, person_windows=0.4),
    "pose": _task_stage("pose", 0, person_windows=0.95),
}


class Run:
    """A stage in one of the processes: network, average of its weights, optimisers, step."""

    def __init__(self, name: str, work: Path, rank: int, go_on: int = 0) -> None:
        self.name, self.stage, self.rank = name, STAGES[name], rank
        self.folder = work / name
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(self.stage.seed)
        self.step = self.first = go_on
        self.network = self._network(work)
        self.average = {key: value.clone() for key, value in self.network.state_dict().items()}
        matrices = [
            parameter for key, parameter in self.network.named_parameters() if parameter.ndim == 2 and ".layer." in key
        ]
        predictors = [
            parameter for key, parameter in self.network.named_parameters() if key.endswith("predictor.weight")
        ]
        chosen = {id(parameter) for parameter in [*matrices, *predictors]}
        rest = [parameter for parameter in self.network.parameters() if id(parameter) not in chosen]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=self.stage.matrix_lr, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(
                [
                    {"params": [parameter for parameter in rest if parameter.ndim > 1], "weight_decay": 0.02},
                    {"params": [parameter for parameter in rest if parameter.ndim <= 1], "weight_decay": 0.0},
                    {"params": predictors, "weight_decay": 0.0, "lr": PREDICTOR_HASTE * self.stage.lr},
                ],
                lr=self.stage.lr,
                betas=(0.9, 0.98),
            ),
        ]
        self.rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers]
        self._resume()

    def _network(self, work: Path) -> SharedNetwork | TaskNetwork:
        if self.name == SHARED:
            return SharedNetwork()
        if self.first:
            network = TaskNetwork(self.stage.tasks[0])
            kept = load_model(CHECKPOINTS / f"nano-{self.stage.tasks[0]}", self.stage.tasks[0], dtype=torch.float32)
            network.network.load_state_dict(kept.state_dict())
            return network
        shared = torch.load(work / SHARED / "final.pt", weights_only=True)
        return task_network_from_shared(self.stage.tasks[0], shared)

    @property
    def _state_path(self) -> Path:
        return self.folder / "state.pt"

    def _resume(self) -> None:
        if not self._state_path.exists():
            return
        state = torch.load(self._state_path, weights_only=True)
        self.network.load_state_dict(state["network"])
        self.average = state["average"]
        for optimizer, own in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(own)
        self.step = state["step"]

    def save(self) -> None:
        """Write everything that going on needs, whole or not at all."""
        state = {
            "network": self.network.state_dict(),
            "average": self.average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
        }
        torch.save(state, self._state_path.with_suffix(".new"))
        self._state_path.with_suffix(".new").replace(self._state_path)

    def finish(self) -> None:
        """Keep the averaged weights as the stage's result."""
        prefix = "" if self.name == SHARED else "network."
        torch.save({key.removeprefix(prefix): value for key, value in self.average.items()}, self.folder / "final.pt")
        self._state_path.unlink(missing_ok=True)

    def set_rates(self) -> float:
        """Warm-up, full rate, linear fall to zero."""
        stage = self.stage
        left = (stage.steps - self.step) / max(stage.steps * stage.decay, 1)
        factor = min(1.0, (self.step - self.first + 1) / stage.warm_up, left)
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
        return factor

    def update(self) -> float:
        """Average the gradients of the processes, clip them, and step. Returns the norm."""
        parameters = [parameter for parameter in self.network.parameters() if parameter.grad is not None]
        flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
        if dist.is_initialized():
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
        norm = float(flat.norm())
        if not np.isfinite(norm):
            raise FloatingPointError(f"{self.name}: gradient is not finite at step {self.step}")
        flat *= min(1.0, 2.0 / (norm + 1e-6))
        for parameter, gradient in zip(
            parameters, flat.split([parameter.numel() for parameter in parameters]), strict=True
        ):
            parameter.grad.copy_(gradient.view_as(parameter))
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        keep = min(0.997, (self.step + 1) / (self.step + 10))  # a stage that goes on starts from an average
        for key, value in self.network.state_dict().items():
            self.average[key].lerp_(value, 1 - keep)
        return norm


def run_stage(
    name: str, work: Path, rank: int = 0, processes: int = 1, *, compiled: bool = True, go_on: int = 0
) -> None:
    """Train a stage to its end, in this process; ``go_on`` is the step that the package's checkpoint stands for."""
    stage = STAGES[name]
    pool = Pool(work / "pool")
    indices = pool.finished()
    training, held_out = indices[:-HELD_OUT], indices[-HELD_OUT:]
    nobody = training[pool.arrays["count"][training] == 0]
    run = Run(name, work, rank, go_on)
    loss_step, compose_step = _steps(run.network, stage, compiled)
    log = TrainingLog(run, processes)
    parent = multiprocessing.parent_process()
    while run.step < stage.steps:
        if parent is not None and not parent.is_alive():
            raise SystemExit(f"{name}: stopped at step {run.step}, since the process that started this one is gone")
        rng = np.random.default_rng([stage.seed, run.step, rank])
        chosen = batch_indices(training, stage.seed, run.step * processes + rank, stage.batch)
        chosen[: stage.empty] = rng.choice(nobody, stage.empty)
        batch = make_batch(pool, chosen, rng, stage.augmentation, stage.tasks)
        factor = run.set_rates()
        with torch.no_grad():
            truth = compose_step(batch)
        images = worsen(truth.pop("image"), rng, stage.augmentation.quality)
        terms = loss_step((images - MEAN) / STD, {**{key: batch[key] for key in LABELS}, **truth})
        weights = torch.tensor([TASK_WEIGHTS[task] if len(stage.tasks) > 1 else 1.0 for task in stage.tasks])
        (terms * weights).sum().backward()
        norm = run.update()
        run.step += 1
        log.add(terms.detach().tolist(), norm, factor)
        if run.step % SAVE_EVERY == 0 or run.step == stage.steps:
            if rank == 0:
                run.save()
                log.write(held_out=measure(run.network, run.average, stage.tasks, pool, held_out))
            if dist.is_initialized():
                dist.barrier()
    if rank == 0:
        run.finish()


class TrainingLog:
    """Lines of JSON about a stage, written by the first process.

    Args:
        run: The stage.
        processes: How many share its batches.
    """

    def __init__(self, run: Run, processes: int) -> None:
        self.run, self.processes = run, processes
        self.start, self.first = time.monotonic(), run.step
        self.sums: list[list[float]] = []

    def add(self, losses: list[float], norm: float, factor: float) -> None:
        """Take in a step; every :data:`LOG_EVERY` steps write the means, the speed and the minutes left."""
        self.sums.append([*losses, norm])
        stage, step = self.run.stage, self.run.step
        if step % LOG_EVERY:
            return
        *means, mean_norm = (round(float(value), 4) for value in np.mean(self.sums, axis=0))
        self.sums = []
        per_step = (time.monotonic() - self.start) / (step - self.first)
        self.write(
            losses=dict(zip(stage.tasks, means, strict=True)),
            gradient_norm=mean_norm,
            rate=round(factor, 4),
            images_per_s=round(stage.batch * self.processes / per_step, 1),
            minutes_left=round((stage.steps - step) * per_step / 60, 1),
        )

    def write(self, **entry: Any) -> None:
        """Write a line."""
        if self.run.rank == 0:
            with (self.run.folder / "log.jsonl").open("a", encoding="utf-8") as file:
                print(json.dumps({"stage": self.run.name, "step": self.run.step, **entry}), file=file)


def _steps(network: nn.Module, stage: Stage, compiled: bool) -> tuple[Any, Any]:
    def losses(pixel_values: Tensor, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            outputs = network(pixel_values)
        return torch.stack([task_loss(task, outputs, batch) for task in stage.tasks])

    return (torch.compile(losses), torch.compile(compose)) if compiled else (losses, compose)


def _process(rank: int, name: str, work: Path, processes: int, go_on: int) -> None:
    torch.set_num_threads(1)
    if processes > 1:
        meeting = (work / f"{name}.rendezvous").resolve().as_uri()
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
    run_stage(name, work, rank, processes, go_on=go_on)
    if processes > 1:
        dist.destroy_process_group()


def _render(share: int, work: Path, processes: int) -> None:
    torch.set_num_threads(1)
    render_share(work / "pool", POOL_COUNT, POOL_SEED, share, processes)


def main() -> None:
    """Run stages one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="+", choices=["pool", *STAGES, "all"])
    parser.add_argument("--work", type=Path, required=True, help="folder of the pool and of what the stages leave")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--go-on", type=int, default=0, metavar="STEP", help="from the package's checkpoint, at STEP")
    arguments = parser.parse_args()
    if arguments.go_on and (len(arguments.stages) != 1 or arguments.stages[0] not in TASKS):
        parser.error(f"--go-on is for the stage of one task, not for {' '.join(arguments.stages)}")
    names = ["pool", *STAGES] if "all" in arguments.stages else arguments.stages
    for name in names:
        if (arguments.work / name / "final.pt").exists():
            continue
        if name == "pool":
            Pool(arguments.work / "pool", POOL_COUNT)  # made once, before several processes open it
            torch.multiprocessing.spawn(_render, (arguments.work, arguments.processes), arguments.processes)
            continue
        (arguments.work / f"{name}.rendezvous").unlink(missing_ok=True)
        torch.multiprocessing.spawn(
            _process, (name, arguments.work, arguments.processes, arguments.go_on), arguments.processes
        )


if __name__ == "__main__":
    main()
