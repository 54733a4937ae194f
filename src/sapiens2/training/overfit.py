"""An early check: a model that cannot learn one batch by heart will not learn anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from sapiens2.training.objectives import Objective
from sapiens2.training.optimisers import build_optimizer
from sapiens2.training.recipe import OverfitSection, Recipe
from sapiens2.training.training_data import INDEX, Batch

__all__ = ["OverfitReport", "overfit_one_batch"]


@dataclass(frozen=True)
class OverfitReport:
    """How the loss of one batch fell.

    Attributes:
        losses: Before each step.
        section: What was asked for.
    """

    losses: tuple[float, ...]
    section: OverfitSection

    @property
    def ratio(self) -> float:
        """The last loss as a share of the first; NaN when one is not finite."""
        first, last = self.losses[0], self.losses[-1]
        return last / first if first > 0 else float("nan")

    @property
    def passed(self) -> bool:
        """Whether the loss fell as far as it should, or was 0 from the beginning."""
        return self.losses[0] == 0 or self.ratio <= self.section.factor

    def __str__(self) -> str:
        fell = f"the loss of one batch went from {self.losses[0]:.4g} to {self.losses[-1]:.4g}"
        steps = f"in {len(self.losses) - 1} steps"
        if self.passed:
            return f"overfit check passed: {fell} {steps}"
        return (
            f"overfit check failed: {fell} {steps}, and at most {self.section.factor:g} of the first was expected. "
            "Look at the labels first; then try another optimizer.lr, a weaker freeze, or more overfit.steps"
        )


def overfit_one_batch(
    model: nn.Module, batch: Batch, objective: Objective, recipe: Recipe, section: OverfitSection
) -> OverfitReport:
    """Train on one batch alone, and give the model its weights back.

    The recipe's optimiser is used at its largest learning rate, without a schedule.

    Args:
        model: On the device to use; its mode, weights and torch's random state are the same afterwards.
        batch: What :func:`sapiens2.training.training_data.collate` gives.
        objective: The loss.
        recipe: For the optimiser and the precision.
        section: How long, and how far the loss has to fall.
    """
    device = next(model.parameters()).device
    tensors = {name: tensor.to(device) for name, tensor in batch.items() if name != INDEX}
    pixels = tensors.pop("pixel_values")
    with _lent(model, device):
        settings = recipe.optimizer
        optimizer = build_optimizer(
            model,
            settings.name,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            layer_decay=settings.layer_decay,
            betas=settings.betas,
        )
        losses: list[float] = []
        for step in range(section.steps + 1):
            with torch.autocast(device.type, torch.bfloat16, enabled=recipe.training.precision == "bf16"):
                outputs = model(pixel_values=pixels)
            loss = objective(outputs, tensors).total
            losses.append(loss.item())
            if step == section.steps or not torch.isfinite(loss):
                break
            optimizer.zero_grad()
            loss.backward()
            if settings.clip:
                nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
    return OverfitReport(tuple(losses), section)


@contextmanager
def _lent(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Training mode for a while; weights and random numbers then go on from where they were."""
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    weights = {name: parameter.detach().cpu().clone() for name, parameter in trained.items()}
    was_training = model.training
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        model.train()
        try:
            yield
        finally:
            model.train(was_training)
            model.zero_grad(set_to_none=True)
            with torch.no_grad():
                for name, parameter in trained.items():
                    parameter.copy_(weights[name])
