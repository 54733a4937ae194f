from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from sapiens2.errors import InputError
from sapiens2.io import encode_png, read_normals_png, read_png, write_normals_png, write_png
from sapiens2.io.png16 import decode_rgb16

RNG = np.random.default_rng(0)
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def pixels(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    return RNG.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize(
    "array",
    [
        pixels(5, 7),
        pixels(5, 7, 3),
        pixels(1, 1, 3),
        pixels(5, 7, 4),
        pixels(5, 7, 3, dtype=np.uint16),
        pixels(3, 5)[::-1],
    ],
    ids=["grey", "rgb", "one_pixel", "rgba", "rgb16", "negative_stride"],
)
def test_write_png__round_trip(tmp_path, array):
    contents = read_png(write_png(tmp_path / "a.png", array, text={"Comment": "random weights", "Title": "Ærø 東京"}))
    assert contents.pixels.dtype == array.dtype
    np.testing.assert_array_equal(contents.pixels, array)
    assert contents.palette_rgb is None
    assert contents.text == {"Comment": "random weights", "Title": "Ærø 東京"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("array", [pixels(5, 7), pixels(5, 7, 3), pixels(5, 7, 4)])
def test_encode_png__pillow_reads_the_same(tmp_path, array):
    with Image.open(write_png(tmp_path / "a.png", array)) as image:
        np.testing.assert_array_equal(np.asarray(image), array)


def test_encode_png__pillow_reads_the_high_bytes_of_16_bit_colour(tmp_path):
    array = pixels(9, 4, 3, dtype=np.uint16)
    with Image.open(write_png(tmp_path / "a.png", array, text={"Comment": "hello"})) as image:
        image.load()
        assert image.text == {"Comment": "hello"}
        assert np.abs(np.asarray(image).astype(int) - array / 257).max() <= 1


def test_write_png__class_map_keeps_ids_and_palette(tmp_path):
    ids, palette = np.array([[0, 1, 2], [28, 0, 5]], np.uint8), pixels(29, 3)
    contents = read_png(write_png(tmp_path / "a.png", ids, palette_rgb=palette))
    np.testing.assert_array_equal(contents.pixels, ids)
    np.testing.assert_array_equal(contents.palette_rgb[:29], palette)
    with Image.open(tmp_path / "a.png") as image:
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), palette[ids])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from([1, 300, 65535]))
def test_encode_png__16_bit_round_trip_of_any_content(height, width, seed, top):
    array = np.random.default_rng(seed).integers(0, top, (height, width, 3), np.uint16, endpoint=True)
    np.testing.assert_array_equal(decode_rgb16(encode_png(array)), array)


