"""How the learning rate changes over a training."""

from __future__ import annotations

import math
from functools import partial

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from sapiens2.training.recipe import ScheduleSection

__all__ = ["learning_rate_factor", "learning_rate_schedule"]


def learning_rate_factor(step: int, *, schedule: ScheduleSection, steps: int) -> float:
    """Share of the largest learning rate that a step is made with.

    Args:
        step: Steps that were made before.
        schedule: The rule.
        steps: Steps of the whole training.

    Returns:
        From ``warmup_start`` to 1 over the warm-up, which is cut to the training; then to ``end`` after the last step.
    """
    warmup = min(schedule.warmup_steps, steps)
    if step < warmup:
        return schedule.warmup_start + (1 - schedule.warmup_start) * step / warmup
    left = 1 - min((step - warmup) / max(steps - warmup, 1), 1.0)
    shape = {
        "linear": left,
        "polynomial": left**schedule.power,
        "cosine": (1 - math.cos(math.pi * left)) / 2,
        "constant": 1.0,
    }[schedule.kind]
    return schedule.end + (1 - schedule.end) * shape


def learning_rate_schedule(optimizer: Optimizer, schedule: ScheduleSection, steps: int) -> LambdaLR:
    """The scheduler that multiplies every group's own learning rate by :func:`learning_rate_factor`."""
    return LambdaLR(optimizer, partial(learning_rate_factor, schedule=schedule, steps=steps))
