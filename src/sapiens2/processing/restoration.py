"""From maps at the size of the model's output back to the size of the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from sapiens2.errors import InputError
from sapiens2.geometry.resize import letterbox_geometry
from sapiens2.processing.sizes import SizesLike, as_sizes, warn_of_transposed_sizes
from sapiens2.types import SizeHW

__all__ = ["Restoration", "resize_map"]


@dataclass(frozen=True)
class Restoration:
    """What to cut from each map, and the size to bring it to.

    Attributes:
        source_sizes: ``(height, width)`` of each picture, where its padding is to be cut away; otherwise ``None``.
        final_sizes: ``(height, width)`` of each result; ``None`` leaves the size alone.
    """

    source_sizes: list[SizeHW] | None
    final_sizes: list[SizeHW] | None

    @classmethod
    def plan(
        cls,
        batch_size: int,
        source_sizes: SizesLike | None = None,
        target_sizes: SizesLike | None = None,
        do_remove_padding: bool | None = None,
    ) -> Restoration:
        """Check the arguments that all dense post-processing shares.

        Args:
            batch_size: Number of maps.
            source_sizes: ``(height, width)`` of each picture before preprocessing, or the pictures.
            target_sizes: ``(height, width)`` of each result; ``source_sizes`` if ``None``.
            do_remove_padding: Whether preprocessing padded the pictures (``do_pad=True``) and the padding is to be cut
                away. ``None`` means yes if ``source_sizes`` are given.

        Returns:
            The plan for this batch.

        Raises:
            InputError: Counts differ, a size is no size, or padding is to be removed without ``source_sizes``.
        """
        sources = as_sizes(source_sizes, batch_size, "source_sizes")
        targets = as_sizes(target_sizes, batch_size, "target_sizes")
        if do_remove_padding and sources is None:
            raise InputError("do_remove_padding=True needs source_sizes: the padding follows from the picture's size.")
        if sources is not None and targets is not None:
            warn_of_transposed_sizes(sources, targets)
        remove_padding = sources is not None if do_remove_padding is None else do_remove_padding
        return cls(source_sizes=sources if remove_padding else None, final_sizes=targets or sources)

    def crop(self, maps: torch.Tensor, index: int) -> torch.Tensor:
        """Cut the padding from one map of the batch.

        The region follows from the map's own size and the picture's, so it holds for any size that preprocessing used.

        Args:
            maps: ``(B, C, H, W)``.
            index: Which map.

        Returns:
            View ``(C, h, w)``; all of the map if nothing is to be cut.
        """
        single = maps[index]
        if self.source_sizes is None:
            return single
        return letterbox_geometry(self.source_sizes[index], (single.shape[-2], single.shape[-1])).unpad(single)

    def final_size(self, index: int) -> SizeHW | None:
        """Size ``(height, width)`` that one result is to have; ``None`` leaves it alone."""
        return None if self.final_sizes is None else self.final_sizes[index]

    def apply(
        self, maps: torch.Tensor, prepare: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> list[torch.Tensor]:
        """Cut and resize every map.

        Args:
            maps: ``(B, C, H, W)``, any float dtype.
            prepare: Applied to each cut map, float32, before it is resized.

        Returns:
            One ``(C, height, width)`` float32 tensor per image.
        """
        restored = []
        for index in range(maps.shape[0]):
            cut = self.crop(maps, index).to(torch.float32)
            restored.append(resize_map(cut if prepare is None else prepare(cut), self.final_size(index)))
        return restored


def resize_map(single: torch.Tensor, size_hw: SizeHW | None) -> torch.Tensor:
    """Resize one float map bilinearly, pixel areas aligned, without antialiasing.

    Args:
        single: ``(C, H, W)``.
        size_hw: ``(height, width)``; ``None`` returns the map as it is.

    Returns:
        ``(C, height, width)``.
    """
    if size_hw is None or tuple(single.shape[-2:]) == size_hw:
        return single
    return F.interpolate(single[None], size=size_hw, mode="bilinear", align_corners=False)[0]
