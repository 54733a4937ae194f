import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from PIL import Image

from sapiens2.errors import InputError
from sapiens2.geometry import letterbox_geometry, resize_image, resize_labels

NEAREST, LANCZOS, BILINEAR, BICUBIC, BOX = 0, 1, 2, 3, 4
TARGET = (64, 48)


def random_images(shape, dtype=torch.uint8):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(0, 256, shape, generator=generator).to(dtype)


@pytest.mark.parametrize("resample", [NEAREST, BILINEAR, BICUBIC])
@pytest.mark.parametrize("size", [(20, 90), (90, 20), (1, 1), (33, 1), (50, 40)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_resize_image__keeps_dtype_and_range_of_a_constant(resample, size, dtype):
    images = torch.full((2, 3, 50, 40), 200, dtype=dtype)
    result = resize_image(images, size, resample)
    assert result.dtype == dtype
    assert result.shape == (2, 3, *size)
    torch.testing.assert_close(result, torch.full_like(result, 200))


@pytest.mark.parametrize("resample", [NEAREST, BILINEAR, BICUBIC])
@pytest.mark.parametrize("size", [(20, 31), (90, 104), (25, 80)])
def test_resize_image__equals_pil_within_rounding(resample, size):
    images = random_images((1, 3, 50, 40)) // 4 + 96  # no overshoot beyond 8 bits, which the two cut off differently
    result = resize_image(images, size, resample)[0].permute(1, 2, 0).numpy()
    source = Image.fromarray(images[0].permute(1, 2, 0).numpy())
    expected = np.asarray(source.resize(size[::-1], resample=Image.Resampling(resample)))
    assert np.abs(result.astype(int) - expected.astype(int)).max() <= 2  # both round after each of two passes


def test_resize_image__accepts_the_enumeration_of_pil():
    images = random_images((1, 3, 20, 20))
    assert resize_image(images, (9, 9), Image.Resampling.BICUBIC).equal(resize_image(images, (9, 9), BICUBIC))


def test_resize_image__bicubic_8_bit_saturates_instead_of_wrapping():
    images = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    images[..., 4:] = 255
    for size in ((8, 64), (1, 1)):
        result = resize_image(images, size, BICUBIC)
        assert (result[..., :1] <= 128).all()
        assert result[..., -1].min() >= 127


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32])
def test_resize_image__other_integers_are_rounded(dtype):
    images = random_images((1, 1, 20, 20), dtype) * 100
    result = resize_image(images, (7, 9))
    assert result.dtype == dtype
    torch.testing.assert_close(result.float(), resize_image(images.float(), (7, 9)), atol=0.51, rtol=0)


def test_resize_image__batch_equals_one_by_one_in_any_memory_format():
    images = random_images((3, 3, 40, 30))
    together = resize_image(images, TARGET)
    assert together.equal(torch.cat([resize_image(image[None], TARGET) for image in images]))
    assert together.equal(resize_image(images.contiguous(memory_format=torch.channels_last), TARGET))


def test_resize_image__no_images_and_same_size():
    assert resize_image(torch.zeros(0, 3, 5, 5, dtype=torch.uint8), TARGET).shape == (0, 3, *TARGET)
    images = random_images((1, 3, *TARGET))
    assert resize_image(images, TARGET).equal(images)


@pytest.mark.parametrize(
    ("resample", "message"),
    [(LANCZOS, "lanczos"), (BOX, "box"), (5, "hamming"), (9, "unknown"), (Image.Resampling.LANCZOS, "lanczos")],
)
def test_resize_image__names_an_unsupported_filter(resample, message):
    with pytest.raises(InputError, match=rf"filter is {message} .*expected one of nearest \(0\), bilinear \(2\)"):
        resize_image(torch.zeros(1, 3, 5, 5), TARGET, resample)


@pytest.mark.parametrize("shape", [(3, 5, 5), (1, 3, 0, 5), (1, 0, 5, 5)])
def test_resize_image__refuses_other_shapes(shape):
    with pytest.raises(InputError, match=r"expected \(batch, channels, height, width\)"):
        resize_image(torch.zeros(shape), TARGET)


@pytest.mark.parametrize("size", [(0, 5), (5, -1), (5,)])
@pytest.mark.parametrize("resize", [resize_image, resize_labels])
def test_resize_image__refuses_sizes_below_one(resize, size):
    images = torch.zeros(1, 3, 5, 5) if resize is resize_image else torch.zeros(1, 5, 5)
    with pytest.raises(InputError, match="each at least 1"):
        resize(images, size)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("size", [(120, 90), (17, 23), (500, 333), (1, 1)])
def test_resize_labels__only_ids_of_the_source_appear(dtype, size):
    maps = torch.zeros(2, 120, 90, dtype=dtype)
    maps[:, :, 45:] = 28
    result = resize_labels(maps, size)
    assert result.dtype == dtype
    assert result.shape == (2, *size)
    assert set(result.unique().tolist()) <= set(maps.unique().tolist())


