"""Resizing of images and label maps, and the letterbox that keeps an image's aspect."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["Letterbox", "letterbox_geometry", "resize_image", "resize_labels"]

# PIL's codes of the filters, and torch's names of the same. Nearest samples at pixel centres, as PIL does.
_FILTERS = {0: "nearest-exact", 2: "bilinear", 3: "bicubic"}
_FILTER_NAMES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def resize_image(images: Tensor, size_hw: SizeHW, resample: int = 2, antialias: bool = True) -> Tensor:
    """Resize images without regard to their aspect.

    Convention: pixel areas are aligned (half-pixel centres), as in PIL and torchvision.

    Args:
        images: Tensor ``(B, C, H, W)``, uint8 or floating.
        size_hw: New height and width, each at least 1.
        resample: PIL's code of the filter: nearest (0), bilinear (2) or bicubic (3).
        antialias: Widen the filter when shrinking, so that no detail aliases. Nearest ignores it.

    Returns:
        Tensor ``(B, C, h, w)`` of the dtype and device of ``images``; integers are rounded and stay within
        the range of their dtype, floats may overshoot with the bicubic filter.

    Raises:
        InputError: The filter is not supported, a size is below 1, or the images are not ``(B, C, H, W)``.
    """
    if int(resample) not in _FILTERS:
        name = _FILTER_NAMES.get(int(resample), "unknown")
        known = ", ".join(f"{_FILTER_NAMES[code]} ({code})" for code in _FILTERS)
        raise InputError(f"The resampling filter is {name} ({int(resample)}); expected one of {known}.")
    if images.ndim != 4 or 0 in images.shape[1:]:
        raise InputError(f"Images have shape {tuple(images.shape)}; expected (batch, channels, height, width).")
    _require_pixels(size_hw)
    if len(images) == 0:
        return images.new_empty((0, images.shape[1], *size_hw))
    if tuple(images.shape[-2:]) == tuple(size_hw):
        return images
    mode = _FILTERS[int(resample)]
    if mode == "nearest-exact":
        return _resize_nearest(images, size_hw)
    source = images if _has_kernel(images, size_hw) else images.to(torch.float32)
    resized = F.interpolate(source, size=tuple(size_hw), mode=mode, align_corners=False, antialias=antialias)
    if source is images or images.dtype.is_floating_point:
        return resized.to(images.dtype)
    limits = torch.iinfo(images.dtype)
    return resized.round_().clamp_(limits.min, limits.max).to(images.dtype)


def resize_labels(maps: Tensor, size_hw: SizeHW) -> Tensor:
    """Resize maps of class ids by taking the nearest pixel, so that only ids of the source appear.

    Convention: output pixel ``i`` takes source pixel ``floor((i + 0.5) * H / h)``, the one whose area holds its centre
    (torch calls it ``nearest-exact``; PIL does the same).

    Args:
        maps: Tensor ``(B, H, W)`` of any dtype, normally an integer one.
        size_hw: New height and width, each at least 1.

    Returns:
        Tensor ``(B, h, w)`` of the dtype and device of ``maps``.

    Raises:
        InputError: The maps are not ``(B, H, W)``, or a size is below 1.
    """
    if maps.ndim != 3 or 0 in maps.shape[1:]:
        raise InputError(f"Label maps have shape {tuple(maps.shape)}; expected (batch, height, width).")
    _require_pixels(size_hw)
    return _resize_nearest(maps, size_hw)


@dataclass(frozen=True)
class Letterbox:
    """Where an image lies in the input of a network when its aspect is kept.

    Convention: the image is centred; where the margin is odd, the bottom and the right get the extra pixel.

    Attributes:
        source_hw: Height and width of the image.
        target_hw: Height and width of the network's input.
        scaled_hw: Height and width of the image after it was scaled to fit, each at least 1.
        top: Rows of padding above.
        left: Columns of padding on the left.
    """

    source_hw: SizeHW
    target_hw: SizeHW
    scaled_hw: SizeHW
    top: int = field(init=False)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "top", (self.target_hw[0] - self.scaled_hw[0]) // 2)
        object.__setattr__(self, "left", (self.target_hw[1] - self.scaled_hw[1]) // 2)

    @property
    def bottom(self) -> int:
        """Rows of padding below."""
        return self.target_hw[0] - self.scaled_hw[0] - self.top

    @property
    def right(self) -> int:
        """Columns of padding on the right."""
        return self.target_hw[1] - self.scaled_hw[1] - self.left

    def pad(self, images: Tensor, fill: float = 0) -> Tensor:
        """Add the margins to images that have been scaled.

        Args:
            images: Tensor ``(..., h, w)`` of size ``scaled_hw``; images or label maps.
            fill: Value of the margins, for example the ignore index of label maps.

        Returns:
            Tensor ``(..., H, W)`` of size ``target_hw``, of the same dtype.

        Raises:
            InputError: The images do not have the size ``scaled_hw``.
        """
        if tuple(images.shape[-2:]) != self.scaled_hw:
            raise InputError(f"Images to pad have size {tuple(images.shape[-2:])}; expected {self.scaled_hw}.")
        return F.pad(images, (self.left, self.right, self.top, self.bottom), value=fill)

    def unpad(self, maps: Tensor) -> Tensor:
        """Cut the margins off the maps that a network gave.

        Args:
            maps: Tensor ``(..., h, w)`` that covers the whole input of the network, at its or any other resolution.

        Returns:
            View ``(..., h', w')`` of the part that shows the image, at least one pixel in each direction.
        """
        height, width = maps.shape[-2:]
        rows = _scaled_span(self.top, self.scaled_hw[0], self.target_hw[0], height)
        columns = _scaled_span(self.left, self.scaled_hw[1], self.target_hw[1], width)
        return maps[..., rows, columns]


def letterbox_geometry(source_hw: SizeHW, target_hw: SizeHW) -> Letterbox:
    """Fit an image into the input of a network and keep its aspect.

    Convention: sizes are (height, width); the scaled size is rounded down, as the published models were run with.

    Args:
        source_hw: Height and width of the image.
        target_hw: Height and width of the network's input.

    Returns:
        The geometry; however narrow the image is, at least one pixel of it remains in each direction.

    Raises:
        InputError: A size is below 1.
    """
    _require_pixels(source_hw)
    _require_pixels(target_hw)
    scale = min(target_hw[0] / source_hw[0], target_hw[1] / source_hw[1])
    scaled_height, scaled_width = (max(1, int(side * scale)) for side in source_hw)
    return Letterbox(
        source_hw=(int(source_hw[0]), int(source_hw[1])),
        target_hw=(int(target_hw[0]), int(target_hw[1])),
        scaled_hw=(scaled_height, scaled_width),
    )


def _require_pixels(size_hw: SizeHW) -> None:
    if len(size_hw) != 2 or min(size_hw) < 1:
        raise InputError(f"The size is {tuple(size_hw)}; expected (height, width), each at least 1.")


def _has_kernel(images: Tensor, size_hw: SizeHW) -> bool:
    """Tell whether torch resizes this dtype itself; its 8-bit kernels (CPU only) round and saturate."""
    if images.dtype == torch.uint8:
        # torch 2.14 stops at an internal assertion when 8-bit RGB becomes a single pixel.
        return images.device.type == "cpu" and tuple(size_hw) != (1, 1)
    return images.dtype in (torch.float32, torch.float64)


def _resize_nearest(images: Tensor, size_hw: SizeHW) -> Tensor:
    """Pick rows and columns; unlike torch's kernel it takes every dtype."""
    rows, columns = (
        (2 * torch.arange(new, device=images.device) + 1) * old // (2 * new)
        for old, new in zip(images.shape[-2:], size_hw, strict=True)
    )
    return images[..., rows, :][..., columns]


def _scaled_span(start: int, length: int, whole: int, resolution: int) -> slice:
    """Bring a span of ``whole`` pixels to a map of another resolution, rounding halves up."""
    first = (2 * start * resolution + whole) // (2 * whole)
    last = (2 * (start + length) * resolution + whole) // (2 * whole)
    first = min(first, resolution - 1)
    return slice(first, max(last, first + 1))
