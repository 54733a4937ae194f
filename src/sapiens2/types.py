"""Types that public signatures share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

if TYPE_CHECKING:
    import numpy as np
    import torch
    from PIL import Image

__all__ = ["TASKS", "ArrayLike", "BoxesLike", "ImageLike", "PathLike", "SizeHW", "Task"]

PathLike: TypeAlias = str | os.PathLike[str]

ImageLike: TypeAlias = Union["Image.Image", "np.ndarray[Any, Any]", "torch.Tensor", str, "os.PathLike[str]"]
"""One image: PIL in any mode, numpy or torch (HxW, HxWxC or CxHxW), or a path to a file."""

ArrayLike: TypeAlias = Union["np.ndarray[Any, Any]", "torch.Tensor", Sequence[Any]]

BoxesLike: TypeAlias = ArrayLike
"""Boxes of one image: ``(N, 4)``, COCO ``(x_min, y_min, width, height)`` in absolute pixels."""

SizeHW: TypeAlias = tuple[int, int]
"""``(height, width)`` in pixels."""

Task: TypeAlias = Literal["pose", "seg", "normal", "pointmap", "matting", "albedo"]

TASKS: tuple[Task, ...] = ("pose", "seg", "normal", "pointmap", "matting", "albedo")
"""The tasks by the names used in checkpoint ids (``facebook/sapiens2-<task>-<size>``) and on the command line."""
