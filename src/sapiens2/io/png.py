"""PNG files: 8-bit pictures, class maps with a palette, and 16-bit colour for surface normals."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, real_array
from sapiens2.io.atomic import write_bytes
from sapiens2.io.png16 import decode_rgb16, encode_rgb16, is_rgb16
from sapiens2.types import PathLike

if TYPE_CHECKING:
    from PIL.PngImagePlugin import PngInfo

__all__ = ["PngContents", "encode_png", "read_normals_png", "read_png", "write_normals_png", "write_png"]

MIN_NORMAL_LENGTH = 1e-3
"""Decoded vectors shorter than this are "no normal": zero lies between two 16-bit steps."""


class PngContents(NamedTuple):
    """What a PNG file holds.

    Attributes:
        pixels: ``(H, W)`` grey values or class ids, ``(H, W, 3)`` RGB or ``(H, W, 4)`` RGBA; uint8 or uint16.
        palette_rgb: ``(N, 3)`` uint8 colours of the class ids; None when the file has no palette.
        text: Keyword -> text.
    """

    pixels: NDArray[Any]
    palette_rgb: NDArray[np.uint8] | None
    text: dict[str, str]


def encode_png(
    pixels: Any,
    *,
    palette_rgb: Sequence[Sequence[int]] | NDArray[Any] | None = None,
    text: Mapping[str, str] | None = None,
) -> bytes:
    """Encode an array as the bytes of a PNG file.

    Args:
        pixels: uint8 ``(H, W)`` grey or class ids, ``(H, W, 3)`` RGB, ``(H, W, 4)`` RGBA with straight alpha; or uint16
            ``(H, W)`` grey or class ids, ``(H, W, 3)`` RGB.
        palette_rgb: Up to 256 colours, which make uint8 ``(H, W)`` pixels class ids.
        text: Keyword -> text, stored as metadata. Keywords are 1 to 79 Latin-1 characters, such as ``Comment``.

    Returns:
        The file's content. Runs of filtered bytes are packed, which makes pictures and maps as small as zlib's own
        choice within a few percent, in a third of the time.

    Raises:
        InputError: A shape, dtype, palette or keyword that PNG has no form for, or a class id without a colour.
    """
    from PIL import Image

    array = real_array(pixels, "pixels")
    kind = (array.dtype.name, *array.shape[2:])
    if array.ndim not in (2, 3) or kind not in {
        ("uint8",),
        ("uint8", 3),
        ("uint8", 4),
        ("uint16",),
        ("uint16", 3),
    }:
        raise InputError(
            "pixels must be uint8 (H, W), (H, W, 3) or (H, W, 4), or uint16 (H, W) or (H, W, 3); "
            f"got {array.dtype} {array.shape}"
        )
    if array.size == 0:
        raise InputError(f"pixels must not be empty, got shape {array.shape}")
    info = _text_info(text or {})
    if kind == ("uint16", 3):
        return encode_rgb16(array, [(name, data) for name, data, *_ in info.chunks])
    image = Image.fromarray(np.ascontiguousarray(array))
    if palette_rgb is not None:
        image.putpalette(_palette_bytes(palette_rgb, array))
    stream = io.BytesIO()
    image.save(stream, format="PNG", pnginfo=info, compress_level=1, compress_type=zlib.Z_RLE)
    return stream.getvalue()


def write_png(
    path: PathLike,
    pixels: Any,
    *,
    palette_rgb: Sequence[Sequence[int]] | NDArray[Any] | None = None,
    text: Mapping[str, str] | None = None,
) -> Path:
    """Write what :func:`encode_png` makes to a file.

    Returns:
        The path.

    Raises:
        InputError: As :func:`encode_png` and :func:`sapiens2.io.atomic.atomic_path`; nothing is written.
    """
    return write_bytes(path, encode_png(pixels, palette_rgb=palette_rgb, text=text))


def read_png(path: PathLike) -> PngContents:
    """Read a PNG file without converting it: class ids stay ids, 16-bit colour stays 16-bit.

    Raises:
        InputError: The file is not a PNG file or is damaged, or has a layout that :func:`encode_png` does not write.
    """
    from PIL import Image

    content = Path(path).read_bytes()
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            image.load()
            mode = image.mode
            text = {key: str(value) for key, value in getattr(image, "text", {}).items()}
            palette = np.asarray(image.getpalette("RGB"), np.uint8).reshape(-1, 3) if mode == "P" else None
            pixels = decode_rgb16(content) if is_rgb16(content) else np.array(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path} is not a readable PNG file: {error}") from error
    if mode not in ("L", "P", "I;16", "RGB", "RGBA"):
        raise InputError(f"{path} has pixels of mode {mode}; expected grey, palette, RGB or RGBA")
    return PngContents(pixels, palette, text)


def write_normals_png(path: PathLike, normals: Any, *, text: Mapping[str, str] | None = None) -> Path:
    """Write surface normals as 16-bit RGB: each component is ``round((n + 1) / 2 * 65535)``.

    Red, green and blue are x, y and z. The step is 3.1e-5, so a unit vector keeps its direction to about 0.002 degrees.
    A zero vector ("no normal") becomes 32768 in each channel.

    Args:
        path: The file to make or replace.
        normals: ``(3, H, W)`` float, finite, components in [-1, 1].
        text: As in :func:`encode_png`.

    Returns:
        The path.

    Raises:
        InputError: Another shape, values that are not finite or exceed 1 in magnitude, or as :func:`write_png`.

    Convention: OpenCV camera frame, x right, y down.
    """
    array = checked_array(normals, "normals", (3, "H", "W"), finite=True)
    if array.size and np.abs(array).max() > 1 + 1e-4:
        raise InputError(f"normals must lie in [-1, 1], got a component of magnitude {np.abs(array).max():.4g}")
    encoded = np.rint((array.astype(np.float64).clip(-1, 1) + 1) / 2 * 65535).astype(np.uint16)
    return write_png(path, encoded.transpose(1, 2, 0), text=text)


def read_normals_png(path: PathLike) -> NDArray[np.float32]:
    """Read the normals that :func:`write_normals_png` wrote.

    Returns:
        ``(3, H, W)`` float32: unit vectors as they were written to within 1.6e-5 per component, and exact zero vectors.

    Raises:
        InputError: The file is not 16-bit RGB.
    """
    pixels = read_png(path).pixels
    if pixels.dtype != np.uint16:
        raise InputError(f"{path} does not hold normals: expected 16-bit RGB, got {pixels.dtype} {pixels.shape}")
    normals = (pixels.astype(np.float64) / 65535 * 2 - 1).transpose(2, 0, 1)
    normals[:, np.linalg.norm(normals, axis=0) < MIN_NORMAL_LENGTH] = 0
    return np.ascontiguousarray(normals, np.float32)


def _text_info(text: Mapping[str, str]) -> PngInfo:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    for keyword, value in text.items():
        if not 0 < len(keyword) < 80 or not keyword.isprintable() or max(keyword) > "\xff":
            raise InputError(f"a PNG text keyword must be 1 to 79 printable Latin-1 characters, got {keyword!r}")
        if "\0" in value:
            raise InputError(f"the PNG text of {keyword} must not contain a NUL character")
        info.add_text(keyword, value)
    return info


def _palette_bytes(palette_rgb: Sequence[Sequence[int]] | NDArray[Any], ids: NDArray[np.uint8]) -> bytes:
    palette = checked_array(palette_rgb, "palette_rgb", ("N", 3), finite=True)
    if ids.ndim != 2 or ids.dtype != np.uint8:
        raise InputError(f"only uint8 (H, W) class ids can have a palette, got {ids.dtype} pixels of shape {ids.shape}")
    if not 0 < len(palette) <= 256 or palette.min() < 0 or palette.max() > 255:
        raise InputError(f"palette_rgb must be 1 to 256 colours in 0..255, got {len(palette)} colours")
    if ids.max() >= len(palette):
        raise InputError(f"class id {ids.max()} has no colour: palette_rgb has {len(palette)} entries")
    return palette.astype(np.uint8).tobytes()
