"""One picture and whatever is known about it: what loaders give, augmentations change and targets are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets import part_table
from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["IGNORE_LABEL", "Sample", "check_values"]

IGNORE_LABEL = part_table().ignore_index
"""Class id of pixels without a label, 255: padding and what lies outside the picture."""

_UNIT_TOLERANCE = 0.01
_RANGE_TOLERANCE = 1e-3

_LAYOUTS: dict[str, tuple[str, tuple[int | str, ...]]] = {
    "image": ("uint8", ("H", "W", 3)),
    "keypoints": ("float32", ("N", "K", 3)),
    "boxes_xywh": ("float32", ("N", 4)),
    "parts": ("uint8", ("H", "W")),
    "normals": ("float32", (3, "H", "W")),
    "pointmap": ("float32", (3, "H", "W")),
    "intrinsics": ("float64", (3, 3)),
    "alpha": ("float32", ("H", "W")),
    "foreground": ("float32", (3, "H", "W")),
    "albedo": ("float32", (3, "H", "W")),
    "mask": ("bool", ("H", "W")),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """A picture with the truth of any number of tasks; what is not known is None.

    Creation checks shapes and number formats only, which costs nothing; :func:`check_values` looks at every pixel.

    Attributes:
        image: ``(H, W, 3)`` uint8 RGB, as displayed.
        keypoints: ``(N, K, 3)`` float32: x, y in pixels and the visibility, 0 where there is no label.
        boxes_xywh: ``(N, 4)`` float32, COCO boxes of the same people; they may reach out of the picture.
        parts: ``(H, W)`` uint8 class ids, 255 where there is no label.
        normals: ``(3, H, W)`` float32 unit vectors; NaN where there is none.
        pointmap: ``(3, H, W)`` float32, X, Y, Z in metres; NaN where there is none. Needs ``intrinsics``.
        intrinsics: ``(3, 3)`` float64 camera matrix, in pixels of the image.
        alpha: ``(H, W)`` float32 in 0..1.
        foreground: ``(3, H, W)`` float32 RGB in 0..1, premultiplied by ``alpha``. Needs ``alpha``.
        albedo: ``(3, H, W)`` float32 sRGB in 0..1; NaN where there is none.
        mask: ``(H, W)`` bool, false where not even alpha is known: padding, and the unknown of a trimap. Where normals,
            points or albedo alone are missing they are NaN. None when all pixels count.
        name: What error messages call it, normally the file.

    Raises:
        InputError: An array has the wrong shape or number format, the maps differ in size, or a field is there
            without the one that it needs.

    Convention: pixel centres at integers, x right, y down; OpenCV camera.
    """

    image: NDArray[np.uint8]
    keypoints: NDArray[np.float32] | None = None
    boxes_xywh: NDArray[np.float32] | None = None
    parts: NDArray[np.uint8] | None = None
    normals: NDArray[np.float32] | None = None
    pointmap: NDArray[np.float32] | None = None
    intrinsics: NDArray[np.float64] | None = None
    alpha: NDArray[np.float32] | None = None
    foreground: NDArray[np.float32] | None = None
    albedo: NDArray[np.float32] | None = None
    mask: NDArray[np.bool_] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for field, (dtype, shape) in _LAYOUTS.items():
            value = getattr(self, field)
            if value is not None:
                _check_layout(self.label(field), value, dtype, shape, sizes)
        if self.image.size == 0:
            raise InputError(f"{self.label('image')} is empty: its shape is {self.image.shape}.")
        for field, needed in (("foreground", "alpha"), ("pointmap", "intrinsics"), ("keypoints", "boxes_xywh")):
            if getattr(self, field) is not None and getattr(self, needed) is None:
                raise InputError(f"{self.label(field)} is given without {needed}, which it needs.")

    @property
    def size_hw(self) -> SizeHW:
        """Height and width of the picture."""
        return self.image.shape[0], self.image.shape[1]

    @property
    def truths(self) -> tuple[str, ...]:
        """Names of the fields that are known, the image aside."""
        return tuple(field for field in _LAYOUTS if field != "image" and getattr(self, field) is not None)

    def label(self, field: str) -> str:
        """What a message calls a field: with the name of the sample, where it has one."""
        return f"{self.name}: {field}" if self.name else field


def check_values(sample: Sample) -> Sample:
    """Look at every value of a sample that was read from files.

    Args:
        sample: Any sample.

    Returns:
        The same sample.

    Raises:
        InputError: A visible keypoint or a box is not finite, a box is empty, a normal is not of unit length, a point
            is not in front of the camera, the camera matrix is none, alpha, foreground or albedo leave 0..1, or the
            foreground is brighter than its alpha allows.
    """
    _check_people(sample)
    if sample.normals is not None:
        _check_normals(sample, sample.normals)
    if sample.intrinsics is not None:
        _check_intrinsics(sample, sample.intrinsics)
    if sample.pointmap is not None:
        partly = np.isfinite(sample.pointmap).sum(axis=0) % 3 != 0
        _refuse(partly, sample.label("pointmap"), "have some finite coordinates and some that are not")
        _refuse(
            np.asarray(sample.pointmap[2] <= 0), sample.label("pointmap"), "lie behind the camera (Z is not above zero)"
        )
    for field in ("alpha", "foreground", "albedo"):
        value = getattr(sample, field)
        if value is not None:
            _check_unit_range(sample.label(field), value, nan_allowed=field == "albedo")
    if sample.foreground is not None and sample.alpha is not None:
        excess = np.asarray(
            (sample.foreground > sample.alpha + 1.5 / 255).any(axis=0)
        )  # a step of 8 bits, and half of one
        _refuse(excess, sample.label("foreground"), "are brighter than alpha: it has to be premultiplied by alpha")
    return sample


def _check_layout(name: str, value: Any, dtype: str, shape: tuple[int | str, ...], sizes: dict[str, int]) -> None:
    if not isinstance(value, np.ndarray):
        raise InputError(f"{name} is a {type(value).__name__}; expected a numpy array.")
    if value.dtype != np.dtype(dtype):
        raise InputError(f"{name} has dtype {value.dtype}; expected {dtype}.")
    fits = value.ndim == len(shape) and all(
        got == (sizes.setdefault(want, got) if isinstance(want, str) else want)
        for got, want in zip(value.shape, shape, strict=True)
    )
    if not fits:
        expected = ", ".join(str(sizes.get(str(size), size)) for size in shape)
        raise InputError(f"{name} has shape {value.shape}; expected ({expected}).")


def _check_people(sample: Sample) -> None:
    if sample.boxes_xywh is not None:
        for index, box in enumerate(sample.boxes_xywh):
            if not np.isfinite(box).all() or min(box[2:]) <= 0:
                raise InputError(
                    f"{sample.label('boxes_xywh')} {index} is {[float(value) for value in box]}; expected finite x, y, "
                    "and width and height above zero."
                )
    if sample.keypoints is not None:
        bad = ~np.isfinite(sample.keypoints).all(axis=2) & ~(sample.keypoints[..., 2] == 0)
        for person, point in np.argwhere(bad)[:1]:
            raise InputError(f"{sample.label('keypoints')} {point} of person {person} is visible and not finite.")


def _check_normals(sample: Sample, normals: NDArray[np.float32]) -> None:
    partly = np.isfinite(normals).sum(axis=0) % 3 != 0
    _refuse(partly, sample.label("normals"), "have some finite components and some that are not")
    lengths = np.sqrt((normals * normals).sum(axis=0))
    _refuse(np.abs(lengths - 1) > _UNIT_TOLERANCE, sample.label("normals"), "are not of unit length")


def _check_intrinsics(sample: Sample, matrix: NDArray[np.float64]) -> None:
    below = matrix[[1, 2, 2], [0, 0, 1]]
    if not np.isfinite(matrix).all() or matrix[0, 0] <= 0 or matrix[1, 1] <= 0 or below.any() or matrix[2, 2] != 1:
        raise InputError(
            f"{sample.label('intrinsics')} are {matrix.tolist()}; expected [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]] "
            "in pixels, with focal lengths above zero."
        )


def _check_unit_range(name: str, value: NDArray[np.float32], nan_allowed: bool) -> None:
    if not nan_allowed:
        _refuse(~np.isfinite(value), name, "are not finite")
    outside = (value < -_RANGE_TOLERANCE) | (value > 1 + _RANGE_TOLERANCE)
    if outside.any():
        raise InputError(
            f"{name} ranges from {np.nanmin(value):.4g} to {np.nanmax(value):.4g}; expected 0 to 1. "
            "Divide 8-bit values by 255."
        )


def _refuse(bad: NDArray[np.bool_], name: str, fault: str) -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0][-2:]
        raise InputError(f"{name}: {int(bad.sum())} values {fault}, the first at row {row}, column {column}.")
