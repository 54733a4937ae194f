"""Body parts over a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets.tables import RGB, part_table
from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_image, real_array
from sapiens2.visualization.legend import LegendEntry, add_legend

__all__ = ["draw_segmentation", "segmentation_legend"]

EDGE_DARKENING = 0.55


def draw_segmentation(
    image: Any,
    segmentation: Any,
    *,
    opacity: float = 0.5,
    palette_rgb: Sequence[RGB] | None = None,
    class_names: Sequence[str] | None = None,
    ignore_index: int | None = None,
    legend: bool = True,
) -> NDArray[np.uint8]:
    """Tint a picture by class, draw the borders between classes, and name the classes that are present.

    Args:
        image: ``(H, W, 3)`` uint8; it is not changed.
        segmentation: ``(H, W)`` integer class ids.
        opacity: Share of the class colour, 0..1.
        palette_rgb: Colour of each class; left out, that of the published 29 parts.
        class_names: Name of each class; left out, those of the published 29 parts.
        ignore_index: Label of pixels that are left as they are; left out, 255.
        legend: Add the legend. The result is then larger than the picture, which stays in the upper left corner.

    Returns:
        ``(H, W, 3)`` uint8, with a legend ``(H', W', 3)``.

    Raises:
        InputError: Sizes that differ, ids that are not integers or have no colour, or an opacity out of range.
    """
    picture = checked_image(image)
    table = part_table()
    palette = np.asarray(table.palette_rgb if palette_rgb is None else palette_rgb, np.uint8)
    names = table.names if class_names is None else class_names
    ignored = table.ignore_index if ignore_index is None else ignore_index
    if len(names) != len(palette):
        raise InputError(f"there are {len(names)} class_names and {len(palette)} colours; give one of each per class")
    if not 0 <= opacity <= 1:
        raise InputError(f"opacity must lie in 0..1, got {opacity}")
    ids = _checked_ids(segmentation, picture.shape[:2], len(palette), ignored)
    tinted = _tinted(picture, ids, palette, opacity, ignored)
    return add_legend(tinted, segmentation_legend(ids, palette, names)) if legend else tinted


def segmentation_legend(
    ids: NDArray[Any], palette_rgb: NDArray[np.uint8], class_names: Sequence[str]
) -> list[LegendEntry]:
    """The classes of a map with their share of its pixels, largest first; ids without a colour are left out."""
    counts = np.bincount(ids.ravel().astype(np.intp), minlength=len(palette_rgb))[: len(palette_rgb)]
    order = np.argsort(-counts, kind="stable")
    return [
        LegendEntry(class_names[index].replace("_", " "), _rgb(palette_rgb[index]), _share(counts[index] / ids.size))
        for index in order
        if counts[index]
    ]


def _tinted(
    picture: NDArray[np.uint8], ids: NDArray[Any], palette: NDArray[np.uint8], opacity: float, ignored: int
) -> NDArray[np.uint8]:
    known = ids != ignored
    colors = palette[np.where(known, ids, 0)]  # (H, W, 3)
    weight = np.uint16(round(256 * opacity))
    tinted = ((picture * (256 - weight) + colors * weight + 128) >> 8).astype(np.uint8)
    tinted[~known] = picture[~known]
    edges = _borders(ids) & known
    tinted[edges] = (tinted[edges] * (1 - EDGE_DARKENING * opacity)).astype(np.uint8)
    return tinted


def _borders(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Pixels whose right or lower neighbour has another class."""
    borders = np.zeros(ids.shape, np.bool_)
    borders[:, :-1] |= ids[:, 1:] != ids[:, :-1]
    borders[:-1] |= ids[1:] != ids[:-1]
    return borders


def _checked_ids(segmentation: Any, size_hw: tuple[int, ...], num_classes: int, ignored: int) -> NDArray[Any]:
    ids = real_array(segmentation, "segmentation")
    if ids.shape != size_hw or ids.dtype.kind not in "iu":
        raise InputError(f"segmentation must be integers {size_hw} like the picture, got {ids.dtype} {ids.shape}")
    stray = ids[(ids != ignored) & ((ids < 0) | (ids >= num_classes))]
    if stray.size:
        raise InputError(f"segmentation has id {stray[0]}; expected 0..{num_classes - 1} or {ignored} (ignored)")
    return ids


def _rgb(color: NDArray[np.uint8]) -> RGB:
    red, green, blue = color.tolist()
    return red, green, blue


def _share(fraction: float) -> str:
    return f"{fraction:.1%}" if fraction >= 0.001 else "<0.1%"
