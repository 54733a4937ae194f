"""Sizes as users give them: pairs, arrays, tensors on any device, or the images themselves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias, Union

import numpy as np
import torch

from sapiens2.errors import InputError
from sapiens2.processing.array_formats import as_tensor
from sapiens2.processing.image_input import image_size_hw, is_image
from sapiens2.types import ImageLike, SizeHW

__all__ = ["SizesLike", "as_sizes", "warn_of_transposed_sizes"]

SizesLike: TypeAlias = Union["np.ndarray[Any, Any]", torch.Tensor, ImageLike, Sequence[Any]]
"""One ``(height, width)`` per image: a list, an array or a tensor ``(B, 2)``, or the images in place of the sizes."""


def as_sizes(sizes: SizesLike | None, count: int, name: str) -> list[SizeHW] | None:
    """Bring one size per image to a list of integer pairs.

    Args:
        sizes: ``(height, width)`` per image as a list, an array or a tensor ``(count, 2)``. An image (PIL image, array
            with its pixels, path) can stand in place of a pair: its displayed size counts. One image alone or one
            pair alone does for a batch of one.
        count: Images in the batch.
        name: Name of the argument, for messages.

    Returns:
        ``count`` pairs ``(height, width)``, or ``None`` if ``sizes`` is ``None``.

    Raises:
        InputError: The number of sizes differs from ``count``, or one is not a pair of positive whole numbers.
    """
    if sizes is None:
        return None
    entries = _entries(sizes, name)
    if len(entries) != count:
        raise InputError(f"{name} has {len(entries)} sizes for a batch of {count}; give one (height, width) per image.")
    return [_as_size(entry, f"{name}[{index}]") for index, entry in enumerate(entries)]


def warn_of_transposed_sizes(source_sizes: Sequence[SizeHW], target_sizes: Sequence[SizeHW]) -> None:
    """Warn where a target is its source with height and width exchanged, as from PIL's ``image.size``.

    Args:
        source_sizes: ``(height, width)`` of each image.
        target_sizes: ``(height, width)`` that is asked for each.
    """
    for index, ((height, width), target) in enumerate(zip(source_sizes, target_sizes, strict=True)):
        if height != width and target == (width, height):
            warnings.warn(
                f"target_sizes[{index}] = {target} is source_sizes[{index}] = {(height, width)} transposed. Sizes are "
                "(height, width); PIL's image.size is (width, height). Pass the image itself to be safe.",
                UserWarning,
                stacklevel=4,
            )


def _entries(sizes: SizesLike, name: str) -> list[Any]:
    if isinstance(sizes, torch.Tensor):
        sizes = as_tensor(sizes, name)
    if isinstance(sizes, torch.Tensor | np.ndarray):
        if sizes.ndim == 2 and sizes.shape[1] == 2:
            return list(sizes.tolist())
        if sizes.ndim == 1 and sizes.shape[0] == 2:
            return [sizes.tolist()]
        if sizes.ndim == 4:
            return list(sizes)
        if sizes.ndim == 3:
            return [sizes]
        if sizes.ndim and sizes.shape[0] == 0:
            return []
        raise InputError(
            f"{name} has shape {tuple(sizes.shape)}; expected (batch, 2) with (height, width) in each row."
        )
    if is_image(sizes):
        return [sizes]
    if not isinstance(sizes, Sequence):
        raise InputError(f"{name} is a {type(sizes).__name__}; expected one (height, width) per image.")
    bare_pair = len(sizes) == 2 and all(isinstance(entry, int | float | np.number) for entry in sizes)
    return [sizes] if bare_pair else list(sizes)


def _as_size(entry: Any, name: str) -> SizeHW:
    if isinstance(entry, torch.Tensor | np.ndarray) and entry.ndim == 1:
        entry = entry.tolist()
    if is_image(entry):
        return image_size_hw(entry)
    values = [value.item() if isinstance(value, torch.Tensor) else value for value in entry] if _is_pair(entry) else []
    numbers = [value for value in values if _is_length(value)]
    if len(numbers) != 2 or any(int(value) != value for value in numbers):
        raise InputError(f"{name} is {entry!r}; expected (height, width) as positive whole numbers.")
    return int(numbers[0]), int(numbers[1])


def _is_length(value: Any) -> bool:
    is_real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_real and math.isfinite(value) and value >= 1


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, Sequence) and len(entry) == 2
