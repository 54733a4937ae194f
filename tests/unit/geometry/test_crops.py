import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.ndimage import map_coordinates

from sapiens2.errors import InputError
from sapiens2.geometry import crop_people, crop_to_image, image_to_crop

SIZE = (64, 48)
SMOOTH_MODES = ["auto", "bilinear", "bicubic"]
MODES = [*SMOOTH_MODES, "nearest"]


def random_image(height, width, dtype=torch.uint8):
    generator = torch.Generator().manual_seed(height * 1000 + width)
    return torch.randint(0, 256, (3, height, width), generator=generator).to(dtype)


def pixel_grid(size_hw):
    """Every pixel of a crop as points (1, h * w, 2)."""
    rows, columns = torch.meshgrid(*(torch.arange(side, dtype=torch.float64) for side in size_hw), indexing="ij")
    return torch.stack([columns, rows], dim=-1).view(1, -1, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64, torch.float16, torch.int64])
def test_crop_people__one_to_one_is_a_slice(mode, dtype):
    image = random_image(60, 70, dtype)
    box = torch.tensor([[11.0, 7.0, 31.0, 31.0]])  # a window of 31 pixel pitches has 32 pixels
    crop = crop_people(image, box, (32, 32), padding=1.0, mode=mode)
    assert crop.dtype == (dtype if mode == "nearest" else torch.float32)
    torch.testing.assert_close(crop[0].float(), image[:, 7:39, 11:43].float(), atol=2e-3, rtol=0)


@pytest.mark.parametrize("box", [[20.0, 20.0, 150.0, 90.0], [30.3, 41.7, 20.1, 22.2]])
def test_crop_people__a_linear_ramp_has_the_values_that_the_affine_says(box):
    rows, columns = torch.meshgrid(torch.arange(200.0), torch.arange(220.0), indexing="ij")
    boxes = torch.tensor([box])
    crop = crop_people(torch.stack([columns, rows]), boxes, SIZE, padding=1.1, mode="bilinear")
    points = crop_to_image(pixel_grid(SIZE), boxes, SIZE, 1.1).view(*SIZE, 2).permute(2, 0, 1)
    inside = ((points[0] >= 0) & (points[0] <= 219) & (points[1] >= 0) & (points[1] <= 199)).expand(2, *SIZE)
    assert inside.float().mean() > 0.6
    torch.testing.assert_close(crop[0][inside], points.float()[inside], atol=2e-3, rtol=0)


def linear_kernel(distance):
    return np.clip(1 - np.abs(distance), 0, None)


