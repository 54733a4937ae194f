"""Checks of the arrays that writers, drawing functions and results take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError

__all__ = ["checked_array", "checked_image", "checked_mask", "real_array"]


def checked_array(value: Any, name: str, shape: Sequence[int | str], *, finite: bool = False) -> NDArray[np.float32]:
    """``value`` as a float32 array of a given shape.

    Args:
        value: Anything that numpy turns into an array of real numbers.
        name: What the array is called in the error message.
        shape: Expected size of each axis; a letter stands for any size, the same wherever the letter returns.
        finite: Whether NaN and infinity are refused.

    Returns:
        ``(*shape)`` float32; the input itself when it is already that.

    Raises:
        InputError: Not numbers, of another shape, or not finite where it has to be.
    """
    array = real_array(value, name)
    _check_shape(array, name, shape)
    result = array.astype(np.float32, copy=False)
    if finite and not np.isfinite(result).all():
        bad = int(np.size(result) - np.isfinite(result).sum())
        raise InputError(f"{name} must be finite; {bad} of {result.size} values are NaN or infinite")
    return result


def checked_image(value: Any, name: str = "image") -> NDArray[np.uint8]:
    """``value`` as an RGB picture.

    Returns:
        ``(H, W, 3)`` uint8 with H, W >= 1; the input itself when it is already an array.

    Raises:
        InputError: Another shape or dtype, or no pixels. Floats are refused, since their range is not known.
    """
    array = real_array(value, name)
    _check_shape(array, name, ("H", "W", 3))
    if array.dtype != np.uint8:
        raise InputError(f"{name} must be uint8 in 0..255, got {array.dtype}; scale and convert it first")
    if array.size == 0:
        raise InputError(f"{name} has no pixels: its shape is {array.shape}")
    return array


def checked_mask(mask: Any | None, size_hw: Sequence[int], name: str = "mask") -> NDArray[np.bool_]:
    """``mask`` as ``(H, W)`` bool; all true when it is None.

    Raises:
        InputError: Another shape, or not booleans.
    """
    if mask is None:
        return np.ones(size_hw, np.bool_)
    array = real_array(mask, name)
    if array.dtype != np.bool_ or array.shape != tuple(size_hw):
        raise InputError(f"{name} must be bool {tuple(size_hw)}, got {array.dtype} {array.shape}")
    return array


def real_array(value: Any, name: str) -> NDArray[Any]:
    """``value`` as an array of booleans, integers or real numbers.

    Raises:
        InputError: numpy cannot read it, or it holds something else.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as a numpy array ({error}); move tensors to the CPU first") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers, got dtype {array.dtype}")
    return array


def _check_shape(array: NDArray[Any], name: str, shape: Sequence[int | str]) -> None:
    sizes: dict[str, int] = {}
    fits = array.ndim == len(shape) and all(
        got == (sizes.setdefault(want, got) if isinstance(want, str) else want)
        for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        expected = ", ".join(str(size) for size in shape)
        raise InputError(f"{name} must have shape ({expected}), got {array.shape}")
