"""The codec of PNG files with 16 bits per colour, which Pillow neither writes nor reads in full.

Source: PNG specification, third edition (W3C, 2025), sections 5 (chunks), 9 (filters) and 11.2 (critical chunks).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["decode_rgb16", "encode_rgb16", "is_rgb16"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = struct.Struct(">IIBBBBB")  # width, height, bit depth, colour type, compression, filter, interlace
RGB = 2  # colour type
PIXEL_BYTES = 6
FASTEST = 1  # level of zlib: on normal maps 3 % larger than level 6, in less than half the time


def encode_rgb16(pixels: NDArray[np.uint16], extra_chunks: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    """Encode ``(H, W, 3)`` uint16 as a PNG file; ``extra_chunks`` are (type, data) pairs put before the pixels."""
    height, width, _ = pixels.shape
    rows = np.ascontiguousarray(pixels.astype(">u2")).view(np.uint8).reshape(height, width * PIXEL_BYTES)
    chunks = [
        (b"IHDR", HEADER.pack(width, height, 16, RGB, 0, 0, 0)),
        *extra_chunks,
        (b"IDAT", zlib.compress(_filtered(rows).tobytes(), FASTEST)),
        (b"IEND", b""),
    ]
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def is_rgb16(content: bytes) -> bool:
    """Whether a file is PNG with three colours of 16 bits."""
    return content.startswith(SIGNATURE) and len(content) >= 33 and HEADER.unpack_from(content, 16)[2:4] == (16, RGB)


def decode_rgb16(content: bytes) -> NDArray[np.uint16]:
    """Decode a PNG file for which :func:`is_rgb16` holds.

    Returns:
        ``(H, W, 3)`` uint16.

    Raises:
        ValueError: Damaged or cut short, or interlaced.
    """
    width, height, *_, interlace = HEADER.unpack_from(content, 16)
    if interlace:
        raise ValueError("interlaced 16-bit pictures are not supported; save it without interlacing")
    try:
        raw = zlib.decompress(b"".join(data for kind, data in _chunks(content) if kind == b"IDAT"))
    except zlib.error as error:
        raise ValueError(f"its pixels are damaged ({error})") from error
    stride = width * PIXEL_BYTES
    if len(raw) != height * (stride + 1):
        raise ValueError(f"it holds {len(raw)} bytes of pixels, and {width}x{height} needs {height * (stride + 1)}")
    lines = np.frombuffer(raw, np.uint8).reshape(height, stride + 1)
    rows = np.empty((height, stride), np.uint8)
    previous = np.zeros(stride, np.uint8)
    for index, line in enumerate(lines):
        previous = rows[index] = _unfiltered(int(line[0]), line[1:], previous)
    return rows.view(">u2").astype(np.uint16).reshape(height, width, 3)


def _filtered(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``(H, S)`` bytes as ``(H, S + 1)``: each row with the filter that leaves the smallest differences.

    Of the five filters the first three are tried (none, left, above): these are undone a row at a time.
    """
    left = np.zeros_like(rows)
    left[:, PIXEL_BYTES:] = rows[:, :-PIXEL_BYTES]
    above = np.zeros_like(rows)
    above[1:] = rows[:-1]
    candidates = np.stack([rows, rows - left, rows - above])
    cost = np.abs(candidates.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64)  # (3, H)
    best = cost.argmin(axis=0)
    filtered = candidates[best, np.arange(len(rows))]
    return np.concatenate([best[:, None].astype(np.uint8), filtered], axis=1)


def _unfiltered(kind: int, line: NDArray[np.uint8], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line.reshape(-1, PIXEL_BYTES), axis=0, dtype=np.uint8).reshape(-1)
    if kind == 2:
        return line + above
    if kind in (3, 4):
        return _unfiltered_one_by_one(kind, line, above)
    raise ValueError(f"it uses filter {kind}, and PNG has 0 to 4")


def _unfiltered_one_by_one(kind: int, line: NDArray[np.uint8], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Undo the average (3) and Paeth (4) filters, which other programs write; each byte needs the one before it."""
    ups, out = above.tolist(), line.tolist()
    for index, value in enumerate(out):
        up = ups[index]
        left, corner = (out[index - PIXEL_BYTES], ups[index - PIXEL_BYTES]) if index >= PIXEL_BYTES else (0, 0)
        if kind == 3:
            predicted = (left + up) // 2
        else:
            by_left, by_up, by_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            predicted = left if by_left <= min(by_up, by_corner) else up if by_up <= by_corner else corner
        out[index] = (value + predicted) & 0xFF
    return np.array(out, np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(SIGNATURE)
    while position + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, position)
        kind, data = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        if content[position + 8 + length : position + 12 + length] != struct.pack(">I", zlib.crc32(kind + data)):
            raise ValueError(f"its {kind!r} chunk is damaged")
        yield kind, data
        position += 12 + length
