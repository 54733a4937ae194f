"""Which parameter learns how fast, and the optimisers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from sapiens2.errors import ConfigurationError

__all__ = ["MuonWithAdamW", "OptimizerName", "build_optimizer", "depth_of", "is_decayed", "parameter_groups"]

OptimizerName: TypeAlias = Literal["adamw", "muon"]

_LAYER = re.compile(r"(?:^|\.)model\.layer\.(\d+)\.")
_INPUT = re.compile(r"(?:^|\.)(?:embeddings|tokenizer)\.")
_POSITIONS = ("pos_embed", "position_embeddings")


def depth_of(name: str, num_layers: int) -> int:
    """How deep in a model a parameter lies.

    Args:
        name: As ``named_parameters`` has it, of a task model, of a bare trunk, or of either inside a wrapper.
        num_layers: Layers of the trunk.

    Returns:
        0 for what is in front of the layers, ``i + 1`` for layer ``i``, ``num_layers + 1`` for the last norm and heads.
    """
    if (match := _LAYER.search(name)) is not None and _INPUT.search(name) is None:
        return int(match[1]) + 1
    return 0 if _INPUT.search(name) else num_layers + 1


def is_decayed(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay applies: not to vectors, biases and tables of positions."""
    return parameter.ndim > 1 and not name.endswith(".bias") and not any(word in name for word in _POSITIONS)


def parameter_groups(
    model: nn.Module, *, lr: float, weight_decay: float, layer_decay: float = 1.0
) -> list[dict[str, Any]]:
    """Parameters that are trained, grouped by learning rate and weight decay.

    With L layers, what is in front of them learns with ``lr * layer_decay ** (L + 1)``, layer i with
    ``lr * layer_decay ** (L - i)``, the last norm and the heads with ``lr``. Class and register tokens are decayed.

    Args:
        model: A task model, a trunk, or a module that holds either (an adapter, several heads on one trunk).
        lr: Learning rate of the heads.
        weight_decay: Of all but vectors, biases and tables of positions.
        layer_decay: Factor per layer, in (0, 1].

    Returns:
        What a torch optimiser takes: ``params``, ``lr``, ``weight_decay``, and ``name``, such as ``depth3`` or
        ``depth3_undecayed``. Parameters with ``requires_grad`` off are in none.

    Raises:
        ConfigurationError: A number out of range, or a model with nothing to train.

    Source: the training of the published models.
    """
    if not lr >= 0 or not weight_decay >= 0 or not 0 < layer_decay <= 1:
        raise ConfigurationError(
            f"lr={lr}, weight_decay={weight_decay}, layer_decay={layer_decay}: expected lr and weight_decay >= 0 and "
            "layer_decay in (0, 1]"
        )
    named = list(model.named_parameters())
    depths = [int(match[1]) for name, _ in named if (match := _LAYER.search(name)) and not _INPUT.search(name)]
    num_layers = max(depths, default=-1) + 1
    groups: dict[str, dict[str, Any]] = {}
    for name, parameter in named:
        if not parameter.requires_grad:
            continue
        depth, decayed = depth_of(name, num_layers), is_decayed(name, parameter)
        key = f"depth{depth}" if decayed else f"depth{depth}_undecayed"
        group = groups.setdefault(
            key,
            {
                "params": [],
                "lr": lr * layer_decay ** (num_layers + 1 - depth),
                "weight_decay": weight_decay if decayed else 0.0,
                "name": key,
            },
        )
        group["params"].append(parameter)
    if not groups:
        raise ConfigurationError("no parameter is trained: all are frozen")
    return list(groups.values())


class MuonWithAdamW(Optimizer):
    """Muon for the matrices of the transformer layers, AdamW for everything else, as one optimiser.

    Muon's steps are scaled to the size of AdamW's, so one learning rate and weight decay serve both.

    Args:
        matrices: Groups of two-dimensional parameters, for Muon.
        others: Groups of all other parameters, for AdamW.
        betas: Of AdamW.
    """

    def __init__(
        self,
        matrices: list[dict[str, Any]],
        others: list[dict[str, Any]],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.parts: list[Optimizer] = []
        if matrices:
            self.parts.append(Muon(matrices, adjust_lr_fn="match_rms_adamw"))
        if others:
            self.parts.append(AdamW(others, betas=betas))
        super().__init__([group for part in self.parts for group in part.param_groups], {})
        self._share_groups()

    def _share_groups(self) -> None:
        """One list of the very same dicts: a scheduler that writes a learning rate here writes it there."""
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step of each."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """The state of both."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of both.

        Raises:
            ConfigurationError: The state of another optimiser.
        """
        states = state_dict.get("parts")
        if states is None or len(states) != len(self.parts):
            raise ConfigurationError("the saved optimiser is not Muon with AdamW of these parameters")
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)
        self._share_groups()


def build_optimizer(
    model: nn.Module,
    name: OptimizerName = "adamw",
    *,
    lr: float,
    weight_decay: float = 0.1,
    layer_decay: float = 1.0,
    betas: tuple[float, float] = (0.9, 0.999),
) -> Optimizer:
    """An optimiser of the parameters that are trained.

    Args:
        model: As in :func:`parameter_groups`.
        name: ``"adamw"``; or ``"muon"``, with AdamW for what is no matrix of a transformer layer.
        lr: Learning rate of the heads.
        weight_decay: As in :func:`parameter_groups`.
        layer_decay: As in :func:`parameter_groups`.
        betas: Of AdamW.

    Raises:
        ConfigurationError: No such optimiser, or as in :func:`parameter_groups`.
    """
    groups = parameter_groups(model, lr=lr, weight_decay=weight_decay, layer_decay=layer_decay)
    if name == "adamw":
        return AdamW(groups, betas=betas)
    if name != "muon":
        raise ConfigurationError(f"optimizer {name!r} is not known; choose adamw or muon")
    names = {id(parameter): key for key, parameter in model.named_parameters()}

    def is_matrix(parameter: nn.Parameter) -> bool:
        return parameter.ndim == 2 and _LAYER.search(names[id(parameter)]) is not None

    return MuonWithAdamW(
        list(_with(groups, is_matrix)), list(_with(groups, lambda item: not is_matrix(item))), betas=betas
    )


def _with(groups: Iterable[dict[str, Any]], wanted: Callable[[nn.Parameter], bool]) -> Iterable[dict[str, Any]]:
    for group in groups:
        if chosen := [parameter for parameter in group["params"] if wanted(parameter)]:
            yield {**group, "params": chosen}
