import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from sapiens2.codecs import average_flipped, decode_heatmaps, encode_heatmaps
from sapiens2.errors import InputError

INPUT, HEATMAP = (256, 192), (64, 48)
SHRINK = torch.tensor([47 / 191, 63 / 255])


def encode(points, sigma=2.0, size_hw=INPUT, heatmap_hw=HEATMAP, visible=None):
    keypoints = torch.as_tensor(points, dtype=torch.float32).view(1, -1, 2)
    visible = torch.ones(keypoints.shape[:2]) if visible is None else torch.as_tensor(visible).view(1, -1)
    return encode_heatmaps(keypoints, visible, size_hw, heatmap_hw, sigma)


def draw(points, heatmap_hw, sigma):
    """Whole Gaussians at heatmap pixels ``points``, not cut off around their peaks; the points may lie outside."""
    rows, columns = torch.meshgrid(*(torch.arange(side, dtype=torch.float32) for side in heatmap_hw), indexing="ij")
    points = torch.as_tensor(points, dtype=torch.float32).view(-1, 2)[..., None, None]
    return torch.exp(-((columns - points[:, 0]) ** 2 + (rows - points[:, 1]) ** 2) / (2 * sigma**2))[None]


def edge_points(height, width):
    """Points on, and a fraction of a pixel from, the borders and the corners."""
    offsets = (0.0, 0.3, 0.5, 1.0, 2.4, 5.0, 5.6)
    x = [*offsets, width / 2 + 0.2, *(width - 1 - offset for offset in offsets)]
    y = [*offsets, height / 2 - 0.3, *(height - 1 - offset for offset in offsets)]
    return torch.cartesian_prod(torch.tensor(x), torch.tensor(y))


def test_encode_heatmaps__a_keypoint_on_a_pixel_has_the_peak_one():
    heatmaps, weights = encode([191.0 / 47 * 20, 255.0 / 63 * 30])
    assert heatmaps.shape == (1, 1, *HEATMAP)
    assert heatmaps.dtype == weights.dtype == torch.float32
    assert heatmaps.argmax() == 30 * 48 + 20
    torch.testing.assert_close(heatmaps.amax(), torch.tensor(1.0))
    torch.testing.assert_close(heatmaps[0, 0, 30, 22], torch.tensor(math.exp(-0.5)))
    assert weights.tolist() == [[1.0]]


def test_encode_heatmaps__corners_of_the_input_are_corners_of_the_heatmap():
    heatmaps, _ = encode([[0.0, 0.0], [191.0, 255.0]])
    torch.testing.assert_close(heatmaps[0, 0, 0, 0], torch.tensor(1.0))
    torch.testing.assert_close(heatmaps[0, 1, 63, 47], torch.tensor(1.0))


@pytest.mark.parametrize(("sigma", "radius"), [(2.0, 6), (2.5, 7), (1.3, 3), (0.7, 2), (6.0, 18)])
def test_encode_heatmaps__ends_three_sigma_from_the_nearest_pixel(sigma, radius):
    point = torch.tensor([20.6, 30.5])
    heatmaps, _ = encode(point / SHRINK, sigma)
    rows, columns = heatmaps[0, 0].nonzero().unbind(1)
    assert (columns.min(), columns.max()) == (21 - radius, 21 + radius)
    assert (rows.min(), rows.max()) == (31 - radius, 31 + radius)


