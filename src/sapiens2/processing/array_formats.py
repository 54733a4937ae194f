"""Arrays of pixels in any layout and number format, as ``(C, H, W)`` tensors of bytes or floats."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from sapiens2.errors import InputError

__all__ = ["as_tensor", "as_uint8_or_float32", "channels_first", "over_white", "to_byte_range"]

_CHANNEL_COUNTS = (3, 4, 1)  # likeliest first
_OVERSHOOT = 0.1
_DARK_BYTES = 8.0  # a byte picture that is darker still shows nothing; intensities that overshoot are likelier


def as_tensor(array: np.ndarray[Any, Any] | torch.Tensor, name: str = "Image") -> torch.Tensor:
    """View an array as a tensor that torch can compute with; a tensor stays as it is, without its graph.

    Args:
        array: Array or tensor of any shape.
        name: What the array is called in the error message.

    Returns:
        Tensor that shares memory with ``array`` where torch can.

    Raises:
        InputError: The array does not hold real numbers, or is a tensor without memory or of a sparse layout.
    """
    if isinstance(array, torch.Tensor):
        if array.is_meta or array.layout != torch.strided:
            layout = "on the meta device" if array.is_meta else f"of layout {array.layout}"
            raise InputError(f"{name} tensor is {layout}; expected a dense tensor with values.")
        if array.is_complex():
            raise InputError(f"{name} tensor has dtype {array.dtype}; expected bool, integers or floats.")
        return array.detach()
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} array has dtype {array.dtype}; expected bool, integers or floats.")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    # torch knows no negative strides (a flipped image, BGR turned RGB), nor fields of records, and warns of read-only
    # memory
    if not native.flags.writeable or any(stride < 0 or stride % native.itemsize for stride in native.strides):
        native = native.copy()
    return torch.from_numpy(native)


def channels_first(pixels: torch.Tensor, given: type, input_data_format: str | None) -> torch.Tensor:
    """View an image as ``(C, H, W)``.

    Args:
        pixels: ``(H, W)``, ``(H, W, C)`` or ``(C, H, W)``.
        given: Type that the user gave: arrays and tensors have different habits where a shape fits both layouts.
        input_data_format: ``"channels_first"``, ``"channels_last"``, ``"none"``, or ``None`` to infer it.

    Returns:
        View ``(C, H, W)`` with one, three or four channels.

    Raises:
        InputError: The shape is not that of an image, or does not fit the given format.
    """
    shape = tuple(pixels.shape)
    layout = _layout(shape, given, input_data_format)
    if layout == "none":
        return pixels[None]
    return pixels.permute(2, 0, 1) if layout == "channels_last" else pixels


def as_uint8_or_float32(pixels: torch.Tensor) -> torch.Tensor:
    """Bring numbers of any type to bytes, or to float32 with their values if they are floats.

    Args:
        pixels: Tensor of any real dtype.

    Returns:
        Same shape, ``uint8`` or ``float32``.

    Raises:
        InputError: Integers are out of range.
    """
    if pixels.dtype == torch.uint8:
        return pixels
    if pixels.dtype == torch.bool:
        return pixels.to(torch.uint8) * 255
    if pixels.is_floating_point():
        return pixels.to(torch.float32)
    sixteen_bit = pixels.dtype == torch.uint16
    wide = pixels.to(torch.int64)
    low, high = (int(value) for value in torch.aminmax(wide))
    if low < 0 or high > 65535:
        raise InputError(f"Image of {pixels.dtype} has values from {low} to {high}; expected 0..255 or 0..65535.")
    if sixteen_bit or high > 255:
        wide = (wide + 128) // 257  # 65535 = 257 * 255
    return wide.to(torch.uint8)


def to_byte_range(pixels: torch.Tensor) -> torch.Tensor:
    """Bring float pixels to 0..255, whichever of the two usual ranges they are in.

    Args:
        pixels: Float tensor of any shape with finite values, within 0..1 or within 0..255.

    Returns:
        Same shape and dtype, values of 0 to 255.

    Raises:
        InputError: The values fit neither range.

    Warns:
        UserWarning: The largest value is just above the range of intensities: taken as bytes, the image is almost
            black.
    """
    low, high = (float(value) for value in torch.aminmax(pixels))
    for full_scale in (1.0, 255.0):
        # below zero the allowance is relative to the brightest value: -2..2.6 is a normalised image, not a dark one
        lowest = -_OVERSHOOT * (1.0 if full_scale == 1.0 else high)
        if low >= lowest and high <= full_scale * (1.0 + _OVERSHOOT):
            if full_scale > 1.0 and high <= _DARK_BYTES:
                warnings.warn(
                    f"Float image has values from {low:.4g} to {high:.4g}: they exceed 0..1, so they are taken as "
                    "0..255 and the image is almost black. Where 1 is white pass image.clip(0, 1), else uint8.",
                    UserWarning,
                    stacklevel=2,
                )
            return (pixels * (255.0 / full_scale)).clamp(0.0, 255.0)
    raise InputError(
        f"Float image has values from {low:.4g} to {high:.4g}; expected 0..1 or 0..255. "
        "For pixels that are normalised already, pass do_rescale=False and do_normalize=False to the image processor."
    )


def over_white(rgba: torch.Tensor) -> torch.Tensor:
    """Composite over white.

    Args:
        rgba: ``(4, H, W)``, colours not multiplied by alpha; ``uint8``, or floats in one of the two usual ranges.

    Returns:
        ``(3, H, W)`` of the same dtype and range.
    """
    colour, alpha = rgba[:3], rgba[3:]
    if rgba.dtype == torch.uint8:
        colour, alpha = colour.to(torch.int32), alpha.to(torch.int32)
        return ((colour * alpha + 255 * (255 - alpha) + 127) // 255).to(torch.uint8)
    white = 1.0 if float(rgba.max()) <= 1.0 + _OVERSHOOT else 255.0
    return torch.lerp(torch.full_like(colour, white), colour, alpha / white)


def _layout(shape: tuple[int, ...], given: type, input_data_format: str | None) -> str:
    if input_data_format is not None:
        layout = str(getattr(input_data_format, "value", input_data_format))
        axes = {"none": None, "channels_first": 0, "channels_last": -1}
        if layout not in axes:
            raise InputError(f"input_data_format is {layout!r}; expected one of {', '.join(axes)}.")
        axis = axes[layout]
        if len(shape) == 2:
            return "none"
        if len(shape) != 3 or axis is None or shape[axis] not in _CHANNEL_COUNTS:
            raise InputError(f"Image of shape {shape} does not fit input_data_format={layout!r}.")
        return layout
    if len(shape) == 2:
        return "none"
    if len(shape) == 3:
        axes_by_preference = (0, 2) if issubclass(given, torch.Tensor) else (2, 0)
        for count in _CHANNEL_COUNTS:
            for axis in axes_by_preference:
                if shape[axis] == count:
                    return "channels_last" if axis == 2 else "channels_first"
    raise InputError(
        f"Image array has shape {shape}; expected (H, W), (H, W, C) or (C, H, W) with C = 1, 3 or 4 channels."
    )
