"""From segmentation logits to class maps."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F
from transformers.image_processing_outputs import SemanticSegmentationPostProcessorOutput

from sapiens2.processing.model_outputs import output_maps
from sapiens2.processing.restoration import Restoration, resize_map
from sapiens2.processing.sizes import SizesLike
from sapiens2.types import SizeHW

__all__ = ["classify_pixels", "post_process_semantic_segmentation"]

_STRIP_BYTES_IN_CACHE = 8 * 2**20
_STRIP_BYTES_ON_ACCELERATOR = 256 * 2**20


def post_process_semantic_segmentation(
    outputs: Any,
    target_sizes: SizesLike | None = None,
    return_segmentation_scores: bool = False,
    *,
    source_sizes: SizesLike | None = None,
    do_remove_padding: bool | None = None,
) -> list[torch.Tensor] | list[SemanticSegmentationPostProcessorOutput]:
    """Resize the logits bilinearly and take the best class of every pixel.

    Args:
        outputs: Output with ``logits`` ``(B, num_labels, H, W)``, or a mapping.
        target_sizes: ``(height, width)`` of each result, or the images; the size of the logits if ``None``.
        return_segmentation_scores: Whether to return the resized logits too. They need ``num_labels`` times the memory
            of the class map; without them the logits are resized strip by strip.
        source_sizes: ``(height, width)`` of each image before preprocessing with ``do_pad=True``, or the images.
        do_remove_padding: Whether to cut the padding away; ``None`` means yes if ``source_sizes`` are given.

    Returns:
        Per image an int64 tensor ``(height, width)`` of class ids; or, with scores, an object with ``segmentation``
        and ``segmentation_scores`` ``(num_labels, height, width)``, float32.

    Raises:
        InputError: ``outputs`` has no such logits, or the sizes do not fit the batch.
    """
    logits = output_maps(outputs, "logits")
    restoration = Restoration.plan(logits.shape[0], source_sizes, target_sizes, do_remove_padding)
    if return_segmentation_scores:
        return [
            SemanticSegmentationPostProcessorOutput(
                {"segmentation": _best_class(scores), "segmentation_scores": scores}
            )
            for scores in restoration.apply(logits)
        ]
    return [
        classify_pixels(restoration.crop(logits, index), restoration.final_size(index))
        for index in range(logits.shape[0])
    ]


def classify_pixels(
    logits: torch.Tensor, size_hw: SizeHW | None = None, *, strip_bytes: int | None = None
) -> torch.Tensor:
    """Best class of every pixel of bilinearly resized logits, computed strip by strip.

    29 classes at 3840 x 2160 are 920 MiB of logits; only ``strip_bytes`` of them exist at a time.

    Args:
        logits: ``(num_labels, H, W)``, any float dtype.
        size_hw: ``(height, width)`` of the result; the size of the logits if ``None``.
        strip_bytes: Bytes that one strip of float32 logits may take. ``None`` takes what is fast: 8 MiB on the CPU,
            where strips then stay in the cache, and 256 MiB on an accelerator.

    Returns:
        ``(height, width)``, int64.
    """
    if size_hw is None or tuple(logits.shape[-2:]) == size_hw:
        return _best_class(logits)
    height, width = size_hw
    if strip_bytes is None:
        strip_bytes = _STRIP_BYTES_IN_CACHE if logits.device.type == "cpu" else _STRIP_BYTES_ON_ACCELERATOR
    strip_rows = max(1, strip_bytes // (4 * logits.shape[0] * width))
    if strip_rows >= height:
        return _best_class(resize_map(logits.to(torch.float32), size_hw))
    classes = torch.empty(size_hw, dtype=torch.int64, device=logits.device)
    above, below, weight = _row_neighbours(logits.shape[-2], height, logits.device)
    for start in range(0, height, strip_rows):
        rows = slice(start, start + strip_rows)
        upper = logits[:, above[rows]].to(torch.float32)
        lower = logits[:, below[rows]].to(torch.float32)
        strip = torch.lerp(upper, lower, weight[rows, None])  # (num_labels, rows, W)
        wide = F.interpolate(strip[None], size=(strip.shape[1], width), mode="bilinear", align_corners=False)[0]
        classes[rows] = _best_class(wide)
    return classes


def _best_class(scores: torch.Tensor) -> torch.Tensor:
    return scores.max(dim=0).indices  # the same as argmax, and four times as fast over a strided axis on the CPU


def _row_neighbours(source: int, target: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows above and below each target row, and the weight of the one below (pixel areas aligned)."""
    centres = (torch.arange(target, device=device, dtype=torch.float32) + 0.5) * (source / target) - 0.5
    centres = centres.clamp(min=0.0)
    above = centres.floor().to(torch.int64).clamp(max=source - 1)
    return above, (above + 1).clamp(max=source - 1), centres - above