def test_encode_heatmaps__equals_the_gaussian_inside_its_window():
    points = torch.rand(50, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([47.0, 63.0])
    heatmaps, _ = encode(points / SHRINK)
    whole = draw(points, HEATMAP, 2.0)
    drawn = heatmaps > 0
    torch.testing.assert_close(heatmaps[drawn], whole[drawn], atol=1e-5, rtol=1e-4)
    assert whole[~drawn].max() < math.exp(-0.5 * (5.5 / 2) ** 2)


@pytest.mark.parametrize("visible", [[2.0, 1.0, 0.0, 0.5], [2, 1, 0, 1], [True, True, False, True]])
def test_encode_heatmaps__visibility_becomes_zero_or_one(visible):
    heatmaps, weights = encode([[50.0, 60.0]] * 4, visible=visible)
    assert weights.tolist() == [[1, 1, 0, 1]]
    assert (heatmaps.amax(dim=(2, 3)) > 0).tolist() == [[True, True, False, True]]


@pytest.mark.parametrize(
    "point", [(-0.01, 50), (50, -0.01), (192, 50), (50, 256), (-1e9, 5), (math.nan, 5), (5, math.nan), (math.inf, 5)]
)
def test_encode_heatmaps__outside_the_crop_is_invisible(point):
    heatmaps, weights = encode(point)
    assert weights.tolist() == [[0]]
    assert (heatmaps == 0).all()


def test_encode_heatmaps__the_last_pixel_is_inside():
    assert encode([[0.0, 0.0], [191.99, 255.99]])[1].tolist() == [[1, 1]]


@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_encode_heatmaps__nobody(shape):
    heatmaps, weights = encode_heatmaps(torch.zeros(*shape, 2), torch.zeros(shape), INPUT, HEATMAP, 2.0)
    assert heatmaps.shape == (*shape, *HEATMAP)
    assert weights.shape == shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keypoints": torch.zeros(3, 2)}, r"shape \(3, 2\); expected \(people, keypoints, 2\)"),
        ({"keypoints": torch.zeros(1, 3, 3)}, r"shape \(1, 3, 3\)"),
        ({"visible": torch.zeros(1, 4)}, r"shape \(1, 4\); expected \(1, 3\), one per keypoint"),
        ({"heatmap_hw": (64, 1)}, r"\(64, 1\); each side must be at least 2"),
        ({"size_hw": (0, 64)}, r"\(0, 64\)"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"sigma": math.nan}, "sigma is nan"),
    ],
)
def test_encode_heatmaps__refuses_bad_input(change, message):
    arguments = {
        "keypoints": torch.zeros(1, 3, 2),
        "visible": torch.zeros(1, 3),
        "size_hw": INPUT,
        "heatmap_hw": HEATMAP,
        "sigma": 2.0,
    }
    with pytest.raises(InputError, match=message):
        encode_heatmaps(**(arguments | change))


@given(x=st.floats(0, 1), y=st.floats(0, 1), sigma=st.sampled_from([1.5, 2.0, 3.0, 6.0]))
@settings(max_examples=150, deadline=None)
def test_decode_heatmaps__undoes_encode_anywhere(x, y, sigma):
    keypoint = torch.tensor([x * 191.0, y * 255.0])
    points, scores = decode_heatmaps(encode(keypoint, sigma)[0])
    assert (points[0, 0] - keypoint * SHRINK).abs().max() < 0.05
    assert 0.5 < scores <= 1


@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.0, 3.0, 6.0, 12.0])
@pytest.mark.parametrize("heatmap_hw", [(16, 12), (12, 16), (64, 48), (7, 9)])
def test_decode_heatmaps__borders_and_corners(sigma, heatmap_hw):
    points = edge_points(*heatmap_hw)
    points = points[((points >= 0) & (points <= torch.tensor([heatmap_hw[1] - 1, heatmap_hw[0] - 1]))).all(1)]
    decoded, _ = decode_heatmaps(draw(points, heatmap_hw, sigma))
    assert (decoded[0] - points).abs().max() < 0.05


def test_decode_heatmaps__size_of_the_published_models():
    points = edge_points(256, 192)
    decoded, _ = decode_heatmaps(
        encode(points / torch.tensor([191 / 767, 255 / 1023]), 6.0, (1024, 768), (256, 192))[0]
    )
    assert (decoded[0] - points).abs().max() < 0.05


@pytest.mark.parametrize("outside", [(-1.5, 20.3), (20.3, -2.0), (48.5, 30.0), (20.0, 65.2), (-1.0, -1.0)])
def test_decode_heatmaps__a_peak_outside_is_clamped_to_the_map(outside):
    decoded, _ = decode_heatmaps(draw(outside, HEATMAP, 2.0))
    expected = torch.tensor(outside).clamp(min=0).minimum(torch.tensor([47.0, 63.0]))
    assert (decoded[0, 0] - expected).abs().max() < 0.05


