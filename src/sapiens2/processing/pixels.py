"""From images to the pixel values of the model's input."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional as F

from sapiens2.errors import InputError
from sapiens2.geometry.resize import letterbox_geometry, resize_image
from sapiens2.processing.array_formats import to_byte_range
from sapiens2.processing.image_input import read_image, require_rgb
from sapiens2.processing.options import PreprocessOptions, scaled_size_hw
from sapiens2.types import ImageLike, SizeHW

__all__ = ["center_crop", "fit_image", "normalize_pixels", "pad_to_common_size", "read_pixels"]


def read_pixels(image: ImageLike, options: PreprocessOptions) -> torch.Tensor:
    """Read one image and put it on the device to compute on.

    Args:
        image: As for :func:`~sapiens2.processing.image_input.load_image`.
        options: Layout, device, and whether values are to be rescaled: if so, float images are brought to 0..255
            first, from whichever range they are in, so that none is rescaled twice.

    Returns:
        ``(3, H, W)``, uint8 or float32.

    Raises:
        InputError: The image cannot be read or understood.
    """
    if not options.convert_rgb:
        require_rgb(image, input_data_format=options.input_data_format)
    pixels = read_image(image, input_data_format=options.input_data_format)
    if options.device is not None:
        pixels = pixels.to(options.device)
    if options.rescale is not None and pixels.is_floating_point():
        return to_byte_range(pixels)
    return pixels


def fit_image(pixels: torch.Tensor, options: PreprocessOptions) -> torch.Tensor:
    """Resize, pad and crop a whole image as the options say.

    Args:
        pixels: ``(3, H, W)``, uint8 or float32.
        options: Size, filter, padding and centre crop.

    Returns:
        ``(3, h, w)`` of the same dtype. May share memory with ``pixels`` where nothing was to be done.
    """
    if options.size is not None:
        source_hw = (pixels.shape[-2], pixels.shape[-1])
        if options.pad and options.model_hw is not None:
            box = letterbox_geometry(source_hw, options.model_hw)
            pixels = box.pad(_resize(pixels, box.scaled_hw, options.resample))
        else:
            pixels = _resize(pixels, scaled_size_hw(options.size, source_hw), options.resample)
    return pixels if options.crop_hw is None else center_crop(pixels, options.crop_hw)


def center_crop(pixels: torch.Tensor, size_hw: SizeHW, fill: float = 0) -> torch.Tensor:
    """Cut the middle out of an image; what lies outside it is filled.

    Args:
        pixels: ``(..., H, W)``.
        size_hw: ``(height, width)`` of the result. An odd margin leaves the extra pixel at the bottom and right.
        fill: Value outside the image.

    Returns:
        ``(..., height, width)`` of the same dtype.
    """
    height, width = pixels.shape[-2:]
    above, left = max(0, (size_hw[0] - height) // 2), max(0, (size_hw[1] - width) // 2)
    below, right = max(0, size_hw[0] - height - above), max(0, size_hw[1] - width - left)
    padded = F.pad(pixels, (left, right, above, below), value=fill)
    top, start = (padded.shape[-2] - size_hw[0]) // 2, (padded.shape[-1] - size_hw[1]) // 2
    return padded[..., top : top + size_hw[0], start : start + size_hw[1]]


def pad_to_common_size(images: Sequence[torch.Tensor], size_hw: SizeHW | None, fill: float = 0) -> list[torch.Tensor]:
    """Pad images at the bottom and right until all have one size.

    Args:
        images: Tensors ``(..., H, W)`` of any sizes.
        size_hw: ``(height, width)`` to pad to; the largest height and width of all if ``None``.
        fill: Value of the padding.

    Returns:
        Tensors ``(..., height, width)``.

    Raises:
        InputError: An image is larger than ``size_hw``.
    """
    heights, widths = [image.shape[-2] for image in images], [image.shape[-1] for image in images]
    height, width = (max(heights, default=0), max(widths, default=0)) if size_hw is None else size_hw
    if images and (max(heights) > height or max(widths) > width):
        raise InputError(
            f"pad_size {(height, width)} is smaller than an image ({max(heights)} x {max(widths)} pixels)."
        )
    return [F.pad(image, (0, width - image.shape[-1], 0, height - image.shape[-2]), value=fill) for image in images]


def normalize_pixels(pixels: torch.Tensor, options: PreprocessOptions, out: torch.Tensor | None = None) -> torch.Tensor:
    """Rescale and normalise in one multiplication and one addition per value.

    Args:
        pixels: ``(..., 3, H, W)``, uint8 or float32.
        options: Rescale factor, mean and standard deviation.
        out: Float32 tensor of the same shape for the result.

    Returns:
        Float32 tensor of the same shape; ``pixels`` itself if neither is asked for.
    """
    if options.rescale is None and options.mean is None:
        return pixels if out is None else out.copy_(pixels)
    result = (
        pixels.to(torch.float32, copy=True, memory_format=torch.contiguous_format) if out is None else out.copy_(pixels)
    )
    rescale = 1.0 if options.rescale is None else options.rescale
    if options.mean is None or options.std is None:
        return result.mul_(rescale)
    std = torch.tensor(options.std, dtype=torch.float64)
    factor = (rescale / std).to(result)[:, None, None]
    offset = (-torch.tensor(options.mean, dtype=torch.float64) / std).to(result)[:, None, None]
    return torch.addcmul(offset, result, factor, out=result)


def _resize(pixels: torch.Tensor, size_hw: SizeHW, resample: int) -> torch.Tensor:
    return resize_image(pixels[None], size_hw, resample=resample)[0]
