"""Augmented batches of the pool: one window and one change of colours for the picture and all its truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scripts.nano.pool import SIZE_HW, Pool
from torch import Tensor

from sapiens2.assets import keypoint_table, part_table
from sapiens2.geometry import canonical_scale
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.types import TASKS, Task

__all__ = ["HEATMAP_SIGMA", "MEAN", "STD", "Augmentation", "batch_indices", "compose", "make_batch", "worsen"]

HEIGHT, WIDTH = SIZE_HW
MIDDLE = np.array([(WIDTH - 1) / 2, (HEIGHT - 1) / 2])
HEATMAP_SIGMA = 2.0
MEAN = torch.tensor(Sapiens2ImageProcessor.image_mean).view(3, 1, 1)
STD = torch.tensor(Sapiens2ImageProcessor.image_std).view(3, 1, 1)
LUMA = np.array([0.299, 0.587, 0.114])
PICTURE = ("foreground", "background", "alpha")
"""Fields of the pool that make the picture, and the matte."""
SURFACE: dict[Task, str] = {"normal": "normals", "pointmap": "depth", "albedo": "albedo"}
"""Fields that other tasks need, which are known on surfaces only."""
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
        cloths: Share of pictures with striped cloth in the background: flags and curtains look like clothes.
        colours: Share of pictures whose colours are changed.
        quality: Share of pictures that are blurred, noisy or coarse.
    """

    person_windows: float = 0.5
    stretch: float = 1.0
    backgrounds: float = 0.25
    cloths: float = 0.0
    colours: float = 0.85
    quality: float = 0.4


@dataclass(frozen=True)
class Window:
    """What of a picture is shown: ``picture = scale * turn @ mirror @ (result - MIDDLE) + centre``, in pixels.

    Attributes:
        centre: ``(2,)`` x, y of the picture in the middle of the result.
        scale: ``(2,)`` pixels of the picture per pixel of the result.
        angle: Of the turn, radians.
        flip: Whether the result is mirrored.
        person: Row of the keypoints to use; None for no poses.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    angle: float
    flip: bool
    person: int | None

    @property
    def turn(self) -> tuple[float, float, float]:
        """Cosine, sine, and the sign of x."""
        return float(np.cos(self.angle)), float(np.sin(self.angle)), -1.0 if self.flip else 1.0

    def to_result(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pixels of the picture ``(..., 2)`` as pixels of the result."""
        cos, sin, side = self.turn
        x, y = np.moveaxis((points - self.centre) / self.scale, -1, 0)
        return np.stack([side * (cos * x + sin * y), cos * y - sin * x], axis=-1) + MIDDLE


def batch_indices(indices: NDArray[np.int64], seed: int, step: int, size: int) -> NDArray[np.int64]:
    """Indices of a batch: every sample once in each epoch, in an order that depends on seed and step alone."""
    chosen, position = [], step * size
    while len(chosen) < size:
        epoch, offset = divmod(position + len(chosen), len(indices))
        order = np.random.default_rng([seed, epoch]).permutation(len(indices))
        chosen += list(order[offset : offset + size - len(chosen)])
    return indices[np.array(chosen)]


def make_batch(
    pool: Pool,
    chosen: NDArray[np.int64],
    rng: np.random.Generator,
    augmentation: Augmentation | None,
    tasks: Sequence[Task] = TASKS,
) -> dict[str, Tensor]:
    """Read samples and augment them.

    Args:
        pool: Where they are.
        chosen: Their indices; backgrounds are exchanged among them.
        rng: The only source of chance.
        augmentation: How far they are changed; None leaves them as they are.
        tasks: Whose truth is needed. Chance does not depend on them.

    Returns:
        Warped maps at full size, colours, camera and keypoints, with a batch axis, for :func:`compose`.
    """
    rows = [_augmented(pool, int(index), chosen, rng, augmentation, tasks) for index in chosen]
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def _augmented(
    pool: Pool,
    index: int,
    chosen: NDArray[np.int64],
    rng: np.random.Generator,
    own: Augmentation | None,
    tasks: Sequence[Task],
) -> dict[str, Tensor]:
    row = pool.row(index)
    window = _window(row, rng, own)
    maps = _warped(row, window, tasks)
    if own is not None and rng.uniform() < own.backgrounds:
        other = torch.from_numpy(pool.arrays["background"][int(rng.choice(chosen))]).permute(2, 0, 1)
        maps["background"].copy_(other.flip(2) if rng.uniform() < 0.5 else other)
    if own is not None and rng.uniform() < own.cloths:
        for _ in range(int(rng.integers(1, 4))):
            _hang_cloth(maps["background"], rng)
    changed = own is not None and rng.uniform() < own.colours
    return {**maps, **_camera(row, window), **_pose(row, window), **_colours(rng if changed else None)}