@pytest.mark.parametrize("pixel", [(0, 0), (11, 15), (0, 7), (11, 7), (5, 0), (5, 15), (5, 7), (1, 1), (10, 14)])
def test_decode_heatmaps__a_single_pixel_is_itself(pixel):
    heatmap = torch.zeros(1, 1, 16, 12)
    heatmap[0, 0, pixel[1], pixel[0]] = 0.7
    points, scores = decode_heatmaps(heatmap)
    torch.testing.assert_close(points[0, 0], torch.tensor(pixel, dtype=torch.float32), atol=1e-3, rtol=0)
    assert scores.item() == pytest.approx(0.7)


def test_decode_heatmaps__noise_at_the_border_does_little():
    generator = torch.Generator().manual_seed(0)
    points = edge_points(64, 48)
    heatmaps = draw(points, HEATMAP, 3.0) + 0.01 * torch.randn(1, len(points), *HEATMAP, generator=generator)
    decoded, _ = decode_heatmaps(heatmaps)
    error = (decoded[0] - points).abs().amax(dim=1)
    assert error.mean() < 0.1
    assert error.max() < 0.6


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, -math.inf, math.inf])
def test_decode_heatmaps__a_map_without_a_peak_is_nan(value):
    heatmaps = draw([[10.0, 10.0], [20.0, 20.0], [30.0, 30.0]], HEATMAP, 2.0)
    expected, _ = decode_heatmaps(heatmaps)
    heatmaps[0, 1] = value
    points, scores = decode_heatmaps(heatmaps)
    assert points[0, 1].isnan().all()
    assert scores[0, 1] == 0
    assert points[0, [0, 2]].equal(expected[0, [0, 2]])


def test_decode_heatmaps__one_nan_pixel_makes_no_confident_point():
    heatmaps = draw([10.0, 10.0], HEATMAP, 2.0)
    heatmaps[0, 0, 50, 40] = math.nan
    points, scores = decode_heatmaps(heatmaps)
    assert points.isnan().all()
    assert scores.item() == 0


@pytest.mark.parametrize("level", [1e-4, 0.5, 80.0])
def test_decode_heatmaps__a_flat_map_stays_finite_and_inside(level):
    points, scores = decode_heatmaps(torch.full((1, 2, *HEATMAP), level))
    assert points.isfinite().all()
    assert ((points >= 0) & (points <= torch.tensor([47.0, 63.0]))).all()
    torch.testing.assert_close(scores, torch.full((1, 2), level))


