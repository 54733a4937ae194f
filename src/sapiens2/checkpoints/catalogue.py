"""The published checkpoints: where they are, how large, under which licence, and what is cached here."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from huggingface_hub import try_to_load_from_cache

from sapiens2.assets.sizes import size_names
from sapiens2.errors import ConfigurationError
from sapiens2.types import TASKS, Task

__all__ = ["CatalogueEntry", "entries", "published_id"]

_WEIGHTS_LICENCE = "Sapiens2 License"


@dataclass(frozen=True)
class CatalogueEntry:
    """One published checkpoint.

    Attributes:
        task: The task; ``"pretrain"`` for the bare backbone.
        size: The size.
        hub_id: Repository on the hub.
        parameters: Parameters of the model.
        teraflops: Multiply-adds of the trunk for one image at its own size, in 10^12, as published; ``None`` if not.
        licence: Licence of the weights.
        cached: Whether the configuration is in the local hub cache.
    """

    task: str
    size: str
    hub_id: str
    parameters: int
    teraflops: float | None
    licence: str
    cached: bool

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON types."""
        return asdict(self)


@cache
def _table() -> dict[str, Any]:
    text = files("sapiens2.assets").joinpath("catalogue.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def published_id(task: Task | str, size: str) -> str:
    """Hub id of a published checkpoint.

    Raises:
        ConfigurationError: No such task or size, or none was published for both.
    """
    if task not in (*TASKS, "pretrain"):
        raise ConfigurationError(f"task={task!r} is not known; choose one of {', '.join((*TASKS, 'pretrain'))}")
    key = size.lower().replace("_", "-")
    if key not in size_names():
        raise ConfigurationError(f"size={size!r} is not known; choose one of {', '.join(size_names())}")
    published = list(_table()["parameters"][task])
    if key not in published:
        raise ConfigurationError(
            f"no {task} weights of size {size} were published (published: {', '.join(published) or 'none'}); "
            "give a checkpoint of your own, or make one with random weights: sapiens2 init"
        )
    return f"facebook/sapiens2-{task}-{key}"


def entries() -> list[CatalogueEntry]:
    """All published checkpoints, backbones first, smallest first."""
    table = _table()
    return [
        CatalogueEntry(
            task=task,
            size=size,
            hub_id=published_id(task, size),
            parameters=parameters,
            teraflops=table["teraflops"].get(size),
            licence=_WEIGHTS_LICENCE,
            cached=isinstance(try_to_load_from_cache(published_id(task, size), "config.json"), str),
        )
        for task, sizes in table["parameters"].items()
        for size, parameters in sizes.items()
    ]
