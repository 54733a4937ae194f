"""A picture, decoded once for all tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.processing.array_formats import to_byte_range
from sapiens2.processing.image_input import read_image
from sapiens2.types import ImageLike, SizeHW

__all__ = ["DecodedImage"]


@dataclass(frozen=True, eq=False)
class DecodedImage:
    """What the tasks read of one picture.

    Attributes:
        pixels: ``(3, H, W)`` as :func:`sapiens2.processing.image_input.read_image` gives it: the processors' input.
        image: ``(H, W, 3)`` uint8, read-only, RGB as displayed: what results are drawn on. All tasks share it.
        source: The path that the picture was read from; None when it was given otherwise.
    """

    pixels: Tensor
    image: NDArray[np.uint8]
    source: str | None

    @classmethod
    def read(cls, image: ImageLike, *, index: int | None = None) -> DecodedImage:
        """Decode a picture.

        Args:
            image: As for :func:`sapiens2.processing.load_image`.
            index: Its place in a list, named in the message where there is no path to name.

        Raises:
            InputError: The picture cannot be read; the message names it.
        """
        try:
            pixels = read_image(image)
            bytes_ = to_byte_range(pixels).round() if pixels.is_floating_point() else pixels
        except InputError as error:
            name = _place(image, index)
            raise error if not name or name in str(error) else InputError(f"{name}: {error}") from error
        shown = bytes_.to("cpu", torch.uint8).permute(1, 2, 0).numpy().copy(order="C")
        shown.flags.writeable = False
        return cls(pixels, shown, _source(image))

    @property
    def size_hw(self) -> SizeHW:
        """``(height, width)`` in pixels, as displayed."""
        height, width, _ = self.image.shape
        return height, width


def _source(image: Any) -> str | None:
    """The path as text that every file format can hold: bytes that are no UTF-8 become question marks."""
    if not isinstance(image, str | os.PathLike):
        return None
    return os.fsencode(image).decode("utf-8", errors="replace")


def _place(image: Any, index: int | None) -> str:
    if isinstance(image, str | os.PathLike):
        return os.fspath(image)
    return "" if index is None else f"image {index}"
