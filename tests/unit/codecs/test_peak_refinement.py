"""The window-wise refinement against the same recipe computed over whole maps with scipy, in float64."""

import numpy as np
import pytest
import torch
from scipy.ndimage import correlate1d

from sapiens2.codecs import decode_heatmaps

HEIGHT, WIDTH = 40, 36


def dense_step(heatmap, kernel_size):
    """Step of the recipe from the highest pixel of one map, computed from the whole map, and that pixel."""
    sigma = 0.3 * ((kernel_size - 1) * 0.5 - 1) + 0.8
    kernel = np.exp(-0.5 * ((np.arange(kernel_size) - kernel_size // 2) / sigma) ** 2)
    kernel /= kernel.sum()
    blurred = heatmap.astype(np.float64)
    for axis in (0, 1):
        blurred = correlate1d(blurred, kernel, axis=axis, mode="constant", cval=0.0)
    blurred *= heatmap.max() / blurred.max()
    log = np.pad(np.log(np.clip(blurred, 1e-3, 50)), 1, mode="edge")
    y, x = np.unravel_index(heatmap.argmax(), heatmap.shape)
    patch = log[y : y + 3, x : x + 3]
    dy, dx = (patch[2, 1] - patch[0, 1]) / 2, (patch[1, 2] - patch[1, 0]) / 2
    dyy, dxx = patch[2, 1] + patch[0, 1] - 2 * patch[1, 1], patch[1, 2] + patch[1, 0] - 2 * patch[1, 1]
    dxy = 0.5 * (patch[2, 2] + patch[0, 0] + 2 * patch[1, 1] - patch[1, 0] - patch[1, 2] - patch[0, 1] - patch[2, 1])
    epsilon = np.finfo(np.float32).eps
    hessian = np.array([[dxx + epsilon, dxy], [dxy, dyy + epsilon]])
    return -np.linalg.solve(hessian, np.array([dx, dy])), np.array([x, y])


def interior_maps(kind, count=60):
    """Maps whose maximum lies so far inside that no blur with kernels up to 11 reaches the border."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    maps = []
    while len(maps) < count:
        x, y, sigma = rng.uniform(8, WIDTH - 9), rng.uniform(8, HEIGHT - 9), rng.uniform(1.5, 6)
        heatmap = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))
        if kind == "two peaks":
            heatmap = np.maximum(heatmap, 0.9 * np.roll(heatmap, (4, 5), axis=(0, 1)))
        if kind in ("noisy", "faint", "very faint", "strong"):
            heatmap += 0.03 * rng.normal(size=heatmap.shape)
        scale = {"faint": 0.01, "very faint": 0.0015, "below the floor": 0.0009, "strong": 300.0}.get(kind, 1.0)
        if kind == "spiky":
            heatmap = 0.003 * rng.uniform(size=heatmap.shape)
            heatmap[int(y), int(x)] = 1.0
        if kind == "pure noise":
            heatmap = rng.normal(size=heatmap.shape)
        peak_y, peak_x = np.unravel_index(heatmap.argmax(), heatmap.shape)
        if 6 <= peak_x < WIDTH - 6 and 6 <= peak_y < HEIGHT - 6:
            maps.append((heatmap * scale).astype(np.float32))
    return np.stack(maps)


KINDS = [
    "clean", "two peaks", "noisy", "faint", "very faint", "below the floor", "strong", "spiky", "pure noise",
]  # fmt: skip


@pytest.mark.parametrize("kernel_size", [3, 7, 11])
@pytest.mark.parametrize("kind", KINDS)
def test_refine_peaks__equals_the_dense_recipe_in_the_interior(kind, kernel_size):
    maps = interior_maps(kind)
    points, _ = decode_heatmaps(torch.from_numpy(maps)[None], kernel_size)
    compared = 0
    for heatmap, point in zip(maps, points[0].numpy(), strict=True):
        step, pixel = dense_step(heatmap, kernel_size)
        if np.abs(step).max() > kernel_size // 2 + 1e-3:
            np.testing.assert_array_equal(point, pixel)
            continue
        if abs(np.abs(step).max() - kernel_size // 2) <= 1e-3:
            continue
        inside = np.clip(pixel + step, 0, [WIDTH - 1, HEIGHT - 1])
        # Where the logarithm is nearly flat, float32 leaves fewer digits of the step.
        np.testing.assert_allclose(point, inside, atol=5e-4 + 2e-3 * np.abs(step).max() * (kind != "clean"))
        compared += 1
    assert compared > len(maps) // 3


def test_refine_peaks__many_faint_maps_go_through_in_chunks():
    maps = np.concatenate([interior_maps("pure noise", 100), interior_maps("very faint", 100)])
    together, _ = decode_heatmaps(torch.from_numpy(maps)[None])
    apart = torch.cat([decode_heatmaps(torch.from_numpy(heatmap)[None, None])[0] for heatmap in maps], dim=1)
    torch.testing.assert_close(together, apart, atol=1e-4, rtol=0)