def _hang_cloth(background: Tensor, rng: np.random.Generator) -> None:
    """Draw a rectangle of striped or plain cloth, with folds, into a background ``(3, H, W)`` of 0 to 255."""
    height, width = (int(size * rng.uniform(0.2, 0.9)) for size in SIZE_HW)
    top, left = int(rng.integers(0, HEIGHT - height + 1)), int(rng.integers(0, WIDTH - width + 1))
    down, across = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")

    def phase(shortest: float, longest: float) -> Tensor:
        """Of waves in any direction, in periods; with waves of its own."""
        angle, period = rng.uniform(0, np.pi), np.exp(rng.uniform(np.log(shortest), np.log(longest)))
        along, aside = np.cos(angle) * across + np.sin(angle) * down, np.cos(angle) * down - np.sin(angle) * across
        return (along + period * rng.uniform(0, 0.3) * torch.sin(aside / period * rng.uniform(0.5, 3))) / period

    count = int(rng.integers(1, 5))
    saturation = rng.uniform(0, 1)
    colours = rng.uniform(0, 255, (count, 1)) * (1 - saturation) + rng.uniform(0, 255, (count, 3)) * saturation
    stripes = torch.from_numpy(colours).float()[(phase(6, 90) * count).floor().long() % count]  # (h, w, 3)
    folds = 1 - rng.uniform(0, 0.5) * (0.5 + 0.5 * torch.sin(2 * np.pi * phase(15, 120)))
    place = background[:, top : top + height, left : left + width]
    place.copy_((stripes * folds[..., None]).permute(2, 0, 1))


def _window(row: dict[str, NDArray[np.generic]], rng: np.random.Generator, own: Augmentation | None) -> Window:
    people = int(row["count"])
    if own is None:
        return Window(MIDDLE, np.ones(2), 0.0, False, 0 if people == 1 else None)
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
        centre = MIDDLE + rng.uniform(-1, 1, 2) * room
        angle = float(rng.normal(0, 0.12)) if rng.uniform() < 0.4 else 0.0
    stretch = np.exp(rng.uniform(-1, 1) * np.log(own.stretch) / 2)
    return Window(centre, size * np.array([stretch, 1 / stretch]), angle, flip, person)


def _source_pixels(window: Window) -> Tensor:
    """Picture pixel of every pixel of the result, ``(H, W, 2)``."""
    x = torch.arange(WIDTH, dtype=torch.float32) - (WIDTH - 1) / 2
    y = torch.arange(HEIGHT, dtype=torch.float32) - (HEIGHT - 1) / 2
    cos, sin, side = window.turn
    x, y = torch.meshgrid(side * x, y, indexing="xy")
    across = (cos * x - sin * y) * float(window.scale[0]) + float(window.centre[0])
    down = (sin * x + cos * y) * float(window.scale[1]) + float(window.centre[1])
    return torch.stack([across, down], dim=-1)


