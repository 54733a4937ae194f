"""Published widths of the trunk and heads, by size and task.

Source: the original repository's model card and configurations (arXiv 2604.21681); ``nano`` is this project's own.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from sapiens2.errors import ConfigurationError
from sapiens2.types import Task

__all__ = ["head_fields", "size_names", "size_of_hidden_size", "size_table", "trunk_fields"]


@cache
def size_table() -> dict[str, Any]:
    """The whole table: ``{"sizes": {name: trunk fields}, "heads": {task: widths by size}}``."""
    text = files("sapiens2.assets").joinpath("sizes.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def size_names() -> tuple[str, ...]:
    """The sizes, smallest first."""
    return tuple(size_table()["sizes"])


def trunk_fields(size: str) -> dict[str, Any]:
    """Configuration fields of the trunk of one size.

    Raises:
        ConfigurationError: No such size.
    """
    sizes = size_table()["sizes"]
    key = size.lower().replace("_", "-")
    if key not in sizes:
        raise ConfigurationError(f"size={size!r} is not known; choose one of {', '.join(sizes)}")
    fields = dict(sizes[key])
    fields.setdefault("intermediate_size", 4 * fields["hidden_size"])
    return fields


def head_fields(task: Task, size: str) -> tuple[dict[str, Any], int]:
    """Fields of the decode head of one task and size, and the number of its output channels.

    Sizes that have no row of their own (``0.1b`` was published as a backbone only, ``matting`` only as ``1b``) get the
    widths that most sizes of the task share.

    Raises:
        ConfigurationError: No such task.
    """
    heads = size_table()["heads"]
    if task not in heads:
        raise ConfigurationError(f"task={task!r} is not known; choose one of {', '.join(heads)}")
    family = heads[task]
    widths = family.get(size.lower().replace("_", "-").removesuffix("-4k"), family["default"])
    fields: dict[str, Any] = {
        "use_pixel_shuffle": family["use_pixel_shuffle"],
        "upsample_out_channels": list(widths["upsample"]),
        "upsample_kernel_sizes": list(widths.get("kernels", [family["kernel"]] * len(widths["upsample"]))),
        "conv_out_channels": list(widths["conv"]),
        "conv_kernel_sizes": [family["conv_kernel"]] * len(widths["conv"]),
    }
    if "scale_conv" in widths:
        fields["scale_conv_out_channels"] = list(widths["scale_conv"])
        fields["scale_conv_kernel_sizes"] = [1] * len(widths["scale_conv"])
        fields["scale_final_hidden_sizes"] = list(widths["scale_final"])
    if "norm_type" in family:
        fields["norm_type"] = family["norm_type"]
    return fields, int(family["num_labels"])


def size_of_hidden_size(hidden_size: int) -> str:
    """The size whose trunk has this width; ``"0.4b"`` when none has."""
    for name, fields in size_table()["sizes"].items():
        if fields["hidden_size"] == hidden_size:
            return str(name)
    return "0.4b"