@pytest.mark.parametrize("size", [(20, 31), (90, 104), (50, 40), (1, 7)])
def test_resize_labels__equals_pil(size):
    maps = random_images((1, 50, 40))
    expected = np.asarray(Image.fromarray(maps[0].numpy()).resize(size[::-1], resample=Image.Resampling.NEAREST))
    assert np.array_equal(resize_labels(maps, size)[0].numpy(), expected)


def test_resize_labels__repeats_pixels_when_it_doubles():
    maps = random_images((1, 5, 4), torch.int64)
    assert resize_labels(maps, (10, 8)).equal(maps.repeat_interleave(2, 1).repeat_interleave(2, 2))


def test_resize_labels__no_maps():
    assert resize_labels(torch.zeros(0, 5, 5, dtype=torch.int64), TARGET).shape == (0, *TARGET)


@pytest.mark.parametrize("shape", [(5, 5), (1, 1, 5, 5), (1, 0, 5)])
def test_resize_labels__refuses_other_shapes(shape):
    with pytest.raises(InputError, match=r"expected \(batch, height, width\)"):
        resize_labels(torch.zeros(shape), TARGET)


@given(
    source=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    target=st.tuples(st.integers(1, 1024), st.integers(1, 1024)),
)
@settings(max_examples=200, deadline=None)
def test_letterbox_geometry__laws(source, target):
    box = letterbox_geometry(source, target)
    assert all(1 <= scaled <= whole for scaled, whole in zip(box.scaled_hw, target, strict=True))
    assert box.top + box.scaled_hw[0] + box.bottom == target[0]
    assert box.left + box.scaled_hw[1] + box.right == target[1]
    assert 0 <= box.bottom - box.top <= 1
    assert 0 <= box.right - box.left <= 1
    # One side touches the frame, but for a rounding error of the scale.
    assert min(target[0] - box.scaled_hw[0], target[1] - box.scaled_hw[1]) <= 1


@pytest.mark.parametrize(
    ("source", "scaled", "top", "left"),
    [
        ((100, 100), (48, 48), 8, 0),
        ((101, 99), (48, 48), 8, 0),
        ((64, 47), (64, 47), 0, 0),
        ((102, 99), (49, 48), 7, 0),
        ((7, 1000), (1, 48), 31, 0),
        ((1, 500), (1, 48), 31, 0),
        ((500, 1), (64, 1), 0, 23),
        ((1, 1), (48, 48), 8, 0),
    ],
)
def test_letterbox_geometry__golden(source, scaled, top, left):
    box = letterbox_geometry(source, TARGET)
    assert (box.scaled_hw, box.top, box.left) == (scaled, top, left)


@pytest.mark.parametrize("hw", [(100, 70), (101, 99), (7, 1000), (1, 500), (500, 1), (64, 48)])
def test_letterbox__pad_and_unpad_are_inverse(hw):
    box = letterbox_geometry(hw, TARGET)
    labels = random_images((2, *box.scaled_hw), torch.int64)
    padded = box.pad(labels, 255)
    assert padded.shape == (2, *TARGET)
    assert box.unpad(padded).equal(labels)
    assert (padded == 255).sum() == (labels == 255).sum() + 2 * (64 * 48 - labels[0].numel())


@pytest.mark.parametrize("hw", [(100, 70), (101, 99), (7, 1000), (1, 500), (500, 1), (64, 48)])
@pytest.mark.parametrize("resolution", [(128, 96), (32, 24), (16, 12), (1, 1), (37, 91)])
def test_letterbox__unpad_at_another_resolution_shows_the_same_part(hw, resolution):
    box = letterbox_geometry(hw, TARGET)
    frame = box.pad(torch.ones(1, *box.scaled_hw))
    part = box.unpad(resize_labels(frame, resolution))
    assert part.numel() > 0
    for axis in (0, 1):
        exact = box.scaled_hw[axis] * resolution[axis] / TARGET[axis]
        assert abs(part.shape[axis + 1] - exact) <= 1
    if min(resolution) >= 64:
        assert part.mean() > 0.5


def test_letterbox__unpad_at_twice_the_resolution_is_exact():
    box = letterbox_geometry((101, 71), TARGET)
    frame = box.pad(torch.ones(1, *box.scaled_hw))
    doubled = resize_labels(frame, (128, 96))
    assert box.unpad(doubled).shape == (1, 2 * box.scaled_hw[0], 2 * box.scaled_hw[1])
    assert (box.unpad(doubled) == 1).all()


def test_letterbox__pad_refuses_images_of_another_size():
    with pytest.raises(InputError, match=r"size \(5, 5\); expected \(48, 48\)"):
        letterbox_geometry((10, 10), TARGET).pad(torch.zeros(3, 5, 5))


def test_letterbox__is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        letterbox_geometry((10, 10), TARGET).top = 3


@pytest.mark.parametrize(("source", "target"), [((0, 5), TARGET), ((5, 0), TARGET), ((5, 5), (0, 48))])
def test_letterbox_geometry__refuses_sizes_below_one(source, target):
    with pytest.raises(InputError, match="each at least 1"):
        letterbox_geometry(source, target)
