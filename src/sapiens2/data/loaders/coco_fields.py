"""Single fields of a COCO file, checked: what another program wrote is named before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets import keypoint_table
from sapiens2.data.loaders.coco_names import GROUPS, WHOLEBODY_NAMES
from sapiens2.errors import InputError
from sapiens2.geometry.boxes import MAX_COORDINATE
from sapiens2.io import read_json
from sapiens2.types import SizeHW

__all__ = [
    "PointFields",
    "annotation_box",
    "annotation_points",
    "image_entry",
    "is_crowd",
    "is_id",
    "point_fields",
    "read_document",
    "skeleton_links",
]

PointFields: TypeAlias = tuple[tuple[str, int], ...]
"""Arrays of an annotation, and the number of points in each."""

Floats: TypeAlias = NDArray[np.float32]

_PUBLISHED_FIELD = "goliath_wholebody_kpts"
"""Field that the evaluation files of the published models keep their 308 points in."""
_SHOWN = 40
"""Characters of an odd value that a message shows."""


def read_document(path: Path) -> dict[str, Any]:
    """Read a file that has the lists of a COCO file.

    Raises:
        InputError: There is no such file, it is empty or no JSON, or lacks one of the lists.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: it has 0 bytes.")
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path} is no COCO file: it holds {_shown(document)}; expected an object.")
    parts = ("images", "annotations", "categories")
    if missing := [part for part in parts if not isinstance(document.get(part), list)]:
        raise InputError(f"{path} is no COCO file: it lacks lists called {', '.join(missing)}.")
    return document


def point_fields(document: Mapping[str, Any], path: Path) -> tuple[PointFields, tuple[str, ...]]:
    """Arrays of an annotation with the number of points of each, and the names of all points.

    Raises:
        InputError: The categories have no list of names or several, or a name is empty, no text, or repeated.
    """
    first = next((entry for entry in document["annotations"] if isinstance(entry, Mapping)), {})
    if _PUBLISHED_FIELD in first:
        names = keypoint_table().names
        return ((_PUBLISHED_FIELD, len(names)),), names
    if "face_kpts" in first and "lefthand_kpts" in first:
        return tuple((field, len(own)) for field, own in GROUPS.items()), WHOLEBODY_NAMES
    named = [
        entry["keypoints"] for entry in document["categories"] if isinstance(entry, Mapping) and entry.get("keypoints")
    ]
    lists = {_point_names(entry, path) for entry in named}
    if len(lists) != 1:
        raise InputError(f"{path}: {len(lists)} lists of keypoint names in its categories; expected one.")
    (names,) = lists
    if len(set(names)) != len(names):
        raise InputError(f"{path}: its keypoint names repeat: {sorted({n for n in names if names.count(n) > 1})}.")
    return (("keypoints", len(names)),), names


