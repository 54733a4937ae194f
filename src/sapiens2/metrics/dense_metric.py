"""What metrics of maps have in common: which pixels count, and how many there were."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from sapiens2.metrics.metric import Metric

__all__ = ["DenseMetric"]


class DenseMetric(Metric):
    """A metric that is fed with ``update(prediction, target, mask=None)``, numpy or torch, one image or a batch.

    Args:
        mask_description: What the masks that are passed select, in words, such as ``"people"``. It is only carried
            into :meth:`settings`, so that a report says what was measured.
    """

    def __init__(self, *, mask_description: str = "") -> None:
        super().__init__()
        self._mask_description = mask_description

    def settings(self) -> dict[str, Any]:
        """The arguments that this metric was made with, as JSON can hold them."""
        return {"mask_description": self._mask_description}

    def notes(self) -> tuple[str, ...]:
        """Sentences about images without a pixel that counts, and images without a mask among others that had one."""
        images = self._totals.count_of("images")
        if not images:
            return super().notes()
        found = []
        if empty := self._totals.count_of("images_without_pixels"):
            found.append(f"{empty} of {images} images had no pixel that counts, and enter no figure")
        masked = self._totals.count_of("images_with_mask")
        if 0 < masked < images:
            found.append(
                f"{images - masked} of {images} images came without a mask; there every pixel with truth counts"
            )
        return tuple(found)

    def _count_images(self, valid: Tensor, *, masked: bool) -> None:
        """Count the images of a batch and their pixels, from ``(B, 1, H, W)`` bool."""
        pixels = valid.flatten(1).sum(dim=1)
        self._totals.count("images", len(valid))
        self._totals.count("images_with_mask", len(valid) if masked else 0)
        self._totals.count("images_without_pixels", int((pixels == 0).sum()))
        self._totals.count("pixels", int(pixels.sum()))

    def _counts(self) -> dict[str, float]:
        """How much was seen, for :meth:`compute`."""
        return {"images": float(self._totals.count_of("images")), "pixels": float(self._totals.count_of("pixels"))}
