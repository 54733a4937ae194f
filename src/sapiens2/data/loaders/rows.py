"""Rows with columns, such as those of the Hugging Face library ``datasets``."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch.utils.data import Dataset

from sapiens2.assets import part_table
from sapiens2.data.loaders.depth import as_camera_matrix
from sapiens2.data.loaders.fields import as_albedo, as_alpha, as_depth, as_foreground, as_mask, as_normals, as_parts
from sapiens2.data.loaders.folders import joined_fields
from sapiens2.data.sample import Sample, check_values
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.processing import load_image
from sapiens2.processing.image_input import displayed_pil

__all__ = ["HubRows", "Rows"]

FIELDS = (
    *("image", "parts", "normals", "depth", "intrinsics", "alpha", "foreground", "albedo", "mask"),
    *("keypoints", "boxes"),
)


class Rows(Protocol):
    """Anything with a length and a mapping of columns at each index."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        """Columns of a row."""
        ...


class HubRows(Dataset[Sample]):
    """Samples from rows: a ``datasets.Dataset``, or a list of dicts.

    Pictures may be PIL images, arrays, paths, or the ``{"bytes", "path"}`` that ``datasets`` gives undecoded; maps may
    be pictures or (nested lists of) numbers, in the ranges that the folder loaders take. ``keypoints`` are
    ``(N, K, 3)`` or ``(N, 3 K)``, ``boxes`` ``(N, 4)`` in COCO's form.

    Args:
        rows: The rows.
        columns: Field of a sample -> column. The fields are image, parts, normals, depth, intrinsics, alpha,
            foreground, albedo, mask (of normals, points and albedo), keypoints and boxes.
        class_names: Classes of ``parts`` in order; None for the 29 of the published models.
        unit_m: Metres per unit of depth; None for floats in metres.

    Raises:
        ConfigurationError: A field is unknown, there is no column for the image, or the first row lacks a column.
    """

    def __init__(
        self,
        rows: Rows,
        columns: Mapping[str, str],
        *,
        class_names: Sequence[str] | None = None,
        unit_m: float | None = None,
    ) -> None:
        if unknown := sorted(set(columns) - set(FIELDS)):
            raise ConfigurationError(f"Samples have no fields {unknown}; expected some of {', '.join(FIELDS)}.")
        if "image" not in columns:
            raise ConfigurationError('columns name no image; expected {"image": ..., ...}.')
        if len(rows) and (missing := sorted(set(columns.values()) - set(rows[0]))):
            raise ConfigurationError(f"The rows have no columns {missing}; they have {sorted(rows[0])}.")
        self.rows, self.columns, self.unit_m = rows, dict(columns), unit_m
        self.class_names = part_table().names if class_names is None else tuple(class_names)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        """Read a sample.

        Raises:
            IndexError: There is no such row.
            InputError: A column cannot be used; the message names it and the row.
        """
        row = self.rows[index]
        fields: dict[str, Any] = {}
        for field, column in self.columns.items():
            name = f"row {index}, column {column!r}"
            if row[column] is None:
                raise InputError(f"{name} is None.")
            fields |= self._field(field, row[column], name)
        return check_values(Sample(name=f"row {index}", **joined_fields(fields)))

    def _field(self, field: str, value: Any, name: str) -> dict[str, Any]:
        if field == "image":
            return {"image": _rgb(value, name)}
        if field == "intrinsics":
            return {"intrinsics": as_camera_matrix(value, name)}
        values = _numbers(value, name)
        if field == "parts":
            return {"parts": as_parts(values, len(self.class_names), name)}
        if field == "depth":
            return {"depth": as_depth(values, name, unit_m=self.unit_m)}
        if field in ("boxes", "keypoints"):
            return _people(field, values.astype(np.float32), name)
        maps = {
            "normals": as_normals,
            "alpha": as_alpha,
            "foreground": as_foreground,
            "albedo": as_albedo,
            "surface": as_mask,
        }
        kind = "surface" if field == "mask" else field
        return {kind: maps[kind](values, name)}


def _rgb(value: Any, name: str) -> NDArray[np.uint8]:
    if isinstance(value, Mapping):
        value = _opened(value, name)
    try:
        return load_image(value).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _numbers(value: Any, name: str) -> NDArray[Any]:
    if isinstance(value, Mapping):
        value = _opened(value, name)
    if isinstance(value, Image.Image):
        value = displayed_pil(value)
    try:
        values = np.array(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is no regular array of numbers: {error}.") from error
    if values.dtype.kind not in "buif":
        raise InputError(f"{name} holds no numbers but {values.dtype}.")
    return values


def _people(field: str, values: NDArray[np.float32], name: str) -> dict[str, Any]:
    """``(N, 4)`` boxes or ``(N, K, 3)`` keypoints; an empty list is nobody."""
    if field == "boxes":
        if values.size and (values.ndim != 2 or values.shape[1] != 4):
            raise InputError(f"{name} has shape {values.shape}; expected (people, 4).")
        return {"boxes_xywh": values.reshape(-1, 4)}
    if values.ndim == 2 and values.shape[1] % 3 == 0:
        values = values.reshape(len(values), values.shape[1] // 3, 3)
    if values.shape == (0,):
        values = values.reshape(0, 0, 3)
    if values.ndim != 3 or values.shape[2] != 3:
        raise InputError(f"{name} has shape {values.shape}; expected (people, keypoints, 3).")
    return {"keypoints": values}


def _opened(value: Mapping[str, Any], name: str) -> Image.Image:
    """Picture that ``datasets`` left encoded."""
    try:
        source = io.BytesIO(value["bytes"]) if value.get("bytes") is not None else value["path"]
        image = Image.open(source)
        image.load()
    except (KeyError, AttributeError, UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{name} is no picture: {error}.") from error
    return image
