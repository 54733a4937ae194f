"""From the numbers of a file to a field of a sample: ranges, layouts and what stands for "nothing here"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.sample import IGNORE_LABEL
from sapiens2.errors import ConfigurationError, InputError

__all__ = ["as_albedo", "as_alpha", "as_depth", "as_foreground", "as_mask", "as_normals", "as_parts", "as_trimap"]

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

_NO_NORMAL = {"uint8": 0.02, "uint16": 1e-3}
"""Decoded vectors shorter than this are "no normal": zero lies between two steps of the integers."""
_NO_NORMAL_FLOAT = 1e-6
_LENGTHS = (0.9, 1.1)
_TRIMAP_LEVELS = (0, 128, 255)


def as_parts(values: NDArray[Any], num_classes: int, name: str) -> NDArray[np.uint8]:
    """Class ids ``(H, W)`` uint8.

    Args:
        values: ``(H, W)`` or ``(H, W, 1)`` whole numbers.
        num_classes: Ids are below it, or 255.
        name: What messages call it.

    Raises:
        InputError: It has colours or fractions, or an id is not in the list.
    """
    _require_numbers(values, name)
    ids = values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if ids.ndim != 2:
        raise InputError(f"{name} has shape {values.shape}; expected one channel of class ids, not colours.")
    if ids.dtype.kind == "f" and not (np.isfinite(ids).all() and (ids == np.rint(ids)).all()):
        raise InputError(f"{name} has fractions or values that are not finite; expected class ids.")
    bad = (ids < 0) | ((ids >= num_classes) & (ids != IGNORE_LABEL))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"{name}: class id {ids[row, column]} at row {row}, column {column}, and {int(bad.sum())} such pixels in "
            f"all; the list has {num_classes} classes, 0 to {num_classes - 1}, and {IGNORE_LABEL} is ignored."
        )
    return np.ascontiguousarray(ids, np.uint8)


def as_normals(values: NDArray[Any], name: str, *, signs: Sequence[int] = (1, 1, 1)) -> Floats:
    """Unit vectors ``(3, H, W)``; NaN where there is none.

    Integers are components mapped from -1..1 to their whole range. No normal is the zero vector, NaN, and the colour
    black, which many programs leave there.

    Args:
        values: ``(H, W, 3)`` or ``(3, H, W)``; uint8, uint16 or floats.
        name: What messages call it.
        signs: 1 or -1 for x, y and z, to come to x right, y down.

    Raises:
        InputError: Another shape or number format, or lengths that are off by more than a tenth.
    """
    _require_numbers(values, name)
    stored = _three_channels(values, name)
    if stored.dtype.name in _NO_NORMAL:
        vectors = stored.astype(np.float32) / np.iinfo(stored.dtype).max * 2 - 1
        shortest, black = _NO_NORMAL[stored.dtype.name], (stored == 0).all(axis=0)
    elif stored.dtype.kind == "f":
        with np.errstate(over="ignore"):  # an infinite length is refused below
            vectors, shortest = stored.astype(np.float32), _NO_NORMAL_FLOAT
        black = np.isnan(vectors).any(axis=0)
    else:
        raise InputError(f"{name} has numbers of type {stored.dtype}; expected uint8, uint16 or floats.")
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=0))
    absent = black | (lengths < shortest)
    with np.errstate(invalid="ignore"):
        odd = ~absent & ~((lengths > _LENGTHS[0]) & (lengths < _LENGTHS[1]))
    if odd.any():
        row, column = np.argwhere(odd)[0]
        raise InputError(
            f"{name}: {int(odd.sum())} normals are not of unit length, the first of length {lengths[row, column]:.3g} "
            f"at row {row}, column {column}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = vectors / lengths * np.array(signs)[:, None, None]
    return np.where(absent, np.nan, unit).astype(np.float32)


def as_depth(values: NDArray[Any], name: str, *, unit_m: float | None = None) -> Floats:
    """Depth along z ``(H, W)`` in metres; NaN where it is zero or not finite.

    Args:
        values: ``(H, W)``, ``(H, W, 1)`` or ``(1, H, W)``.
        name: What messages call it.
        unit_m: Metres per unit; may be None for floats, which are metres then.

    Raises:
        InputError: Another shape, whole numbers without a unit, depths below zero, or too large for float32.
        ConfigurationError: The unit is not above zero, or infinite.
    """
    if unit_m is not None and not 0 < unit_m < np.inf:
        raise ConfigurationError(f"unit_m is {unit_m}; expected metres per unit, above zero and finite")
    _require_numbers(values, name)
    depth = _one_channel(values, name)
    if depth.dtype.kind not in "uif":
        raise InputError(f"{name} has numbers of type {depth.dtype}; expected depths as whole numbers or floats.")
    if unit_m is None and depth.dtype.kind != "f":
        raise InputError(f"{name} has whole numbers ({depth.dtype}); say what they are: unit_m=0.001 for millimetres.")
    metres = depth.astype(np.float64) * (1.0 if unit_m is None else unit_m)
    known = np.isfinite(metres)
    if negative := int((metres[known] < 0).sum()):
        raise InputError(f"{name} has {negative} depths below zero; expected Z ahead of the camera, 0 or NaN for none.")
    if (farthest := metres[known].max(initial=0)) > np.finfo(np.float32).max:
        raise InputError(f"{name} has depths up to {farthest:.3g} m; expected Z in metres.")
    return np.where(known & (metres > 0), metres, np.nan).astype(np.float32)


def as_mask(values: NDArray[Any], name: str) -> Mask:
    """``(H, W)`` bool: where grey, or any colour, is above zero, and what is there is not transparent.

    A mask can also lie in the transparency of a picture that is black.

    Raises:
        InputError: Another shape, no numbers, or NaN.
    """
    _require_numbers(values, name)
    channels = values[..., None] if values.ndim == 2 else values
    if channels.ndim != 3 or channels.shape[2] not in (1, 2, 3, 4):
        raise InputError(f"{name} has shape {values.shape}; expected a mask of one channel.")
    if channels.dtype.kind == "f" and np.isnan(channels).any():
        raise InputError(f"{name} has values that are NaN; expected a mask.")
    if channels.shape[2] in (1, 3):
        return np.ascontiguousarray((channels > 0).any(axis=2))
    opaque, coloured = channels[..., -1] > 0, (channels[..., :-1] > 0).any(axis=2)
    is_in_transparency = not coloured.any() and not opaque.all()
    return np.ascontiguousarray(opaque if is_in_transparency else opaque & coloured)


def as_alpha(values: NDArray[Any], name: str) -> Floats:
    """``(H, W)`` in 0..1: the alpha channel if there is one, else the grey value.

    Raises:
        InputError: Colours, NaN, or floats outside 0..1; or grey values that vary under an alpha channel that is opaque
            everywhere, so that it is not clear which of them is meant.
    """
    _require_numbers(values, name)
    if values.ndim == 3 and values.shape[2] in (2, 4):
        grey, alpha = values[..., :-1], values[..., -1]
        if (alpha == alpha.flat[0]).all() and (grey == grey[..., :1]).all() and (grey != grey[0, 0]).any():
            raise InputError(
                f"{name} has grey values that vary, and an alpha channel that is {alpha.flat[0]} everywhere; save the "
                "matte as grey alone, or as the alpha channel."
            )
        values = alpha
    elif values.ndim == 3 and values.shape[2] == 3:
        if (values != values[..., :1]).any():
            raise InputError(f"{name} has colours; expected grey values or an alpha channel.")
        values = values[..., 0]
    return _unit_range(_one_channel(values, name), name)


def as_trimap(values: NDArray[Any], name: str) -> tuple[Floats, Mask]:
    """Alpha ``(H, W)``, 0 or 1, and where it is known.

    Args:
        values: ``(H, W)`` uint8: 0 background, 128 unknown, 255 foreground.
        name: What messages call it.

    Raises:
        InputError: Other values.
    """
    _require_numbers(values, name)
    levels = _one_channel(values, name)
    if other := [level for level in np.unique(levels).tolist() if level not in _TRIMAP_LEVELS]:
        raise InputError(
            f"{name} has the values {', '.join(map(str, other[:5]))}; a trimap has 0, 128 (unknown) and 255 only."
        )
    return (levels == _TRIMAP_LEVELS[2]).astype(np.float32), np.ascontiguousarray(levels != _TRIMAP_LEVELS[1])


def as_foreground(values: NDArray[Any], name: str) -> Floats:
    """RGB ``(3, H, W)`` in 0..1, premultiplied; files with an alpha channel have straight colours, as PNG asks for.

    Raises:
        InputError: Another shape, NaN, or floats outside 0..1.
    """
    _require_numbers(values, name)
    if values.ndim == 3 and values.shape[2] == 4:
        colours, alpha = _unit_range(values[..., :3], name), _unit_range(values[..., 3:], name)
        return np.ascontiguousarray((colours * alpha).transpose(2, 0, 1))
    return np.ascontiguousarray(_unit_range(_three_channels(values, name), name))


def as_albedo(values: NDArray[Any], name: str) -> Floats:
    """SRGB ``(3, H, W)`` in 0..1; NaN where a file with an alpha channel is transparent, or a float is NaN.

    Raises:
        InputError: Another shape, or floats outside 0..1.
    """
    _require_numbers(values, name)
    absent: Mask | None = None
    if values.ndim == 3 and values.shape[2] == 4:
        absent, values = values[..., 3] == 0, values[..., :3]
    colours = _three_channels(values, name)
    if colours.dtype.kind == "f":
        absent = np.isnan(colours).any(axis=0)
        colours = np.nan_to_num(colours, nan=0.0)
    albedo = _unit_range(colours, name)
    return np.ascontiguousarray(albedo if absent is None else np.where(absent, np.float32(np.nan), albedo))


def _require_numbers(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind not in "buif":
        raise InputError(f"{name} has numbers of type {values.dtype}; expected whole numbers or floats.")
    if not values.size:
        raise InputError(f"{name} has shape {values.shape}, which is empty.")


def _unit_range(values: NDArray[Any], name: str) -> Floats:
    if values.dtype.kind == "b":
        return values.astype(np.float32)
    if values.dtype.name in ("uint8", "uint16"):
        return values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
    if values.dtype.kind != "f":
        raise InputError(f"{name} has numbers of type {values.dtype}; expected uint8, uint16 or floats in 0..1.")
    if not np.isfinite(values).all():
        raise InputError(f"{name} has {int((~np.isfinite(values)).sum())} values that are NaN or infinite.")
    low, high = float(values.min()), float(values.max())
    if low < -1e-3 or high > 1 + 1e-3:
        raise InputError(f"{name} has values from {low:.4g} to {high:.4g}; expected 0 to 1.")
    return values.clip(0, 1).astype(np.float32)


def _one_channel(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.ndim == 3 and 1 in (values.shape[0], values.shape[2]):
        values = values[..., 0] if values.shape[2] == 1 else values[0]
    if values.ndim != 2:
        raise InputError(f"{name} has shape {values.shape}; expected (height, width).")
    return values


def _three_channels(values: NDArray[Any], name: str) -> NDArray[Any]:
    """View ``(3, H, W)``; where both ends are 3, the last one has the channels, as in files."""
    if values.ndim == 3 and values.shape[2] == 3:
        return values.transpose(2, 0, 1)
    if values.ndim == 3 and values.shape[0] == 3:
        return values
    raise InputError(f"{name} has shape {values.shape}; expected (height, width, 3) or (3, height, width).")
