"""A moving average of a model's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sapiens2.errors import CheckpointError

__all__ = ["FILE_NAME", "WeightAverage"]

FILE_NAME = "average.safetensors"
_UPDATES = "updates"


class WeightAverage:
    """An exponential moving average of the weights that are trained, in float32.

    After n updates the decay is ``min(decay, (1 + n) / (10 + n))``, so that the random start is soon forgotten.

    Args:
        model: Its trained parameters are followed, from their present values on.
        decay: Share of the average that stays with each update.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.shadow = {name: parameter.detach().float().clone() for name, parameter in _trained(model)}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move towards the weights of the model."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        for name, parameter in _trained(model):
            self.shadow[name].lerp_(parameter.detach().float(), 1 - decay)

    @torch.no_grad()
    def copy_to(self, model: nn.Module) -> None:
        """Give the model the average."""
        for name, parameter in _trained(model):
            parameter.copy_(self.shadow[name])

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Lend the model the average; afterwards it has its own weights again, to the last bit."""
        own = {name: parameter.detach().clone() for name, parameter in _trained(model)}
        self.copy_to(model)
        try:
            yield
        finally:
            with torch.no_grad():
                for name, parameter in _trained(model):
                    parameter.copy_(own[name])

    def save(self, folder: Path) -> None:
        """Write ``average.safetensors`` into a folder."""
        state: dict[str, Tensor] = {name: tensor.contiguous() for name, tensor in self.shadow.items()}
        save_file(state, folder / FILE_NAME, metadata={_UPDATES: str(self.updates)})

    def load(self, folder: Path) -> None:
        """Go on where :meth:`save` left off.

        Raises:
            CheckpointError: The file is missing, damaged, or of other weights.
        """
        from safetensors import safe_open

        path = folder / FILE_NAME
        try:
            state = load_file(path)
            with safe_open(path, "pt") as file:
                self.updates = int((file.metadata() or {})[_UPDATES])
        except (OSError, SafetensorError, KeyError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}), and the recipe keeps an average") from error
        if state.keys() != self.shadow.keys():
            differing = sorted(state.keys() ^ self.shadow.keys())
            raise CheckpointError(f"{path} is the average of other weights; they differ in {', '.join(differing[:5])}")
        self.shadow = {name: tensor.to(self.shadow[name].device) for name, tensor in state.items()}


def _trained(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)