def _point_names(value: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InputError(f"{path}: keypoints of a category is {_shown(value)}; expected a list of names.")
    for position, name in enumerate(value):
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{path}: keypoint {position} of a category has the name {_shown(name)}; expected text.")
    return tuple(value)


def is_id(value: object) -> bool:
    """Whether a value can be the id of an annotation, or of a track."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_crowd(entry: Mapping[str, Any]) -> bool:
    """Whether an annotation is of a crowd.

    Raises:
        ValueError: It does not say so with 0 or 1.
    """
    value = entry.get("iscrowd")
    if value is not None and (not isinstance(value, int) or value not in (0, 1)):
        raise ValueError(f"has the iscrowd {_shown(value)}; expected 0 or 1")
    return bool(value)


def image_entry(entry: Any) -> tuple[Any, str, SizeHW]:
    """Id, file name, height and width of an entry of ``images``.

    Raises:
        ValueError: It has something else there.
    """
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {_shown(entry)}; expected an object")
    if missing := [name for name in ("id", "file_name", "height", "width") if name not in entry]:
        raise ValueError(f"lacks {', '.join(missing)}")
    number, file_name = entry["id"], entry["file_name"]
    if not isinstance(number, int | str) or not isinstance(file_name, str) or not file_name:
        raise ValueError(
            f"has the id {_shown(number)} and the file_name {_shown(file_name)}; expected a number and a name"
        )
    sides = _numbers([entry["height"], entry["width"]], "height and width")
    if not np.isfinite(sides).all() or min(sides) < 1 or (sides != np.rint(sides)).any():
        raise ValueError(f"has the height {entry['height']} and the width {entry['width']}; expected pixels from 1")
    return number, file_name, (int(sides[0]), int(sides[1]))


def annotation_points(entry: Mapping[str, Any], fields: PointFields) -> Floats:
    """Keypoints ``(K, 3)`` of an annotation: x, y, visibility.

    Raises:
        KeyError: A field is missing.
        ValueError: A field has another number of points, or something else than points.
    """
    parts = []
    for field, count in fields:
        values = _numbers(entry[field], field)
        if values.size != 3 * count:
            raise ValueError(f"has {values.size} numbers in {field}; expected {3 * count}, 3 for each of {count}")
        part = values.reshape(count, 3)
        if entry.get(f"{field.removesuffix('_kpts')}_valid") is False:
            part[:, 2] = 0
        parts.append(part)
    points = np.concatenate(parts)
    if not np.isfinite(points).all():
        raise ValueError(f"has keypoint {int(np.argwhere(~np.isfinite(points))[0][0])}, which is not finite")
    if (far := np.abs(points).max(axis=1) > MAX_COORDINATE).any():
        raise ValueError(f"has keypoint {int(far.argmax())} beyond {MAX_COORDINATE:.0e} pixels")
    if fields[0][0] == "keypoints" and len(fields) == 1 and not np.isin(points[:, 2], (0, 1, 2)).all():
        odd = points[~np.isin(points[:, 2], (0, 1, 2)), 2][0]
        raise ValueError(f"has a visibility of {odd:g}; expected 0, 1 or 2")
    return points.astype(np.float32)


def annotation_box(entry: Mapping[str, Any], points: Floats) -> Floats:
    """Box ``(4,)`` of an annotation, or the extent of its visible points where it has none.

    Raises:
        ValueError: It is no box, or there are too few points for one.
    """
    if entry.get("bbox") is None:
        visible = points[points[:, 2] > 0, :2]
        low, extent = visible.min(axis=0), np.ptp(visible, axis=0)
        if min(extent) <= 0:
            raise ValueError("has no bbox, and too few visible keypoints to make one")
        return np.concatenate([low, extent])
    box = _numbers(entry["bbox"], "bbox")
    if box.shape != (4,) or not np.isfinite(box).all() or min(box[2:]) <= 0 or np.abs(box).max() > MAX_COORDINATE:
        raise ValueError(f"has the bbox {entry['bbox']}; expected x, y, width and height, the last two above zero")
    return box.astype(np.float32)


def skeleton_links(categories: Sequence[Any], num_names: int, path: Path) -> tuple[tuple[int, int], ...]:
    """Links of the categories, counted from 0; those of points that are not there are left out.

    Raises:
        InputError: A skeleton is no list of pairs of numbers.
    """
    links = []
    for entry in categories:
        listed = entry.get("skeleton") if isinstance(entry, Mapping) else None
        if listed is not None and not isinstance(listed, list):
            raise InputError(f"{path}: its skeleton is {_shown(listed)}; expected a list of pairs of numbers from 1.")
        for link in listed or []:
            if not (isinstance(link, list) and len(link) == 2 and all(is_id(end) for end in link)):
                raise InputError(f"{path}: its skeleton has the link {_shown(link)}; expected two numbers from 1.")
            links.append((link[0] - 1, link[1] - 1))
    return tuple(dict.fromkeys(link for link in links if min(link) >= 0 and max(link) < num_names))


def _numbers(value: Any, field: str) -> NDArray[np.float64]:
    """A flat or nested list of numbers; ValueError says what else it is."""
    try:
        numbers = np.array(value)
    except (TypeError, ValueError):
        numbers = np.array(None)
    if numbers.dtype.kind not in "uif":
        raise ValueError(f"has {_shown(value)} for {field}; expected a list of numbers")
    return numbers.astype(np.float64)


def _shown(value: object) -> str:
    return repr(str(value)[:_SHOWN])
