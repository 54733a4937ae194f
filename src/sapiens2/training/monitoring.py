"""What a training says and keeps while it runs."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import nn
from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sapiens2._optional import require
from sapiens2.data import AugmentedSamples
from sapiens2.io import write_png
from sapiens2.training.averaging import WeightAverage
from sapiens2.training.interruption import StopRequest

__all__ = ["Averaging", "Evaluation", "Interruption", "Progress", "Remarks", "RunLog", "Say", "Scalars"]

Say: TypeAlias = Callable[[str], None]
"""Takes a line for people."""


class RunLog:
    """Keeps numbers in ``log.jsonl`` and, when wanted, numbers and pictures for TensorBoard.

    Args:
        folder: Of the training.
        tensorboard: Write to ``tensorboard`` in it.
        first_step: Entries of later steps are forgotten: the training goes on from there.

    Raises:
        MissingDependencyError: TensorBoard is wanted and not installed.
    """

    def __init__(self, folder: Path, *, tensorboard: bool, first_step: int = 0) -> None:
        self.path, self.pictures = folder / "log.jsonl", folder / "pictures"
        self.entries = [entry for entry in _read_lines(self.path) if entry.get("step", 0) <= first_step]
        self.path.write_text("".join(f"{json.dumps(entry)}\n" for entry in self.entries), encoding="utf-8")
        self._writer: Any = None
        if tensorboard:
            require("tensorboard", extra="train")
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_step + 1)

    def add(self, step: int, numbers: dict[str, float]) -> None:
        """Keep numbers of a step; those that are not finite are null in the file."""
        kept = {name: float(value) for name, value in numbers.items()}
        entry = {"step": step, **{name: value if math.isfinite(value) else None for name, value in kept.items()}}
        self.entries.append(entry)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if self._writer is not None:
            for name, value in kept.items():
                self._writer.add_scalar(name.replace("_", "/", 1) if name.startswith("eval_") else name, value, step)

    def add_picture(self, step: int, picture: NDArray[np.uint8], name: str = "") -> Path:
        """Keep a picture ``(H, W, 3)`` uint8 as a PNG file, and for TensorBoard."""
        self.pictures.mkdir(exist_ok=True)
        path = write_png(self.pictures / f"{name or f'step-{step:06d}'}.png", picture)
        if self._writer is not None:
            self._writer.add_image("pictures", picture, step, dataformats="HWC")
        return path

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


class Averaging(TrainerCallback):
    """Updates a moving average after each step."""

    def __init__(self, average: WeightAverage) -> None:
        self.average = average

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, *, model: nn.Module, **_: Any
    ) -> None:
        """Update."""
        self.average.update(model)


class Interruption(TrainerCallback):
    """Saves and stops after a step in which somebody asked for it."""

    def __init__(self, request: StopRequest) -> None:
        self.request = request
        self.stopped = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Look whether to stop."""
        if self.request.anywhere(args.device):
            self.stopped = control.should_save = control.should_training_stop = True


class Evaluation(TrainerCallback):
    """Measures and draws at intervals.

    Args:
        measure_every: Steps; 0 is never.
        draw_every: Steps; 0 is never.
        measure: Called with the step. All processes call it together.
        draw: Called with the step.
    """

    def __init__(
        self, measure_every: int, draw_every: int, measure: Callable[[int], Any], draw: Callable[[int], Any]
    ) -> None:
        self._due = ((measure_every, measure), (draw_every, draw))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Do what is due; the last step is measured and drawn by the report."""
        for every, action in self._due:
            if every and state.global_step % every == 0 and state.global_step < state.max_steps:
                action(state.global_step)


class Scalars(TrainerCallback):
    """Passes what Trainer logs on to a log."""

    def __init__(self, log: RunLog) -> None:
        self.log = log

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Keep losses and learning rates; the summary of the end is in the report."""
        if logs and "loss" in logs and state.is_world_process_zero:
            self.log.add(state.global_step, logs)


class Remarks(TrainerCallback):
    """Says once what a training does not stop for, and keeps it for the report.

    Args:
        samples: The training data.
        say: Takes lines for people.

    Attributes:
        notes: What was said.
    """

    def __init__(self, samples: AugmentedSamples, say: Say) -> None:
        self.samples, self.say = samples, say
        self.notes: list[str] = []
        self._said: set[str] = set()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Look at the losses, and at what became of samples."""
        terms = [value for name, value in (logs or {}).items() if name.startswith("loss_")]
        if terms and not any(terms):
            self._remark(
                "loss",
                f"the loss was exactly 0 in the steps up to {state.global_step}: nothing was learnt in them. Look "
                "whether all of their truth is ignored or masked, or give loss.weights above 0",
            )
        if self.samples.replaced:
            self._remark(
                "replaced",
                "samples that nothing can be learnt from (pictures of nobody) are replaced by others, drawn at random",
            )

    def _remark(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self.notes.append(text)
            self.say(text)


class Progress(TrainerCallback):
    """Says how far a training is and how long it will take: a bar on a terminal, lines elsewhere."""

    def __init__(self, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self.say, self._clock = say, clock
        self._bar: Any = None
        self._start, self._first_step = 0.0, 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start counting."""
        self._start, self._first_step = self._clock(), state.global_step
        if state.is_world_process_zero and sys.stderr.isatty():
            self._bar = tqdm(total=state.max_steps, initial=state.global_step, unit="step", leave=False)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(state.global_step - self._bar.n)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Say the loss and the time left."""
        if not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        if self._bar is not None:
            self._bar.set_postfix(loss=f"{logs['loss']:.4g}", lr=f"{logs['learning_rate']:.2g}")
        else:
            self.say(self.line(state, logs))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def line(self, state: TrainerState, logs: dict[str, float]) -> str:
        """Step, loss, learning rate, speed and time left."""
        done = state.global_step - self._first_step
        per_step = (self._clock() - self._start) / max(done, 1)
        left = timedelta(seconds=round(per_step * (state.max_steps - state.global_step)))
        return (
            f"step {state.global_step}/{state.max_steps}  loss {logs['loss']:.4g}  lr {logs['learning_rate']:.3g}  "
            f"{per_step:.2f} s/step  {left} left"
        )


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Entries of a log; a last line that was not written to its end is left out."""
    found: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found
