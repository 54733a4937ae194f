"""Backgrounds to composite over: images, colours, or one of them per image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, Union

import numpy as np
import torch
from PIL import ImageColor

from sapiens2.errors import InputError
from sapiens2.processing.array_formats import as_tensor
from sapiens2.processing.image_input import is_image, load_image
from sapiens2.types import ImageLike

__all__ = ["BackgroundsLike", "load_backgrounds"]

BackgroundsLike: TypeAlias = Union[ImageLike, "np.ndarray[Any, Any]", Sequence[Any]]
"""An image, a colour (``(r, g, b)``, ``"#rrggbb"``, a CSS name, tensor ``(3,)`` or ``(3, 1, 1)``), or a list."""

_COLOUR_PREFIXES = ("#", "rgb(", "hsl(", "hsv(")


def load_backgrounds(backgrounds: BackgroundsLike | None, count: int) -> list[torch.Tensor] | list[None]:
    """Bring backgrounds to one float image for each of ``count`` images.

    Numbers of a colour are read as the values of an image are: floats within 0..1 are intensities, others are 0..255.

    Args:
        backgrounds: One background for all, or a list with one for each image; ``None`` for none.
        count: Images in the batch.

    Returns:
        ``count`` tensors ``(3, h, w)``, float32 in 0..1, a colour with ``h = w = 1``; or ``count`` times ``None``.

    Raises:
        InputError: A background is no image or colour, or their number differs from ``count``.
    """
    if backgrounds is None:
        return [None] * count
    entries = _entries(backgrounds)
    if len(entries) not in {1, count}:
        raise InputError(
            f"backgrounds has {len(entries)} entries for a batch of {count}; give one for all, or one for each image."
        )
    loaded = [_load_background(entry) for entry in entries]
    return loaded * count if len(loaded) == 1 else loaded


def _entries(backgrounds: BackgroundsLike) -> list[Any]:
    if isinstance(backgrounds, torch.Tensor | np.ndarray):
        return list(backgrounds) if backgrounds.ndim == 4 else [backgrounds]
    is_list = isinstance(backgrounds, list | tuple) and not _is_colour(backgrounds)
    return list(backgrounds) if is_list else [backgrounds]  # type: ignore[arg-type]


def _is_colour(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith(_COLOUR_PREFIXES) or value.lower() in ImageColor.colormap
    if isinstance(value, torch.Tensor | np.ndarray):
        return value.ndim == 1
    return len(value) in {3, 4} and all(isinstance(number, int | float | np.number) for number in value)


def _load_background(value: Any) -> torch.Tensor:
    if not is_image(value) and not isinstance(value, list | tuple):
        raise InputError(f"A background is a {type(value).__name__}; expected an image or a colour.")
    if isinstance(value, str | torch.Tensor | np.ndarray | list | tuple) and _is_colour(value):
        return _load_colour(value)
    return load_image(value).to(torch.float32) / 255.0


def _load_colour(value: Any) -> torch.Tensor:
    if isinstance(value, str):
        try:
            value = ImageColor.getrgb(value)
        except ValueError as error:
            raise InputError(f"{value!r} is not a colour; write it as '#rrggbb' or (r, g, b).") from error
    numbers = as_tensor(value if isinstance(value, torch.Tensor) else np.asarray(value), "Colour")
    if numbers.numel() not in {3, 4}:
        raise InputError(f"A colour has {numbers.numel()} values; expected (r, g, b).")
    if not numbers.is_floating_point() and not 0 <= int(numbers.min()) <= int(numbers.max()) <= 255:
        raise InputError(f"The colour {tuple(numbers.tolist())} has values outside 0..255.")
    return load_image(numbers[:, None, None], input_data_format="channels_first").to(torch.float32) / 255.0
