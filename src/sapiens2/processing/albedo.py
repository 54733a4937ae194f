"""From raw albedo maps to colours."""

from __future__ import annotations

from typing import Any

import torch

from sapiens2.processing.model_outputs import output_maps
from sapiens2.processing.restoration import Restoration
from sapiens2.processing.sizes import SizesLike

__all__ = ["post_process_albedo_estimation"]


def post_process_albedo_estimation(
    outputs: Any,
    source_sizes: SizesLike | None = None,
    target_sizes: SizesLike | None = None,
    do_remove_padding: bool | None = None,
) -> list[dict[str, torch.Tensor]]:
    """Clamp to valid colours, cut the padding, and resize.

    Args:
        outputs: Output with ``albedos`` ``(B, 3, H, W)``, or a mapping.
        source_sizes: ``(height, width)`` of each image before preprocessing, or the images.
        target_sizes: ``(height, width)`` of each result; ``source_sizes`` if ``None``, and with neither the size of the
            model's output.
        do_remove_padding: Whether to cut the padding away; ``None`` means yes if ``source_sizes`` are given.

    Returns:
        Per image ``{"albedo": (3, height, width)}``, float32, sRGB in 0..1.

    Raises:
        InputError: ``outputs`` has no such albedos, or the sizes do not fit the batch.
    """
    albedos = output_maps(outputs, "albedos", channels=3)
    restoration = Restoration.plan(albedos.shape[0], source_sizes, target_sizes, do_remove_padding)
    return [{"albedo": albedo} for albedo in restoration.apply(albedos, prepare=lambda cut: cut.clamp(0.0, 1.0))]