def _warped(row: dict[str, NDArray[np.generic]], window: Window, tasks: Sequence[Task]) -> dict[str, Tensor]:
    """The maps in the window. Those of surfaces are 0 outside, so a sum of them over a mask warped alike is a mean."""
    pixels = _source_pixels(window)
    grid = (pixels / torch.from_numpy(MIDDLE).float() - 1)[None]
    surface = [SURFACE[task] for task in tasks if task in SURFACE]
    fields = {name: torch.from_numpy(row[name]) for name in (*PICTURE, *surface)}
    parts = torch.from_numpy(row["parts"])
    if surface:
        fields["known"] = parts != 0
    if "albedo" in surface:
        fields["covered"] = fields["alpha"] > 0
    planes = {name: values[None] if values.ndim == 2 else values.permute(2, 0, 1) for name, values in fields.items()}
    counts = [len(values) for values in planes.values()]
    stack = torch.empty(sum(counts), HEIGHT, WIDTH)
    for place, values in zip(stack.split(counts), planes.values(), strict=True):
        place.copy_(values)
    warped = F.grid_sample(stack[None], grid, align_corners=True)[0]
    maps = dict(zip(planes, warped.split(counts), strict=True))
    columns, rows = pixels.round().long().unbind(-1)
    inside = (columns >= 0) & (columns < WIDTH) & (rows >= 0) & (rows < HEIGHT)
    labels = parts[rows.clamp(0, HEIGHT - 1), columns.clamp(0, WIDTH - 1)].long()
    if window.flip:
        labels = PART_SWAP[labels]
    return {**maps, "inside": inside, "parts": torch.where(inside, labels, 255).to(torch.uint8)}


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
    """Pictures and truth of a batch from its warped maps and colours; made to be compiled.

    Returns:
        ``image`` ``(B, 3, H, W)`` in [0, 1], ``matte`` ``(B, 4, H, W)``, and of ``known``, ``normals``, ``points`` and
        ``albedo`` those whose maps are there.
    """
    alpha = batch["alpha"] / 255
    foreground = _toned(batch["foreground"] / 255 / alpha.clamp_min(1e-3), batch, 0) * alpha
    background = _toned(batch["background"] / 255, batch, 1) * batch["inside"][:, None]
    result = {
        "image": (foreground + (1 - alpha) * background).clamp(0, 1),
        "matte": torch.cat([foreground, alpha], dim=1).clamp(0, 1),
    }
    if "known" not in batch:
        return result
    known = (batch["known"][:, 0] > 0.5) & (batch["parts"] != 0) & batch["inside"]
    result["known"] = known
    if "normals" in batch:
        cos, sin, side = (batch["turn"][:, i, None, None] for i in range(3))  # the camera rolls with the window
        x, y, z = batch["normals"].unbind(1)
        turned = torch.stack([side * (cos * x + sin * y), cos * y - sin * x, z], dim=1)
        result["normals"] = torch.where(known[:, None], F.normalize(turned, dim=1), 0.0)
    if "depth" in batch:
        result["points"] = torch.where(known[:, None], _points(batch), 0.0)
    if "albedo" in batch:
        colours = batch["albedo"] / 255 / batch["covered"].clamp_min(1e-3)
        result["albedo"] = torch.einsum("bij,bjhw->bihw", batch["tint"], colours).clamp(0, 1)
    return result


def _toned(values: Tensor, batch: dict[str, Tensor], layer: int) -> Tensor:
    """Colours in other light: of people (layer 0) or of their surroundings (1)."""
    tinted = torch.einsum("bij,bjhw->bihw", batch["tint"], values)
    lift, gamma, contrast = (batch["tones"][:, i, None, None, None] for i in range(3))
    lit = (tinted * batch["gains"][:, layer, :, None, None]).clamp(1e-4, 1) ** gamma
    return ((lit - 0.45) * contrast + 0.45 + lift).clamp(0, 1)


def _points(batch: dict[str, Tensor]) -> Tensor:
    """Points in canonical scale, seen by the window's camera."""
    depth = batch["depth"][:, 0] / batch["known"][:, 0].clamp_min(1e-3)
    focal, middle_x, middle_y = (batch["intrinsics"][:, i, j, None, None] for i, j in ((0, 0), (0, 2), (1, 2)))
    across = torch.arange(WIDTH, device=depth.device)[None, None, :] - middle_x
    down = torch.arange(HEIGHT, device=depth.device)[None, :, None] - middle_y
    points = torch.stack([across * depth / focal, down * depth / focal, depth], dim=1)
    return points * batch["scales"][..., None, None]


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
    """The camera that rolls and zooms with the window; the picture's looks through the middle of the picture."""
    focal = float(row["focal"]) / float(np.sqrt(window.scale.prod()))
    across, down = window.to_result(MIDDLE)
    intrinsics = np.array([[focal, 0, across], [0, focal, down], [0, 0, 1.0]])
    return {
        "turn": torch.tensor(window.turn),
        "intrinsics": torch.from_numpy(intrinsics).float(),
        "scales": torch.tensor([canonical_scale(focal)], dtype=torch.float32),
    }


def _pose(row: dict[str, NDArray[np.generic]], window: Window) -> dict[str, Tensor]:
    """Keypoints of the window's person, ``(308, 3)``: x, y, visibility; 0 for those outside."""
    placed = np.zeros((len(KEYPOINT_SWAP), 3))
    if window.person is not None:
        placed[:] = row["keypoints"][window.person]
        placed[:, :2] = window.to_result(placed[:, :2])
        placed = placed[KEYPOINT_SWAP] if window.flip else placed
        placed[~((placed[:, :2] >= 0) & (placed[:, :2] < [WIDTH, HEIGHT])).all(axis=1)] = 0
    return {"keypoints": torch.from_numpy(placed.astype(np.float32))}
