"""Every kind of image that users hold becomes the same kind of tensor."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from sapiens2.errors import InputError
from sapiens2.processing.image_input import image_size_hw, list_images, load_image, load_images

HEIGHT, WIDTH = 5, 7
ORIENTATION = 0x0112


@pytest.fixture(scope="module")
def rgb() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def planes(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.copy()).permute(2, 0, 1)


def with_orientation(image: Image.Image, orientation: int, image_format: str = "png") -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    buffer = io.BytesIO()
    image.save(buffer, format=image_format, exif=exif)
    return buffer.getvalue()


PIL_MODES = ["1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "F", "I"]


@pytest.mark.parametrize("mode", [*PIL_MODES, "I;16", "I;16B", "I;16L"])
def test_load_image__every_pil_mode(mode: str) -> None:
    loaded = load_image(Image.new(mode, (WIDTH, HEIGHT)))
    assert loaded.shape == (3, HEIGHT, WIDTH)
    assert loaded.dtype == (torch.float32 if mode == "F" else torch.uint8)


@pytest.mark.parametrize("mode", PIL_MODES)
def test_load_image__every_pil_mode_keeps_white(mode: str) -> None:
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    for step in {"La": ["LA", "La"], "RGBa": ["RGBA", "RGBa"], "PA": ["P", "PA"], "I": ["L", "I"]}.get(mode, [mode]):
        image = image.convert(step)
    assert image.mode == mode
    assert load_image(image).min() >= 254


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a,
        lambda a: a.transpose(2, 0, 1),
        lambda a: a[..., ::-1][..., ::-1],
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(np.int64),
        lambda a: a.astype(">i4"),
        lambda a: a.astype(np.uint16) * 257,
        lambda a: np.dstack([a, np.full(a.shape[:2], 255, np.uint8)]),
        lambda a: torch.from_numpy(a.copy()),
        lambda a: planes(a),
        lambda a: planes(a).to(torch.int16),
        lambda a: Image.fromarray(a),
        lambda a: Image.fromarray(a).convert("RGBA"),
    ],
)
def test_load_image__same_picture_in_every_container(rgb: np.ndarray, make) -> None:
    assert torch.equal(load_image(make(rgb)), planes(rgb))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("full_scale", [1, 255])
def test_load_image__both_float_ranges(rgb: np.ndarray, dtype: type, full_scale: int) -> None:
    loaded = load_image((rgb / 255 * full_scale).astype(dtype))
    assert loaded.dtype == torch.float32
    torch.testing.assert_close(loaded, planes(rgb).float(), atol=0.13 if dtype is np.float16 else 1e-4, rtol=0)


def test_load_image__bfloat16_tensor_with_gradient() -> None:
    loaded = load_image(torch.full((3, 4, 4), 0.5, dtype=torch.bfloat16, requires_grad=True))
    assert loaded.dtype == torch.float32
    assert not loaded.requires_grad
    assert loaded.unique().tolist() == [127.5]


def test_load_image__overshoot_of_cubic_resampling_is_clamped() -> None:
    loaded = load_image(np.array([[-0.05, 0.5, 1.05]] * 2, dtype=np.float32))
    assert loaded[0, 0].tolist() == [0.0, 127.5, 255.0]


@pytest.mark.parametrize("value", [-0.5, 400.0, -255.0])
def test_load_image__float_out_of_both_ranges(value: float) -> None:
    with pytest.raises(InputError, match=r"values from .*expected 0\.\.1 or 0\.\.255.*do_rescale=False"):
        load_image(np.array([[0.0, value]], dtype=np.float32))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_load_image__not_finite(value: float) -> None:
    with pytest.raises(InputError, match="NaN or infinite"):
        load_image(np.array([[0.0, value]], dtype=np.float32))


@pytest.mark.parametrize("mode", ["I;16", "uint16"])
def test_load_image__sixteen_bits_by_range(mode: str) -> None:
    values = np.array([[0, 128, 129, 32768, 65535]], dtype=np.uint16)
    loaded = load_image(Image.fromarray(values) if mode == "I;16" else values)
    assert loaded[0, 0].tolist() == [0, 0, 1, 128, 255]


def test_load_image__sixteen_bit_png_file(tmp_path: Path) -> None:
    path = tmp_path / "deep.png"
    Image.fromarray(np.array([[0, 65535]], dtype=np.uint16)).save(path)
    assert load_image(path)[0, 0].tolist() == [0, 255]


def test_load_image__wide_integers_by_value() -> None:
    assert load_image(np.array([[0, 255]], dtype=np.int32))[0, 0].tolist() == [0, 255]
    assert load_image(np.array([[0, 65535]], dtype=np.int32))[0, 0].tolist() == [0, 255]


@pytest.mark.parametrize("value", [-1, 65536])
def test_load_image__wide_integers_out_of_range(value: int) -> None:
    with pytest.raises(InputError, match=r"expected 0\.\.255 or 0\.\.65535"):
        load_image(np.array([[0, value]], dtype=np.int32))


def test_load_image__bool_is_black_and_white() -> None:
    assert load_image(np.array([[False, True]]))[0, 0].tolist() == [0, 255]
    assert load_image(torch.tensor([[False, True]]))[0, 0].tolist() == [0, 255]


@pytest.mark.parametrize("kind", ["pil", "numpy", "torch", "float", "float255"])
def test_load_image__transparency_is_composited_over_white(kind: str) -> None:
    rgba = np.zeros((2, 5, 4), dtype=np.uint8)
    rgba[:, 0] = (10, 20, 30, 255)
    rgba[:, 1] = (10, 20, 30, 0)
    rgba[:, 2] = (0, 0, 0, 51)
    image = {
        "pil": Image.fromarray(rgba),
        "numpy": rgba,
        "torch": planes(rgba),
        "float": (rgba / 255).astype(np.float32),
        "float255": rgba.astype(np.float32),
    }[kind]
    loaded = load_image(image).float().round()
    assert loaded[:, 0, 0].tolist() == [10, 20, 30]
    assert loaded[:, 0, 1].tolist() == [255, 255, 255]
    assert loaded[:, 0, 2].tolist() == [204, 204, 204]


@pytest.mark.parametrize("mode", ["P", "L", "RGB"])
def test_load_image__transparent_colour_of_png(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "key.png"
    image = Image.new("RGB", (3, 2), (0, 0, 0)).convert(mode)
    image.save(path, transparency=(0, 0, 0) if mode == "RGB" else 0)
    assert load_image(path).unique().tolist() == [255]


def test_load_image__gray_is_three_equal_channels() -> None:
    gray = np.arange(35, dtype=np.uint8).reshape(5, 7)
    for image in (gray, gray[..., None], gray[None], torch.from_numpy(gray), Image.fromarray(gray)):
        loaded = load_image(image)
        assert loaded.shape == (3, 5, 7)
        assert all(torch.equal(channel, torch.from_numpy(gray)) for channel in loaded)


@pytest.mark.parametrize(
    ("shape", "expected_hw"),
    [((3, 9, 3), (3, 9)), ((4, 9, 3), (4, 9)), ((1, 9, 3), (1, 9)), ((3, 1, 1), (1, 1)), ((1, 1, 3), (1, 1))],
)
def test_load_image__ambiguous_numpy_layout(shape: tuple[int, ...], expected_hw: tuple[int, int]) -> None:
    assert load_image(np.zeros(shape, np.uint8)).shape[1:] == expected_hw


@pytest.mark.parametrize(("shape", "expected_hw"), [((3, 9, 3), (9, 3)), ((3, 1, 1), (1, 1)), ((1, 1, 3), (1, 1))])
def test_load_image__ambiguous_torch_layout(shape: tuple[int, ...], expected_hw: tuple[int, int]) -> None:
    assert load_image(torch.zeros(shape, dtype=torch.uint8)).shape[1:] == expected_hw


def test_load_image__input_data_format_overrides() -> None:
    array = np.zeros((3, 9, 3), np.uint8)
    assert load_image(array, input_data_format="channels_first").shape == (3, 9, 3)
    assert load_image(array, input_data_format="channels_last").shape == (3, 3, 9)
    with pytest.raises(InputError, match="does not fit input_data_format='channels_last'"):
        load_image(np.zeros((3, 9, 9), np.uint8), input_data_format="channels_last")
    with pytest.raises(InputError, match="input_data_format is 'hwc'"):
        load_image(array, input_data_format="hwc")


@pytest.mark.parametrize("shape", [(5,), (2, 8, 8), (8, 8, 5), (1, 2, 3, 4, 5)])
def test_load_image__no_image_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"Image array has shape .*1, 3 or 4 channels"):
        load_image(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("image", [np.zeros((0, 4, 3), np.uint8), torch.zeros(3, 4, 0), Image.new("RGB", (0, 4))])
def test_load_image__empty(image) -> None:
    with pytest.raises(InputError, match="Image is empty"):
        load_image(image)


@pytest.mark.parametrize("array", [np.array([["a"]]), np.zeros((4, 4), complex), torch.zeros(4, 4, dtype=torch.cfloat)])
def test_load_image__dtype_of_no_image(array) -> None:
    with pytest.raises(InputError, match="has dtype"):
        load_image(array)


@pytest.mark.parametrize("value", [None, 5, b"bytes", object()])
def test_load_image__no_image_type(value) -> None:
    with pytest.raises(InputError, match="Expected an image"):
        load_image(value)


def test_load_image__one_pixel() -> None:
    assert load_image(Image.new("RGB", (1, 1), (1, 2, 3))).flatten().tolist() == [1, 2, 3]


def test_load_image__read_only_and_shared_array() -> None:
    array = np.zeros((4, 4, 3), np.uint8)
    array.flags.writeable = False
    assert load_image(array).shape == (3, 4, 4)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["file", "pil", "converted"])
def test_load_image__exif_orientation_is_applied_once(
    rgb: np.ndarray, orientation: int, kind: str, tmp_path: Path
) -> None:
    data = with_orientation(Image.fromarray(rgb), orientation)
    path = tmp_path / "photo.png"
    path.write_bytes(data)
    opened = Image.open(io.BytesIO(data))
    image = {"file": path, "pil": opened, "converted": opened.convert("RGBA")}[kind]
    # independent of Pillow: the eight orientations as flips and a transposition
    expected = rgb
    if orientation in (5, 6, 7, 8):
        expected = expected.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        expected = expected[:, ::-1]
    if orientation in (3, 4, 7, 8):
        expected = expected[::-1]
    assert torch.equal(load_image(image), planes(expected))
    assert image_size_hw(image) == expected.shape[:2]


def test_load_image__normalised_floats_are_refused() -> None:
    with pytest.raises(InputError, match="normalised already"):
        load_image(np.linspace(-2.1, 2.6, 64, dtype=np.float32).reshape(8, 8))


def test_image_size_hw__reads_the_header_only(rgb: np.ndarray, tmp_path: Path) -> None:
    data = with_orientation(Image.fromarray(rgb).resize((40, 30)), 6, "jpeg")
    path = tmp_path / "cut.jpg"
    path.write_bytes(data[:-100])
    with pytest.raises(InputError):
        load_image(path)
    assert image_size_hw(path) == (40, 30)
    assert image_size_hw(str(path)) == (40, 30)


@pytest.mark.parametrize("mode", ["L", "P", "I;16", "1", "LA"])
def test_load_image__exif_orientation_in_other_modes(mode: str) -> None:
    gray = np.arange(HEIGHT * WIDTH, dtype=np.uint8).reshape(HEIGHT, WIDTH)
    image = Image.fromarray(gray.astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(gray).convert(mode)
    turned = Image.open(io.BytesIO(with_orientation(image, 6)))
    assert torch.equal(load_image(turned), load_image(image).rot90(-1, (1, 2)))


def test_image_size_hw__arrays() -> None:
    assert image_size_hw(np.zeros((4, 6, 3), np.uint8)) == (4, 6)
    assert image_size_hw(torch.zeros(3, 4, 6)) == (4, 6)
    assert image_size_hw(np.zeros((4, 6))) == (4, 6)


def test_load_image__truncated_file_is_named(rgb: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "half.jpg"
    buffer = io.BytesIO()
    Image.fromarray(np.tile(rgb, (20, 20, 1))).save(buffer, "jpeg")
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with pytest.raises(InputError, match=r"half\.jpg.*truncated"):
        load_image(path)


def test_load_image__truncated_pil_image_is_named(rgb: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "half.png"
    Image.fromarray(np.tile(rgb, (20, 20, 1))).save(path)
    path.write_bytes(path.read_bytes()[:500])
    with Image.open(path) as opened, pytest.raises(InputError, match=r"half\.png.*truncated"):
        load_image(opened)


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0garbage", b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0II*\0\x08\0\0\0\x01\0"]
)
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # Pillow's own
def test_load_image__damaged_exif_does_not_matter(rgb: np.ndarray, exif: bytes, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    Image.fromarray(rgb).save(path, exif=exif)
    assert torch.equal(load_image(path), planes(rgb))
    assert image_size_hw(path) == (HEIGHT, WIDTH)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.jpg", b"hello", "not an image file"),
        ("empty.png", b"", "not an image file"),
        ("absent.png", None, "no file"),
    ],
)
def test_load_image__bad_file_is_named(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    for function in (load_image, image_size_hw):
        with pytest.raises(InputError, match=message) as caught:
            function(str(path))
        assert name in str(caught.value)


def test_load_image__folder_and_web_address(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        load_image(tmp_path)
    with pytest.raises(InputError, match=r"web address.*Download"):
        load_image("https://example.com/a.jpg")


def test_load_images__lists_batches_and_mixed_sizes(rgb: np.ndarray) -> None:
    other = Image.new("L", (2, 3))
    assert [image.shape[1:] for image in load_images([rgb, other])] == [(HEIGHT, WIDTH), (3, 2)]
    assert len(load_images([[rgb, other], [rgb]])) == 3
    assert len(load_images(np.stack([rgb, rgb]))) == 2
    assert len(load_images(torch.zeros(4, 3, 2, 2))) == 4
    assert len(load_images(rgb)) == 1
    assert load_images([]) == []
    assert torch.equal(load_images((rgb,))[0], planes(rgb))


def test_list_images__something_else() -> None:
    with pytest.raises(InputError, match=r"got int"):
        list_images([1, 2])
    with pytest.raises(InputError, match="BytesIO"):
        list_images(b"bytes")


# What Pillow's plugins raise, and floats of a doubtful range


@pytest.mark.parametrize("kind", [RuntimeError, IndexError, KeyError, AssertionError, ZeroDivisionError, EOFError])
@pytest.mark.parametrize("stage", ["open", "load", "getexif"])
def test_load_image__names_the_file_whatever_its_decoder_raises(tmp_path, monkeypatch, stage, kind):
    path = tmp_path / "damaged.png"
    Image.new("RGB", (4, 3), "white").save(path)

    def fail(*args, **kwargs):
        raise kind("corrupt stream")

    monkeypatch.setattr(*{"open": (Image, "open")}.get(stage, (PngImageFile, stage)), fail)
    if stage == "getexif":
        assert load_image(path).shape == (3, 3, 4)
        return
    with pytest.raises(InputError, match=r"damaged\.png: .*corrupt stream"):
        load_image(path)


@pytest.mark.parametrize("brightest", [1.2, 1.5, 3.0, 8.0])
@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_load_image__warns_of_floats_just_above_one(rgb, brightest, convert):
    floats = convert(np.linspace(0, brightest, rgb.size, dtype=np.float32).reshape(rgb.shape))
    with pytest.warns(UserWarning, match=rf"0 to {brightest:.4g}: .*taken as 0..255.*clip\(0, 1\)"):
        assert int(load_image(floats, input_data_format="channels_last").max()) <= 8


@pytest.mark.parametrize("brightest", [0.5, 1.0, 1.09, 8.5, 255.0])  # any warning fails the test
def test_load_image__says_nothing_of_floats_in_a_usual_range(rgb, brightest):
    load_image(np.linspace(0, brightest, rgb.size, dtype=np.float32).reshape(rgb.shape))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros((4, 5, 3), device="meta"), "on the meta device"),
        (torch.zeros((4, 5, 3)).to_sparse(), "layout torch.sparse_coo"),
        (torch.zeros((4, 5, 3), dtype=torch.complex64), "dtype torch.complex64"),
    ],
)
def test_load_image__refuses_tensors_that_are_no_dense_numbers(tensor, message):
    with pytest.raises(InputError, match=message):
        load_image(tensor)


def test_load_image__field_of_a_record_array(rgb):
    records = np.zeros((HEIGHT, WIDTH, 3), dtype=[("other", np.uint8), ("value", np.float64)])
    records["value"] = rgb
    assert torch.equal(load_image(records["value"]), planes(rgb).float())
