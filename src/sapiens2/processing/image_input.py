"""Images of every kind that users hold, as one kind of tensor.

The rules, in one place:

* **Orientation.** The EXIF orientation of a file or a PIL image is applied, so rows and columns are those on display.
* **Transparency.** Transparent images are composited over white, as most viewers and transformers' own RGB conversion
  do. Dropping the alpha channel would uncover whatever colour the drawing program left below it.
* **Integers.** ``uint8`` is taken as it is; ``bool`` becomes 0 and 255; ``uint16`` (PIL ``I;16``) is scaled from
  0..65535. Wider or signed integers (PIL ``I``) carry no range in their type: values within 0..255 are 8-bit values,
  others within 0..65535 are 16-bit values.
* **Floats.** Values within 0..1 are intensities that are already scaled, others within 0..255 are byte values. A tenth
  of the range is allowed on either side, for the overshoot of cubic resampling, and is clamped away. Byte values that
  do not exceed 8 draw a warning: they are more likely intensities that exceed 1.
* **Layout.** A three-dimensional array has its channels (1, 3 or 4) first or last. Where both ends fit, three channels
  are more likely than four, and four than one; if that does not settle it, numpy arrays have channels last and tensors
  have them first. ``input_data_format`` overrides all of this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError

from sapiens2.errors import InputError
from sapiens2.processing.array_formats import as_tensor, as_uint8_or_float32, channels_first, over_white, to_byte_range
from sapiens2.types import ImageLike, SizeHW

__all__ = [
    "decode_pil",
    "displayed_pil",
    "image_size_hw",
    "is_image",
    "list_images",
    "load_image",
    "load_images",
    "open_image",
    "read_image",
    "require_rgb",
]

_EXIF_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_TRANSPOSING_ORIENTATIONS = range(5, 9)
_ORIENTATION_SOURCES = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")


def load_image(image: ImageLike, *, input_data_format: str | None = None) -> torch.Tensor:
    """Bring one image to RGB, channels first, with values of 0 to 255.

    The module's docstring lists the rules for orientation, transparency, value ranges and layouts.

    Args:
        image: PIL image in any mode, array or tensor (HxW, HxWxC or CxHxW, on any device), or path of a file.
        input_data_format: ``"channels_first"``, ``"channels_last"`` or ``"none"`` (no channel axis) for an array whose
            layout should not be guessed. Does not concern PIL images and files.

    Returns:
        ``(3, H, W)``, ``uint8``, or ``float32`` if the image holds floats; values of 0 to 255. A tensor stays on its
        device. Never shares memory with a PIL image; may share it with an array or tensor.

    Raises:
        InputError: The image cannot be read or understood, is empty, has values that are not finite or out of range.
    """
    pixels = read_image(image, input_data_format=input_data_format)
    return to_byte_range(pixels) if pixels.is_floating_point() else pixels


def load_images(images: ImageLike | Sequence[Any], *, input_data_format: str | None = None) -> list[torch.Tensor]:
    """Bring one image or many to what :func:`load_image` returns.

    Args:
        images: One image, a list of images of any kinds and sizes (lists in it are flattened), or a batch array
            ``(B, H, W, C)`` or ``(B, C, H, W)``.
        input_data_format: As for :func:`load_image`.

    Returns:
        One tensor per image.

    Raises:
        InputError: As for :func:`load_image`.
    """
    return [load_image(image, input_data_format=input_data_format) for image in list_images(images)]


def list_images(images: ImageLike | Sequence[Any]) -> list[ImageLike]:
    """List the single images in ``images``, without reading any.

    Args:
        images: As for :func:`load_images`.

    Returns:
        One entry per image; a batch array is split along its first axis.

    Raises:
        InputError: Something is neither an image nor a list of images.
    """
    if isinstance(images, list | tuple):
        return [image for entry in images for image in list_images(entry)]
    if isinstance(images, np.ndarray | torch.Tensor) and images.ndim == 4:
        return list(images)
    if not is_image(images):
        raise InputError(
            f"Expected an image (PIL image, numpy array, tensor, or path), got {type(images).__name__}."
            + (" Open encoded bytes with PIL.Image.open(io.BytesIO(data))." if isinstance(images, bytes) else "")
        )
    return [cast("ImageLike", images)]


def is_image(value: object) -> bool:
    """Tell whether ``value`` is of a type that :func:`load_image` accepts."""
    return isinstance(value, Image.Image | np.ndarray | torch.Tensor | str | os.PathLike)


def image_size_hw(image: ImageLike, *, input_data_format: str | None = None) -> SizeHW:
    """Size of an image as displayed, read from the header of a file without decoding its pixels.

    Args:
        image: As for :func:`load_image`.
        input_data_format: As for :func:`load_image`.

    Returns:
        ``(height, width)`` in pixels, after the EXIF orientation.

    Raises:
        InputError: The file cannot be read, or the array is no image.
    """
    if isinstance(image, np.ndarray | torch.Tensor):
        height, width = channels_first(as_tensor(image), type(image), input_data_format).shape[-2:]
        return int(height), int(width)
    if isinstance(image, Image.Image):
        return _displayed_size_hw(image)
    with open_image(image) as opened:
        return _displayed_size_hw(opened)


def read_image(image: ImageLike, *, input_data_format: str | None = None) -> torch.Tensor:
    """Bring one image to RGB, channels first, and leave the range of float values alone.

    Args:
        image: As for :func:`load_image`.
        input_data_format: As for :func:`load_image`.

    Returns:
        ``(3, H, W)``, ``uint8``, or ``float32`` with the values of the input if that holds floats.

    Raises:
        InputError: The image cannot be read or understood, is empty, or has values that are not finite.
    """
    if isinstance(image, np.ndarray | torch.Tensor):
        return _read_array(image, input_data_format)
    if isinstance(image, Image.Image):
        decode_pil(image)
        return _read_pil(image)
    with open_image(image) as opened:
        decode_pil(opened)
        return _read_pil(opened)


def require_rgb(image: ImageLike, *, input_data_format: str | None = None) -> None:
    """Refuse an image that would have to be converted to RGB.

    Args:
        image: As for :func:`load_image`.
        input_data_format: As for :func:`load_image`.

    Raises:
        InputError: The image is not RGB.
    """
    if isinstance(image, np.ndarray | torch.Tensor):
        channels = channels_first(as_tensor(image), type(image), input_data_format).shape[0]
        found = None if channels == 3 else f"{channels} channels"
    elif isinstance(image, Image.Image):
        found = None if image.mode == "RGB" else f"mode {image.mode}"
    else:
        with open_image(image) as opened:
            found = None if opened.mode == "RGB" else f"mode {opened.mode}"
    if found is not None:
        raise InputError(
            f"Image has {found} and do_convert_rgb=False; convert it to RGB, or leave do_convert_rgb unset."
        )


def open_image(path: ImageLike) -> Image.Image:
    """Open an image file; only its header is read.

    Args:
        path: Path of the file.

    Returns:
        The image, not decoded yet. Close it, or use it in a ``with`` statement.

    Raises:
        InputError: There is no such file, or it is no image.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"Expected an image (PIL image, numpy array, tensor, or path), got {type(path).__name__}.")
    name = os.fspath(path)
    if name.startswith(("http://", "https://")):
        raise InputError(f"{name} is a web address, not a file. Download it first.")
    try:
        return Image.open(Path(name))
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}.") from error
    except UnidentifiedImageError as error:
        raise InputError(f"{name} is not an image file in a format that Pillow reads.") from error
    except MemoryError:
        raise
    except Exception as error:  # a damaged file makes Pillow's plugins raise anything
        raise InputError(f"Cannot read {name}: {_reason(error)}.") from error


