"""From canonical pointmaps and focal scales to metric pointmaps."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch

from sapiens2.errors import InputError
from sapiens2.processing.model_outputs import output_maps, output_tensor
from sapiens2.processing.restoration import Restoration
from sapiens2.processing.sizes import SizesLike

__all__ = ["post_process_pointmap_estimation"]

_SMALLEST_SCALE = 1e-6


def post_process_pointmap_estimation(
    outputs: Any,
    source_sizes: SizesLike | None = None,
    target_sizes: SizesLike | None = None,
    do_remove_padding: bool | None = None,
) -> list[dict[str, Any]]:
    """Cut the padding, resize, and divide by the predicted focal scale.

    The scale is an unbounded number of the network: zero or a negative one would give infinite or mirrored points. Such
    a pointmap stays canonical, is flagged ``is_metric=False``, and a warning names it.

    Convention: OpenCV camera, x right, y down, z forward; ``metric = canonical / scale``, ``scale = 768 / f_x``.

    Args:
        outputs: Output with ``pointmaps`` ``(B, 3, H, W)`` and optionally ``scales`` ``(B, 1)``, or a mapping.
        source_sizes: ``(height, width)`` of each image before preprocessing, or the images.
        target_sizes: ``(height, width)`` of each result; ``source_sizes`` if ``None``, and with neither the size of the
            model's output.
        do_remove_padding: Whether to cut the padding away; ``None`` means yes if ``source_sizes`` are given.

    Returns:
        Per image ``{"pointmap": (3, height, width) float32, "is_metric": bool}``.

    Raises:
        InputError: ``outputs`` has no such pointmaps, its scales do not fit them, or the sizes do not fit the batch.
    """
    pointmaps = output_maps(outputs, "pointmaps", channels=3)
    scales = _usable_scales(output_tensor(outputs, "scales"), pointmaps.shape[0])
    restoration = Restoration.plan(pointmaps.shape[0], source_sizes, target_sizes, do_remove_padding)
    return [
        {"pointmap": pointmap if scale is None else pointmap / scale, "is_metric": scale is not None}
        for pointmap, scale in zip(restoration.apply(pointmaps), scales, strict=True)
    ]


def _usable_scales(scales: torch.Tensor | None, batch_size: int) -> list[float | None]:
    """Scale of each image; ``None`` where there is none to divide by."""
    if scales is None:
        return [None] * batch_size
    if scales.numel() != batch_size:
        raise InputError(f"outputs.scales has shape {tuple(scales.shape)}; expected ({batch_size}, 1).")
    values = scales.to(torch.float32).flatten().tolist()
    usable = [value if math.isfinite(value) and value >= _SMALLEST_SCALE else None for value in values]
    refused = {index: value for index, value in enumerate(values) if usable[index] is None}
    if refused:
        warnings.warn(
            f"Predicted scales that are not positive, by image: {refused}. These pointmaps stay in canonical units "
            "(is_metric=False).",
            UserWarning,
            stacklevel=3,
        )
    return usable
