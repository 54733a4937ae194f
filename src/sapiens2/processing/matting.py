"""From alpha mattes and premultiplied foregrounds to composites."""

from __future__ import annotations

from typing import Any

import torch

from sapiens2.errors import InputError
from sapiens2.processing.backgrounds import BackgroundsLike, load_backgrounds
from sapiens2.processing.model_outputs import output_maps
from sapiens2.processing.restoration import Restoration, resize_map
from sapiens2.processing.sizes import SizesLike

__all__ = ["composite_over", "post_process_image_matting"]


def post_process_image_matting(
    outputs: Any,
    target_sizes: SizesLike | None = None,
    backgrounds: BackgroundsLike | None = None,
    *,
    source_sizes: SizesLike | None = None,
    do_remove_padding: bool | None = None,
) -> list[dict[str, torch.Tensor | None]]:
    """Resize the matte and the foreground, and composite them over a background if one is given.

    Args:
        outputs: Output with ``alphas`` ``(B, 1, H, W)`` and ``foregrounds`` ``(B, 3, H, W)`` in 0..1, or a mapping.
        target_sizes: ``(height, width)`` of each result, or the images; the size of the model's output if ``None``.
        backgrounds: One background for all images, or a list with one for each: an image of any kind, a colour as
            ``(r, g, b)`` or ``"#rrggbb"``, or a tensor ``(3, 1, 1)``. Stretched to the size of the result.
        source_sizes: ``(height, width)`` of each image before preprocessing with ``do_pad=True``, or the images.
        do_remove_padding: Whether to cut the padding away; ``None`` means yes if ``source_sizes`` are given.

    Returns:
        Per image ``"alpha"`` ``(1, height, width)`` and ``"foreground"`` ``(3, height, width)``, float32 in 0..1, the
        foreground premultiplied by alpha; ``"composite"`` ``(3, height, width)``, uint8, or ``None``.

    Raises:
        InputError: ``outputs`` lacks the fields, or sizes or backgrounds do not fit the batch.
    """
    alphas = output_maps(outputs, "alphas", channels=1)
    foregrounds = output_maps(outputs, "foregrounds", channels=3)
    if alphas.shape[0] != foregrounds.shape[0] or alphas.shape[2:] != foregrounds.shape[2:]:
        raise InputError(
            f"outputs.alphas {tuple(alphas.shape)} and outputs.foregrounds {tuple(foregrounds.shape)} differ in size."
        )
    restoration = Restoration.plan(alphas.shape[0], source_sizes, target_sizes, do_remove_padding)
    mattes = restoration.apply(torch.cat([alphas, foregrounds], dim=1), prepare=lambda cut: cut.clamp(0.0, 1.0))
    backdrops = load_backgrounds(backgrounds, len(mattes))
    results: list[dict[str, torch.Tensor | None]] = []
    for matte, backdrop in zip(mattes, backdrops, strict=True):
        alpha, foreground = matte[:1], matte[1:]
        composite = None if backdrop is None else composite_over(backdrop, alpha, foreground)
        results.append({"alpha": alpha, "foreground": foreground, "composite": composite})
    return results


def composite_over(background: torch.Tensor, alpha: torch.Tensor, foreground: torch.Tensor) -> torch.Tensor:
    """Lay a premultiplied foreground over a background: ``foreground + (1 - alpha) * background``.

    Source: Porter & Duff, "Compositing Digital Images", SIGGRAPH 1984, the "over" operator on premultiplied colours.

    Args:
        background: ``(3, h, w)`` in 0..1, any size and device; stretched to the size of ``alpha``.
        alpha: ``(1, H, W)`` in 0..1.
        foreground: ``(3, H, W)`` in 0..1, premultiplied.

    Returns:
        ``(3, H, W)``, uint8.
    """
    backdrop = background.to(alpha.device)
    if backdrop.shape[-2:] != (1, 1):
        backdrop = resize_map(backdrop, (int(alpha.shape[-2]), int(alpha.shape[-1])))
    blended = (foreground + (1.0 - alpha) * backdrop).clamp(0.0, 1.0)
    return (blended * 255.999).to(torch.uint8)  # 256 equal bins, as transformers rounds: 1.0 falls in the last one