def filtered_png(array: np.ndarray, kind: int) -> bytes:
    """A 16-bit PNG in which every row has one filter, encoded byte by byte as the standard defines it."""
    height, width, _ = array.shape
    rows = array.astype(">u2").tobytes()
    stride, body = width * 6, bytearray()

    def at(y: int, x: int) -> int:
        return rows[y * stride + x] if y >= 0 and x >= 0 else 0

    for y in range(height):
        body.append(kind)
        for x in range(stride):
            a, b, c = at(y, x - 6), at(y - 1, x), at(y - 1, x - 6)
            paeth = min((abs(a + b - c - v), order, v) for order, v in enumerate((a, b, c)))[2]
            body.append((at(y, x) - (0, a, b, (a + b) // 2, paeth)[kind]) % 256)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(body)))]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in [*parts, (b"IEND", b"")]
    )


@pytest.mark.parametrize("kind", range(5))
def test_decode_rgb16__every_filter_of_the_standard(kind):
    array = pixels(4, 5, 3, dtype=np.uint16)
    np.testing.assert_array_equal(decode_rgb16(filtered_png(array, kind)), array)


def test_encode_png__filters_make_smooth_16_bit_maps_small():
    ramp = np.linspace(0, 65535, 200 * 200 * 3).reshape(200, 200, 3).astype(np.uint16)
    assert len(encode_png(ramp)) < ramp.nbytes / 8


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros((2, 2, 3), np.float32), {}, r"got float32 \(2, 2, 3\)"),
        (np.zeros((2, 2, 2), np.uint8), {}, r"got uint8 \(2, 2, 2\)"),
        (np.zeros((2, 2, 4), np.uint16), {}, r"got uint16 \(2, 2, 4\)"),
        (np.zeros(4, np.uint8), {}, r"got uint8 \(4,\)"),
        (np.zeros((0, 3), np.uint8), {}, "must not be empty"),
        (np.full((2, 2), 3, np.uint8), {"palette_rgb": np.zeros((3, 3))}, "class id 3 has no colour"),
        (np.zeros((2, 2, 3), np.uint8), {"palette_rgb": np.zeros((3, 3))}, "only uint8 .H, W. class ids can have"),
        (np.zeros((2, 2), np.uint16), {"palette_rgb": np.zeros((3, 3))}, "only uint8 .H, W. class ids can have"),
        (np.zeros((2, 2), np.uint8), {"palette_rgb": np.zeros((257, 3))}, "1 to 256 colours in 0..255, got 257"),
        (np.zeros((2, 2), np.uint8), {"text": {"": "x"}}, "1 to 79 printable Latin-1"),
        (np.zeros((2, 2), np.uint8), {"text": {"k" * 80: "x"}}, "1 to 79 printable Latin-1"),
        (np.zeros((2, 2), np.uint8), {"text": {"k": "a\0b"}}, "must not contain a NUL"),
    ],
)
def test_encode_png__refuses(array, options, message):
    with pytest.raises(InputError, match=message):
        encode_png(array, **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    "damage", [lambda c: c[: len(c) // 2], lambda c: c[:60] + bytes([c[60] ^ 255]) + c[61:], lambda c: c[8:]]
)
def test_read_png__damaged_file(tmp_path, damage, dtype):
    path = tmp_path / "a.png"
    path.write_bytes(damage(encode_png(pixels(20, 20, 3, dtype=dtype))))
    with pytest.raises(InputError, match=r"a\.png is not a readable PNG file"):
        read_png(path)


def test_write_normals_png__stays_within_half_a_step(tmp_path):
    normals = RNG.normal(size=(3, 20, 30))
    normals /= np.linalg.norm(normals, axis=0)
    normals[:, :2, :3] = 0
    normals[:, 5, 5] = (0, 0, -1)
    stored = read_normals_png(write_normals_png(tmp_path / "n.png", normals))
    assert (stored.dtype, stored.shape) == (np.float32, (3, 20, 30))
    assert np.abs(stored - normals).max() < 1.6e-5
    assert not stored[:, :2, :3].any()


def test_write_normals_png__encoding_is_the_documented_one(tmp_path):
    normals = np.array([-1.0, 0.0, 1.0]).reshape(3, 1, 1)
    assert read_png(write_normals_png(tmp_path / "n.png", normals)).pixels.ravel().tolist() == [0, 32768, 65535]


@pytest.mark.parametrize(
    ("normals", "message"),
    [
        (np.zeros((2, 2, 3)), r"normals must have shape \(3, H, W\)"),
        (np.full((3, 2, 2), np.nan), "normals must be finite"),
        (np.full((3, 2, 2), 1.5), "component of magnitude 1.5"),
    ],
)
def test_write_normals_png__refuses(tmp_path, normals, message):
    with pytest.raises(InputError, match=message):
        write_normals_png(tmp_path / "n.png", normals)


def test_read_normals_png__8_bit_file(tmp_path):
    with pytest.raises(InputError, match="expected 16-bit RGB, got uint8"):
        read_normals_png(write_png(tmp_path / "a.png", pixels(2, 2, 3)))


def test_write_png__sixteen_bit_ids_round_trip(tmp_path):
    ids = np.arange(65536, dtype=np.uint16).reshape(128, 512)
    read = read_png(write_png(tmp_path / "ids.png", ids, text={"Title": "ids"}))
    np.testing.assert_array_equal(read.pixels, ids)
    assert (read.pixels.dtype, read.palette_rgb, read.text) == (np.uint16, None, {"Title": "ids"})
