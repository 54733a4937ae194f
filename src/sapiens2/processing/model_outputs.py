"""Access to the fields of a model's output, whatever object carries them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from sapiens2.errors import InputError
from sapiens2.processing.array_formats import as_tensor

__all__ = ["output_maps", "output_tensor"]


def output_tensor(outputs: Any, name: str) -> torch.Tensor | None:
    """Read one field of a model's output.

    Args:
        outputs: Object with an attribute ``name``, or a mapping with such a key. Arrays become tensors.
        name: Name of the field, for example ``"logits"``.

    Returns:
        The tensor on its device, without its autograd graph; ``None`` if the field is absent or ``None``.

    Raises:
        InputError: The field does not hold real numbers.
    """
    value = outputs.get(name) if isinstance(outputs, Mapping) else getattr(outputs, name, None)
    if value is None:
        return None
    if not isinstance(value, torch.Tensor):
        try:
            value = np.asarray(value)
        except (RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"outputs.{name} is no regular array of numbers: {error}.") from error
    return as_tensor(value, f"outputs.{name}")


def output_maps(outputs: Any, name: str, channels: int | None = None) -> torch.Tensor:
    """Read a field that has to be there and holds one map per image.

    Args:
        outputs: As for :func:`output_tensor`.
        name: Name of the field.
        channels: Channels that the maps have to have; ``None`` accepts any number.

    Returns:
        ``(B, C, H, W)``.

    Raises:
        InputError: The field is missing or has another shape.
    """
    maps = output_tensor(outputs, name)
    if maps is None:
        raise InputError(
            f"outputs ({type(outputs).__name__}) has no {name}; pass the output of the model for this task."
        )
    if maps.ndim != 4 or (channels is not None and maps.shape[1] != channels):
        expected = f"(batch, {channels or 'channels'}, height, width)"
        raise InputError(f"outputs.{name} has shape {tuple(maps.shape)}; expected {expected}.")
    return maps