@pytest.mark.parametrize("kind", ["normal", "uniform", "faint"])
def test_decode_heatmaps__noise_stays_finite_and_near_its_maximum(kind):
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(2, 40, *HEATMAP, generator=generator)
    if kind != "uniform":
        noise = torch.randn(2, 40, *HEATMAP, generator=generator) * (0.002 if kind == "faint" else 1)
    points, scores = decode_heatmaps(noise)
    best = noise.flatten(2).argmax(dim=-1)
    pixels = torch.stack([best % 48, best // 48], dim=-1)
    assert (points - pixels).abs().max() <= 5
    assert ((points >= 0) & (points <= torch.tensor([47.0, 63.0]))).all()
    assert scores.equal(noise.amax(dim=(2, 3)))


@pytest.mark.parametrize("factor", [0.01, 0.5, 3.0])
def test_decode_heatmaps__scores_scale_and_points_stay(factor):
    heatmaps = draw(edge_points(64, 48), HEATMAP, 2.0)
    points, scores = decode_heatmaps(heatmaps)
    scaled_points, scaled_scores = decode_heatmaps(heatmaps * factor)
    torch.testing.assert_close(scaled_scores, scores * factor)
    # below 0.001 pixels are clipped, which shows with faint maps only
    torch.testing.assert_close(scaled_points, points, atol=2e-3 if factor >= 0.5 else 0.3, rtol=0)


@pytest.mark.parametrize("dims", [(-1,), (-2,)])
def test_decode_heatmaps__is_equivariant_to_mirroring(dims):
    points = edge_points(64, 48) + 0.013  # no ties between two pixels
    points = points.minimum(torch.tensor([47.0, 63.0]))
    heatmaps = draw(points, HEATMAP, 2.0)
    decoded, _ = decode_heatmaps(heatmaps)
    mirrored, _ = decode_heatmaps(heatmaps.flip(dims))
    axis = 0 if dims == (-1,) else 1
    mirrored[..., axis] = (47.0 if axis == 0 else 63.0) - mirrored[..., axis]
    torch.testing.assert_close(mirrored, decoded, atol=1e-3, rtol=0)


def test_decode_heatmaps__the_first_of_equal_maxima_counts():
    heatmaps = torch.zeros(1, 1, *HEATMAP)
    for row, column in ((40, 10), (20, 30), (20, 8)):
        heatmaps[0, 0, row, column] = 1
    assert decode_heatmaps(heatmaps)[0][0, 0].tolist() == pytest.approx([8, 20], abs=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_decode_heatmaps__other_floats_are_computed_in_float32(dtype):
    heatmaps = draw(edge_points(64, 48), HEATMAP, 2.0)
    points, scores = decode_heatmaps(heatmaps.to(dtype))
    assert points.dtype == scores.dtype == torch.float32
    expected, _ = decode_heatmaps(heatmaps.to(dtype).float())
    torch.testing.assert_close(points, expected)


def test_decode_heatmaps__batch_equals_one_by_one_and_views_work():
    heatmaps = draw(edge_points(64, 48)[:60], HEATMAP, 2.0).view(3, 20, *HEATMAP)
    points, scores = decode_heatmaps(heatmaps)
    for person in range(3):
        alone = decode_heatmaps(heatmaps[person : person + 1])
        torch.testing.assert_close(points[person : person + 1], alone[0])
        assert scores[person : person + 1].equal(alone[1])
    transposed = heatmaps.transpose(2, 3).contiguous().transpose(2, 3)
    torch.testing.assert_close(decode_heatmaps(transposed)[0], points)


def test_decode_heatmaps__detaches_and_leaves_the_maps_alone():
    heatmaps = draw([[3.0, 4.0]], HEATMAP, 2.0).requires_grad_()
    before = heatmaps.detach().clone()
    points, scores = decode_heatmaps(heatmaps)
    assert not points.requires_grad
    assert not scores.requires_grad
    assert heatmaps.equal(before)


@pytest.mark.parametrize("shape", [(0, 5, 64, 48), (2, 0, 64, 48)])
def test_decode_heatmaps__nobody(shape):
    points, scores = decode_heatmaps(torch.zeros(shape))
    assert points.shape == (*shape[:2], 2)
    assert scores.shape == shape[:2]


@pytest.mark.parametrize("hw", [(1, 1), (1, 5), (5, 1), (2, 2)])
def test_decode_heatmaps__tiny_maps(hw):
    heatmaps = torch.zeros(1, 1, *hw)
    heatmaps[..., -1, -1] = 1
    assert decode_heatmaps(heatmaps)[0][0, 0].tolist() == pytest.approx([hw[1] - 1, hw[0] - 1], abs=0.5)


@pytest.mark.parametrize("kernel_size", [0, 1, -3, 4, 10, 11.0, "11", None, True])
def test_decode_heatmaps__refuses_an_invalid_kernel(kernel_size):
    with pytest.raises(InputError, match="expected an odd whole number of at least 3"):
        decode_heatmaps(torch.ones(1, 1, 8, 8), kernel_size)


@pytest.mark.parametrize("heatmaps", [torch.ones(5, 8, 8), torch.ones(1, 5, 0, 8), torch.ones(1, 5, 8, 8).int()])
def test_decode_heatmaps__refuses_what_are_no_heatmaps(heatmaps):
    with pytest.raises(InputError, match="expected floating numbers of shape"):
        decode_heatmaps(heatmaps)


def test_average_flipped__is_the_mean():
    first, second = torch.rand(2, 3, 4, 5), torch.rand(2, 3, 4, 5)
    torch.testing.assert_close(average_flipped(first, second), 0.5 * first + 0.5 * second)


def test_average_flipped__refuses_other_shapes():
    with pytest.raises(InputError, match=r"shape \(2, 3, 4, 5\) and the flipped ones \(1, 3, 4, 5\)"):
        average_flipped(torch.zeros(2, 3, 4, 5), torch.zeros(1, 3, 4, 5))
