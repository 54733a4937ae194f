"""Augmented batches of the pool: one window and one change of colours for the picture and all its truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scripts.nano.pool import SIZE_HW, Pool
from torch import Tensor

from sapiens2.assets import keypoint_table, part_table

__all__ = ["HEATMAP_SIGMA", "MEAN", "STD", "Augmentation", "batch_indices", "compose", "make_batch", "worsen"]

HEIGHT, WIDTH = SIZE_HW
HEATMAP_HW = (HEIGHT // 4, WIDTH // 4)
HEATMAP_SIGMA = 2.0
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
LUMA = np.array([0.299, 0.587, 0.114])
PART_SWAP = torch.arange(256)
PART_SWAP[: len(part_table().names)] = torch.tensor(part_table().flip_permutation)
KEYPOINT_SWAP = np.array(keypoint_table().flip_permutation)


@dataclass(frozen=True)
class Augmentation:
    """How far pictures are changed.

    Attributes:
        person_windows: Share of windows around one person, as the pose model sees them; the others show a picture.
        stretch: Largest factor between the scales of the axes; only for tasks without geometry in three dimensions.
        backgrounds: Share of pictures that get the background of another.
        colours: Share of pictures whose colours are changed.
        quality: Share of pictures that are blurred, noisy or coarse.
    """

    person_windows: float = 0.5
    stretch: float = 1.0
    backgrounds: float = 0.25
    colours: float = 0.85
    quality: float = 0.4


@dataclass(frozen=True)
class Window:
    """From pixels of the result to pixels of the picture: ``picture = scale * turn @ (result - middle) + centre``."""

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    angle: float
    flip: bool
    person: int | None


def batch_indices(indices: NDArray[np.int64], seed: int, step: int, size: int) -> NDArray[np.int64]:
    """Indices of a batch: every sample once in each epoch, in an order that depends on seed and step alone."""
    chosen, position = [], step * size
    while len(chosen) < size:
        epoch, offset = divmod(position + len(chosen), len(indices))
        order = np.random.default_rng([seed, epoch]).permutation(len(indices))
        chosen += list(order[offset : offset + size - len(chosen)])
    return indices[np.array(chosen)]


def make_batch(
    pool: Pool, chosen: NDArray[np.int64], rng: np.random.Generator, augmentation: Augmentation | None
) -> dict[str, Tensor]:
    """Read samples and augment them; None leaves them as they are, poses excepted, which get a window."""
    rows = [_augmented(pool, int(index), rng, augmentation) for index in chosen]
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def _augmented(pool: Pool, index: int, rng: np.random.Generator, own: Augmentation | None) -> dict[str, Tensor]:
    row = pool.row(index)
    window = _window(row, rng, own)
    maps = _warped(row, window)
    if own is not None and rng.uniform() < own.backgrounds:
        other = torch.from_numpy(pool.arrays["background"][int(rng.integers(len(pool)))]).permute(2, 0, 1)
        maps["background"].copy_(other.flip(2) if rng.uniform() < 0.5 else other)
    changed = own is not None and rng.uniform() < own.colours
    return {**maps, **_camera(row, window), **_pose(row, window), **_colours(rng if changed else None)}


def _window(row: dict[str, NDArray[np.generic]], rng: np.random.Generator, own: Augmentation | None) -> Window:
    people = int(row["count"])
    whole = np.array([(WIDTH - 1) / 2, (HEIGHT - 1) / 2])
    if own is None:
        return Window(whole, np.ones(2), 0.0, False, 0 if people == 1 else None)
    flip = bool(rng.uniform() < 0.5)
    usable = [person for person in range(people) if min(row["boxes"][person][2:]) > 24]
    if usable and rng.uniform() < own.person_windows:
        person = int(rng.choice(usable))
        x, y, w, h = (float(value) for value in row["boxes"][person])
        size = max(w / WIDTH, h / HEIGHT) * 1.25 * np.exp(rng.normal(0, 0.16))
        centre = np.array([x + w / 2, y + h / 2]) + rng.normal(0, 0.05, 2) * size * np.array([WIDTH, HEIGHT])
        angle = float(np.clip(rng.normal(0, 0.3), -0.9, 0.9)) if rng.uniform() < 0.5 else 0.0
    else:
        person = 0 if people == 1 else None
        size = rng.uniform(0.6, 1.0) if rng.uniform() < 0.6 else rng.uniform(1.0, 1.35)
        room = np.maximum(1 - size, 0.04) / 2 * np.array([WIDTH, HEIGHT])
        centre = whole + rng.uniform(-1, 1, 2) * room
        angle = float(rng.normal(0, 0.12)) if rng.uniform() < 0.4 else 0.0
    stretch = np.exp(rng.uniform(-1, 1) * np.log(own.stretch) / 2)
    return Window(centre, size * np.array([stretch, 1 / stretch]), angle, flip, person)


def _source_pixels(window: Window) -> Tensor:
    """Picture pixel of every pixel of the result, ``(H, W, 2)``."""
    x = torch.arange(WIDTH, dtype=torch.float32) - (WIDTH - 1) / 2
    y = torch.arange(HEIGHT, dtype=torch.float32) - (HEIGHT - 1) / 2
    x, y = torch.meshgrid(-x if window.flip else x, y, indexing="xy")
    cos, sin = float(np.cos(window.angle)), float(np.sin(window.angle))
    across = (cos * x - sin * y) * float(window.scale[0]) + float(window.centre[0])
    down = (sin * x + cos * y) * float(window.scale[1]) + float(window.centre[1])
    return torch.stack([across, down], dim=-1)


def _warped(row: dict[str, NDArray[np.generic]], window: Window) -> dict[str, Tensor]:
    pixels = _source_pixels(window)
    grid = (pixels / torch.tensor([(WIDTH - 1) / 2, (HEIGHT - 1) / 2]) - 1)[None]
    stack = torch.empty(len(CHANNELS), HEIGHT, WIDTH)
    position = 0
    for name in ("foreground", "background", "albedo", "normals", "depth", "alpha"):
        values = torch.from_numpy(row[name])
        planes = values[None] if values.ndim == 2 else values.permute(2, 0, 1)
        stack[position : position + len(planes)].copy_(planes)
        position += len(planes)
    parts = torch.from_numpy(row["parts"])
    stack[position].copy_(parts != 0)
    stack[position + 1].copy_(stack[position - 1] > 0)
    warped = F.grid_sample(stack[None], grid, align_corners=True)[0]
    columns, rows = pixels.round().long().unbind(-1)
    inside = (columns >= 0) & (columns < WIDTH) & (rows >= 0) & (rows < HEIGHT)
    labels = parts[rows.clamp(0, HEIGHT - 1), columns.clamp(0, WIDTH - 1)].long()
    if window.flip:
        labels = PART_SWAP[labels]
    return {
        "foreground": warped[0:3],
        "background": warped[3:6],
        "albedo": warped[6:9],
        "normals": warped[9:12],
        "depth": warped[12],
        "alpha": warped[13:14],
        "known": warped[14:15],
        "covered": warped[15:16],
        "inside": inside,
        "parts": torch.where(inside, labels, 255).to(torch.uint8),
    }


CHANNELS = range(16)


def _colours(rng: np.random.Generator | None) -> dict[str, Tensor]:
    """Other light on people and surroundings, other saturation and hue of everything: the numbers for it."""
    tint, gain, other = np.eye(3), np.ones(3), np.ones(3)
    lift, gamma, contrast = 0.0, 1.0, 1.0
    if rng is not None:
        if rng.uniform() < 0.6:
            saturation = 0.0 if rng.uniform() < 0.12 else rng.uniform(0.4, 1.5)
            tint = saturation * tint + (1 - saturation) * np.tile(LUMA, (3, 1))
        if rng.uniform() < 0.25:
            turn = rng.normal(0, 0.15)
            axis = np.full((3, 3), 1 / 3)
            cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
            tint = (axis + np.cos(turn) * (np.eye(3) - axis) + np.sin(turn) * cross) @ tint
        gain = np.exp(rng.normal(0, 0.22)) * np.exp(rng.normal(0, 0.05, 3))
        other = gain * np.exp(rng.normal(0, 0.12, 3)) if rng.uniform() < 0.3 else gain
        lift, gamma, contrast = rng.normal(0, 0.03), np.exp(rng.normal(0, 0.22)), np.exp(rng.normal(0, 0.15))
    return {
        "tint": torch.from_numpy(tint).float(),
        "gains": torch.from_numpy(np.stack([gain, other])).float(),
        "tones": torch.tensor([lift, gamma, contrast], dtype=torch.float32),
    }


def compose(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Pictures and truth of a batch from its warped maps and colours; made to be compiled."""
    known, inside = batch["known"], batch["inside"]
    alpha = batch["alpha"] / 255
    image_of = {}
    for number, name in enumerate(("foreground", "background")):
        values = batch[name] / 255
        if name == "foreground":
            values = values / alpha.clamp_min(1e-3)
        bright = torch.einsum("bij,bjhw->bihw", batch["tint"], values)
        lift, gamma, contrast = (batch["tones"][:, i, None, None, None] for i in range(3))
        lit = (bright * batch["gains"][:, number, :, None, None]).clamp(1e-4, 1) ** gamma
        image_of[name] = ((lit - 0.45) * contrast + 0.45 + lift).clamp(0, 1)
    foreground = image_of["foreground"] * alpha
    image = foreground + (1 - alpha) * image_of["background"] * inside[:, None]
    surface = (known[:, 0] > 0.5) & (batch["parts"] != 0) & inside
    cos, sin, side = (batch["turn"][:, i, None, None] for i in range(3))

    def turned(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:  # the camera rolls with the window
        return side * (cos * x + sin * y), -sin * x + cos * y

    depth = batch["depth"] / known[:, 0].clamp_min(1e-3)
    nx, ny = turned(batch["normals"][:, 0], batch["normals"][:, 1])
    normals = F.normalize(torch.stack([nx, ny, batch["normals"][:, 2]], dim=1), dim=1)
    intrinsics = batch["intrinsics"]
    across = torch.arange(WIDTH, device=depth.device)[None, None, :] - intrinsics[:, 0, 2, None, None]
    down = torch.arange(HEIGHT, device=depth.device)[None, :, None] - intrinsics[:, 1, 2, None, None]
    focal = intrinsics[:, 0, 0, None, None]
    points = (
        torch.stack([across * depth / focal, down * depth / focal, depth], dim=1) * batch["scales"][..., None, None]
    )
    albedo = torch.einsum("bij,bjhw->bihw", batch["tint"], batch["albedo"] / 255 / batch["covered"].clamp_min(1e-3))
    return {
        "image": image.clamp(0, 1),
        "known": surface,
        "normals": torch.where(surface[:, None], normals, 0.0),
        "points": torch.where(surface[:, None], points, 0.0),
        "albedo": albedo.clamp(0, 1),
        "matte": torch.cat([foreground, alpha], dim=1).clamp(0, 1),
    }


def worsen(images: Tensor, rng: np.random.Generator, share: float) -> Tensor:
    """Some of the pictures blurred, noisy or coarse; all of them in 256 levels, as the model gets them."""
    images = images.clone()
    for image in images:
        if rng.uniform() < share:
            image.copy_(_worsened(image, rng))
    return images.clamp_(0, 1).mul_(255).round_().div_(255)


def _worsened(image: Tensor, rng: np.random.Generator) -> Tensor:
    kind = rng.uniform()
    if kind < 0.4:
        factor = float(rng.uniform(0.35, 0.8))
        small = F.interpolate(image[None], scale_factor=factor, mode="bilinear", antialias=True)
        image = F.interpolate(small, size=image.shape[1:], mode="bilinear")[0]
    elif kind < 0.65:
        sigma = rng.uniform(0.4, 1.3)
        taps = torch.exp(-0.5 * (torch.arange(-3, 4) / sigma) ** 2)
        taps = (taps / taps.sum()).view(1, 1, 1, 7).repeat(3, 1, 1, 1)
        padded = F.pad(image[None], (3, 3, 3, 3), mode="replicate")
        image = F.conv2d(F.conv2d(padded, taps, groups=3), taps.transpose(2, 3), groups=3)[0]
    if kind > 0.5:
        noise = torch.from_numpy(rng.standard_normal(image.shape, np.float32))
        image = image + noise * float(rng.uniform(0.005, 0.05))
    return image


def _camera(row: dict[str, NDArray[np.generic]], window: Window) -> dict[str, Tensor]:
    middle = np.array([(WIDTH - 1) / 2, (HEIGHT - 1) / 2])
    scale = float(np.sqrt(window.scale.prod()))
    cos, sin, side = float(np.cos(window.angle)), float(np.sin(window.angle)), -1.0 if window.flip else 1.0
    away = (middle - window.centre) / scale
    offset = np.array([side * (cos * away[0] + sin * away[1]), -sin * away[0] + cos * away[1]])
    focal = float(row["focal"]) / scale
    intrinsics = np.array([[focal, 0, middle[0] + offset[0]], [0, focal, middle[1] + offset[1]], [0, 0, 1.0]])
    return {
        "turn": torch.tensor([cos, sin, side]),
        "intrinsics": torch.from_numpy(intrinsics).float(),
        "scales": torch.tensor([WIDTH_FOCAL / focal], dtype=torch.float32),
    }


WIDTH_FOCAL = 768.0
"""Focal length of the canonical camera, in pixels of the network's input."""


def _pose(row: dict[str, NDArray[np.generic]], window: Window) -> dict[str, Tensor]:
    if window.person is None:
        return {"keypoints": torch.zeros(308, 3)}
    points = row["keypoints"][window.person].astype(np.float64)
    away = (points[:, :2] - window.centre) / window.scale
    cos, sin = np.cos(window.angle), np.sin(window.angle)
    x, y = cos * away[:, 0] + sin * away[:, 1], -sin * away[:, 0] + cos * away[:, 1]
    seen = points[:, 2]
    if window.flip:
        x, y, seen = -x[KEYPOINT_SWAP], y[KEYPOINT_SWAP], seen[KEYPOINT_SWAP]
    placed = np.stack([x + (WIDTH - 1) / 2, y + (HEIGHT - 1) / 2, seen], axis=1)
    inside = ((placed[:, :2] >= 0) & (placed[:, :2] < [WIDTH, HEIGHT])).all(axis=1)
    placed[~inside] = 0
    return {"keypoints": torch.from_numpy(placed.astype(np.float32))}