def cubic_kernel(distance, a=-0.75):
    x = np.abs(distance)
    near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * (x**3 - 5 * x**2 + 8 * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


@pytest.mark.parametrize(("mode", "kernel"), [("bilinear", linear_kernel), ("bicubic", cubic_kernel)])
@pytest.mark.parametrize("box", [[5.0, 6.0, 60.0, 70.0], [-30.0, -20.0, 80.0, 90.0], [60.5, 50.5, 10.0, 12.0]])
def test_crop_people__equals_the_sum_over_all_pixels(mode, kernel, box):
    image = random_image(80, 90)
    boxes = torch.tensor([box])
    x, y = crop_to_image(pixel_grid(SIZE), boxes, SIZE)[0].view(*SIZE, 2).permute(2, 0, 1).numpy()
    down, across = kernel(y[:, :1] - np.arange(80)), kernel(x[:1].T - np.arange(90))  # (h, H), (w, W)
    expected = down @ image.numpy().astype(float) @ across.T
    np.testing.assert_allclose(crop_people(image, boxes, SIZE, mode=mode)[0].numpy(), expected, atol=1e-2)


@pytest.mark.parametrize(
    "box", [[5.0, 6.0, 60.0, 70.0], [-30.0, -20.0, 80.0, 90.0], [60.5, 50.5, 40.0, 60.0], [0.0, 0.0, 90.0, 80.0]]
)
def test_crop_people__bilinear_equals_scipy(box):
    image = random_image(80, 90)
    boxes = torch.tensor([box])
    points = crop_to_image(pixel_grid(SIZE), boxes, SIZE)[0].numpy()
    crop = crop_people(image, boxes, SIZE, mode="bilinear", fill=7.0)[0]
    for channel, result in zip(image.numpy().astype(float), crop, strict=True):
        expected = map_coordinates(channel, [points[:, 1], points[:, 0]], order=1, mode="grid-constant", cval=7.0)
        np.testing.assert_allclose(result.flatten().numpy(), expected, atol=5e-3)


@given(
    point=st.tuples(st.integers(3, 86), st.integers(3, 76)),
    box=st.tuples(st.floats(-20, 60), st.floats(-20, 60), st.floats(20, 80), st.floats(20, 80)),
)
@settings(max_examples=40, deadline=None)
def test_crop_people__a_blob_appears_where_image_to_crop_says(point, box):
    image = torch.zeros(1, 80, 90)
    image[0, point[1], point[0]] = 1.0
    boxes = torch.tensor([box])
    expected = image_to_crop(torch.tensor([[point]], dtype=torch.float64), boxes, SIZE)[0, 0]
    crop = crop_people(image, boxes, SIZE, mode="bilinear")[0, 0]
    grid = pixel_grid(SIZE)[0].view(*SIZE, 2)
    pitch = image_to_crop(torch.tensor([[[0.0, 0.0], [1.0, 1.0]]]), boxes, SIZE)[0].diff(dim=0)[0]
    near = ((grid - expected).abs() < pitch).all(dim=-1)
    assert (crop[~near] < 1e-4).all()
    if crop.sum() > 0 and pitch.min() >= 1 and ((expected >= 1) & (expected <= torch.tensor([46, 62]))).all():
        peak = crop.argmax()
        assert (grid.view(-1, 2)[peak] - expected).abs().max() <= 0.51


def test_crop_people__is_equivariant_to_mirroring():
    image = random_image(80, 90)
    crop = crop_people(image, torch.tensor([[12.3, 8.0, 40.0, 50.0]]), SIZE)
    mirrored = crop_people(image.flip(-1), torch.tensor([[89 - 12.3 - 40.0, 8.0, 40.0, 50.0]]), SIZE)
    torch.testing.assert_close(mirrored.flip(-1), crop, atol=1e-2, rtol=0)


def test_crop_people__auto_chooses_for_each_crop():
    image = random_image(200, 200)
    boxes = torch.tensor([[10.0, 10.0, 100.0, 100.0], [40.0, 40.0, 20.0, 20.0]])
    auto, bilinear, bicubic = (crop_people(image, boxes, SIZE, mode=mode) for mode in ("auto", "bilinear", "bicubic"))
    assert auto[0].equal(bilinear[0])
    assert auto[1].equal(bicubic[1])
    assert not bilinear[1].equal(bicubic[1])


@pytest.mark.parametrize("mode", MODES)
def test_crop_people__batch_equals_one_by_one(mode):
    image = random_image(70, 60)
    boxes = torch.tensor([[5.0, 5.0, 30.0, 30.0], [-9.0, 20.0, 90.0, 20.0], [300.0, 0.0, 5.0, 5.0]])
    together = crop_people(image, boxes, SIZE, mode=mode)
    assert together.equal(torch.cat([crop_people(image, box[None], SIZE, mode=mode) for box in boxes]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fill", [0, 40])
def test_crop_people__outside_is_the_fill(mode, fill):
    crop = crop_people(random_image(30, 30), torch.tensor([[100.0, 100.0, 20.0, 20.0]]), SIZE, mode=mode, fill=fill)
    assert (crop == fill).all()
    level = torch.full((1, 30, 30), 40, dtype=torch.uint8)
    edge = crop_people(level, torch.tensor([[-10.0, -10.0, 25.0, 30.0]]), SIZE, mode=mode, fill=40)
    torch.testing.assert_close(edge, torch.full_like(edge, 40))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("hw", [(50, 1), (1, 50), (1, 1), (2, 3)])
def test_crop_people__images_of_one_pixel_width_work(mode, hw):
    image = torch.full((3, *hw), 200, dtype=torch.uint8)
    crop = crop_people(image, torch.tensor([[0.0, 0.0, float(hw[1]), float(hw[0])]]), SIZE, mode=mode)
    assert crop.isfinite().all()
    assert crop.max() > 100


@pytest.mark.parametrize("mode", MODES)
def test_crop_people__nobody_gives_no_crop(mode):
    crops = crop_people(random_image(20, 20), torch.zeros(0, 4), SIZE, mode=mode)
    assert crops.shape == (0, 3, *SIZE)
    assert crops.dtype == (torch.uint8 if mode == "nearest" else torch.float32)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
@pytest.mark.parametrize("box", [[3.0, 4.0, 70.0, 80.0], [10.2, 10.3, 8.0, 9.0], [-50.0, -50.0, 100.0, 90.0]])
def test_crop_people__nearest_invents_no_label(dtype, box):
    labels = torch.zeros(1, 90, 80, dtype=dtype)
    labels[:, :, 40:] = 28
    crop = crop_people(labels, torch.tensor([box]), SIZE, mode="nearest", fill=255)
    assert crop.dtype == dtype
    assert set(crop.unique().tolist()) <= {0, 28, 255}


def test_crop_people__leaves_the_image_alone():
    image = random_image(40, 40, torch.float32)
    before = image.clone()
    crop_people(image, torch.tensor([[2.0, 2.0, 20.0, 20.0]]), SIZE, fill=5.0)
    assert image.equal(before)


def test_crop_people__views_work():
    image = random_image(40, 50)
    view = image.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    boxes = torch.tensor([[2.0, 2.0, 20.0, 20.0]])
    assert crop_people(view, boxes, SIZE).equal(crop_people(image, boxes, SIZE))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": torch.zeros(40, 40)}, r"shape \(40, 40\); expected \(channels, height, width\)"),
        ({"image": torch.zeros(3, 0, 40)}, r"shape \(3, 0, 40\)"),
        ({"mode": "lanczos"}, "mode is 'lanczos'; expected one of auto, nearest"),
        ({"size_hw": (64, 1)}, r"crop size is \(64, 1\)"),
        ({"padding": 0.0}, "padding is 0.0"),
        ({"boxes_xywh": torch.tensor([[0.0, 0.0, 0.0, 5.0]])}, "Box 0"),
        ({"boxes_xywh": torch.tensor([[0.0, float("nan"), 4.0, 5.0]])}, "not finite"),
    ],
)
def test_crop_people__refuses_bad_input(change, message):
    arguments = {"image": torch.zeros(3, 40, 40), "boxes_xywh": torch.tensor([[0.0, 0.0, 9.0, 9.0]]), "size_hw": SIZE}
    with pytest.raises(InputError, match=message):
        crop_people(**(arguments | change))


def test_crop_to_image__corners_of_the_crop_are_corners_of_the_window():
    boxes = torch.tensor([[10.0, 20.0, 60.0, 80.0]])  # aspect 3:4, so the window is the box grown by 1.25
    corners = torch.tensor([[[0.0, 0.0], [47.0, 63.0]]])
    assert crop_to_image(corners, boxes, SIZE).tolist() == [[[2.5, 10.0], [77.5, 110.0]]]


def test_crop_to_image__a_heatmap_shares_the_window_of_its_crop():
    boxes = torch.tensor([[10.0, 20.0, 33.0, 80.0]])
    fraction = torch.rand(1, 20, 2, generator=torch.Generator().manual_seed(0))
    in_crop = crop_to_image(fraction * torch.tensor([767.0, 1023.0]), boxes, (1024, 768))
    in_heatmap = crop_to_image(fraction * torch.tensor([191.0, 255.0]), boxes, (256, 192))
    torch.testing.assert_close(in_crop, in_heatmap)


@given(
    point=st.tuples(st.floats(-2000, 2000), st.floats(-2000, 2000)),
    box=st.tuples(st.floats(-500, 2000), st.floats(-500, 2000), st.floats(1, 2000), st.floats(1, 2000)),
    size=st.tuples(st.integers(16, 1024), st.integers(16, 1024)),
)
@settings(max_examples=100, deadline=None)
def test_image_to_crop__round_trip_is_the_identity(point, box, size):
    points, boxes = torch.tensor([[point]], dtype=torch.float64), torch.tensor([box])
    back = crop_to_image(image_to_crop(points, boxes, size), boxes, size)
    torch.testing.assert_close(back, points, atol=1e-6, rtol=0)
    # In float32 a point is known to a few parts in 2^24 of what lies between it and the far side of the window, which
    # the aspect of the crop can make many times as wide as the box.
    corners = torch.tensor([[[0.0, 0.0], [size[1] - 1.0, size[0] - 1.0]]], dtype=torch.float64)
    reach = (crop_to_image(corners, boxes, size) - points).abs().max() + points.abs().max()
    single = points.float()
    back = crop_to_image(image_to_crop(single, boxes, size), boxes, size)
    torch.testing.assert_close(back, single, atol=4 * 2**-24 * float(reach), rtol=0)


def test_image_to_crop__nan_stays_nan():
    points = torch.tensor([[[float("nan"), float("nan")], [1.0, 2.0]]])
    result = image_to_crop(points, torch.tensor([[0.0, 0.0, 5.0, 5.0]]), SIZE)
    assert result.isnan().all(dim=-1).tolist() == [[True, False]]


@pytest.mark.parametrize("function", [image_to_crop, crop_to_image])
@pytest.mark.parametrize("shape", [(2, 5, 2), (5, 2), (1, 5, 3)])
def test_image_to_crop__refuses_points_that_do_not_fit_the_boxes(function, shape):
    with pytest.raises(InputError, match=r"with 1 boxes; expected \(boxes, points, 2\)"):
        function(torch.zeros(shape), torch.tensor([[0.0, 0.0, 5.0, 5.0]]), SIZE)