def decode_pil(image: Image.Image) -> None:
    """Decode the pixels of a PIL image, which are read from its file only now.

    Args:
        image: Image, opened or made in memory.

    Raises:
        InputError: The data are truncated or damaged.
    """
    try:
        image.load()
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise anything: RuntimeError, IndexError, struct.error
        name = getattr(image, "filename", "") or "image"
        raise InputError(f"Cannot decode {name}: {_reason(error)}. The file is truncated or damaged.") from error


def displayed_pil(image: Image.Image) -> Image.Image:
    """Turn a PIL image as its EXIF orientation says.

    Args:
        image: Image in any mode.

    Returns:
        ``image`` itself if it is upright; otherwise a turned copy without the tag, so that nobody turns it again.
    """
    turn = _TURNS.get(_orientation(image))
    if turn is None:
        return image
    turned = image.transpose(turn)
    for name in _ORIENTATION_SOURCES:
        turned.info.pop(name, None)
    return turned


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_EXIF_ORIENTATION, 1))
    except Exception:  # noqa: BLE001 (as in decode_pil; damaged metadata is common, and the picture may be sound)
        return 1


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__


def _displayed_size_hw(image: Image.Image) -> SizeHW:
    transposed = _orientation(image) in _TRANSPOSING_ORIENTATIONS
    return (image.width, image.height) if transposed else (image.height, image.width)


def _read_pil(image: Image.Image) -> torch.Tensor:
    if image.width == 0 or image.height == 0:
        raise InputError(f"Image is empty: {image.height} x {image.width} pixels.")
    image = displayed_pil(image)
    if image.mode == "F" or image.mode.startswith("I"):
        return _read_array(np.array(image), "none")
    if image.mode == "La":  # premultiplied gray; Pillow converts it to LA only
        image = image.convert("LA")
    if image.has_transparency_data:
        return over_white(torch.from_numpy(np.array(image.convert("RGBA"))).permute(2, 0, 1))
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    return torch.from_numpy(np.array(rgb)).permute(2, 0, 1)  # the strides stay HWC: torch resizes that layout fastest


def _read_array(array: np.ndarray[Any, Any] | torch.Tensor, input_data_format: str | None) -> torch.Tensor:
    pixels = channels_first(as_tensor(array), type(array), input_data_format)
    if pixels.numel() == 0:
        raise InputError(f"Image is empty: shape {tuple(array.shape)}.")
    pixels = as_uint8_or_float32(pixels)
    if pixels.is_floating_point() and not bool(torch.isfinite(pixels).all()):
        raise InputError("Image has values that are NaN or infinite.")
    if pixels.shape[0] == 4:
        return over_white(pixels)
    return pixels.expand(3, -1, -1)
