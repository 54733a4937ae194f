"""Keypoints in COCO's JSON: any number of points, named by the file's categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from sapiens2.assets import keypoint_table
from sapiens2.data.augment.mirror import flip_pairs_by_name
from sapiens2.data.loaders.coco_names import GROUPS, WHOLEBODY_NAMES
from sapiens2.data.loaders.files import read_rgb
from sapiens2.data.loaders.folders import raise_problems
from sapiens2.data.sample import Sample, check_values
from sapiens2.errors import InputError
from sapiens2.geometry.boxes import MAX_COORDINATE
from sapiens2.io import read_json
from sapiens2.types import PathLike, SizeHW

__all__ = ["CocoKeypoints", "PosedPerson"]

_PUBLISHED_FIELD = "goliath_wholebody_kpts"
"""Field that the evaluation files of the published models keep their 308 points in."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PosedPerson:
    """One annotation.

    Attributes:
        annotation_id: Its id in the file.
        image_id: Id of its image.
        box_xywh: ``(4,)`` COCO box.
        keypoints: ``(K, 3)`` x, y, visibility.
        track_id: Identity over the frames of a clip, or None.
    """

    annotation_id: int
    image_id: int
    box_xywh: Floats
    keypoints: Floats
    track_id: int | None = None


@dataclass(frozen=True)
class _Picture:
    path: Path
    size_hw: SizeHW


class CocoKeypoints(Dataset[Sample]):
    """People with keypoints from a COCO file.

    Which points there are is found out in this order: 308, if annotations have the field of the published models'
    evaluation files; 133, if they have COCO-WholeBody's arrays of face, hands and feet; else those that the category
    names.

    Args:
        images: Folder that file names are relative to.
        annotations: The JSON file.
        per_person: Whether a sample is a picture with one of its people, as training of poses needs it, or a picture
            with all of them, nobody included.
        strict: Whether any problem is an error. Otherwise what has one is left out, and ``problems`` says what.

    Attributes:
        keypoint_names: The K names in order.
        skeleton: Links as pairs of indices from 0.
        flip_pairs: Pairs of indices that a mirror exchanges, found by name.
        people: All people, in the order of the file.
        problems: What is wrong, and where.
        notes: What was left out or changed on purpose, with counts: crowds, people without visible points, points
            outside the picture, which are taken for invisible.

    Raises:
        InputError: The file is no COCO keypoint file; with ``strict``, there is a problem.

    Convention: pixel centres at integers; boxes are ``(x_min, y_min, width, height)``.
    """

    def __init__(
        self, images: PathLike, annotations: PathLike, *, per_person: bool = True, strict: bool = True
    ) -> None:
        self.annotation_file, self.per_person = Path(annotations), per_person
        document = _checked_document(self.annotation_file)
        self._fields, self.keypoint_names = _point_fields(document, self.annotation_file)
        self.skeleton = _skeleton(document["categories"], self.keypoint_names, self.annotation_file)
        self.flip_pairs = flip_pairs_by_name(self.keypoint_names)
        problems: list[str] = []
        notes: Counter[str] = Counter()
        self._pictures = self._read_pictures(document["images"], Path(images), problems)
        self.people = tuple(self._read_people(document["annotations"], problems, notes))
        self.problems, self.notes = tuple(problems), dict(notes)
        self._people_of: dict[int, list[PosedPerson]] = {number: [] for number in self._pictures}
        for person in self.people:
            self._people_of[person.image_id].append(person)
        self._image_ids = tuple(self._pictures)
        if strict:
            raise_problems(self.problems, str(self.annotation_file))

    def __len__(self) -> int:
        return len(self.people) if self.per_person else len(self._image_ids)

    def image_path(self, index: int) -> Path:
        """File of a sample's picture."""
        return self._pictures[self.image_id(index)].path

    def image_id(self, index: int) -> int:
        """Id of a sample's picture in the file."""
        return self.people[index].image_id if self.per_person else self._image_ids[index]

    def people_of(self, image_id: int) -> Sequence[PosedPerson]:
        """People of a picture."""
        return tuple(self._people_of[image_id])

    def require_size(self, image_id: int, size_hw: SizeHW) -> None:
        """Refuse a picture that is not of the size that the file says.

        Raises:
            InputError: It is not.
        """
        picture = self._pictures[image_id]
        if size_hw != picture.size_hw:
            raise InputError(
                f"{picture.path} is {size_hw} (height, width), and {self.annotation_file} says "
                f"{picture.size_hw}: the points belong to another version of it, or it is turned by EXIF."
            )

    def __getitem__(self, index: int) -> Sample:
        """Read a sample.

        Raises:
            IndexError: There is no such sample.
            InputError: The picture is damaged, or has another size than the file says.
        """
        people = [self.people[index]] if self.per_person else self._people_of[self._image_ids[index]]
        picture = self._pictures[self.image_id(index)]
        image = read_rgb(picture.path)
        self.require_size(self.image_id(index), (image.shape[0], image.shape[1]))
        name = f"{picture.path}, person {people[0].annotation_id}" if self.per_person else str(picture.path)
        points = [person.keypoints for person in people]
        boxes = [person.box_xywh for person in people]
        sample = Sample(
            image=image,
            keypoints=np.array(points, np.float32).reshape(len(people), len(self.keypoint_names), 3),
            boxes_xywh=np.array(boxes, np.float32).reshape(len(people), 4),
            name=name,
        )
        return check_values(sample)

    def _read_pictures(self, entries: Sequence[Any], folder: Path, problems: list[str]) -> dict[int, _Picture]:
        pictures: dict[int, _Picture] = {}
        paths: dict[Path, int] = {}
        for position, entry in enumerate(entries):
            try:
                number, file_name, size_hw = _checked_image(entry)
            except ValueError as error:
                problems.append(f"{self.annotation_file}: image {position} {error}")
                continue
            path = folder / file_name
            if number in pictures:
                problems.append(f"{self.annotation_file}: two images have the id {number}")
            elif path in paths:
                problems.append(f"{self.annotation_file}: images {paths[path]} and {number} are both {file_name}")
            elif not path.is_file():
                problems.append(f"{path}: there is no such picture, and {self.annotation_file.name} lists it")
            else:
                pictures[number], paths[path] = _Picture(path, size_hw), number
        listed = {
            entry["id"] for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("id"), int | str)
        }
        self._missing_pictures = listed - set(pictures)
        return pictures

    def _read_people(self, entries: Sequence[Any], problems: list[str], notes: Counter[str]) -> list[PosedPerson]:
        people = []
        numbers: set[object] = set()
        for position, entry in enumerate(entries):
            number = entry.get("id") if isinstance(entry, Mapping) else None
            place = f"{self.annotation_file}: annotation {number if _is_id(number) else f'at position {position}'}"
            if not isinstance(entry, Mapping):
                problems.append(f"{place} is {str(entry)[:40]!r}; expected an object")
                continue
            if _is_id(number) and number in numbers:
                problems.append(f"{place}: another annotation has the same id")
                continue
            numbers.add(number if _is_id(number) else None)
            try:
                person = self._read_person(entry, notes)
            except (KeyError, ValueError) as error:
                problems.append(f"{place} {f'lacks {error}' if isinstance(error, KeyError) else error}")
                continue
            if person is not None:
                people.append(person)
        return people

    def _read_person(self, entry: Mapping[str, Any], notes: Counter[str]) -> PosedPerson | None:
        if not _is_id(entry["id"]) or not isinstance(entry["image_id"], int | str):
            found = {name: str(entry[name])[:40] for name in ("id", "image_id")}
            raise ValueError(f"has {found}; expected numbers")
        if entry["image_id"] in self._missing_pictures:
            return None  # its picture has been reported
        if entry["image_id"] not in self._pictures:
            raise ValueError(f"belongs to image {entry['image_id']}, which is not listed")
        if entry.get("iscrowd"):
            notes["crowds left out"] += 1
            return None
        points = self._points(entry)
        if not (points[:, 2] > 0).any():
            notes["people without visible keypoints left out"] += 1
            return None
        height, width = self._pictures[entry["image_id"]].size_hw
        outside = (points[:, 2] > 0) & ~((points[:, :2] >= 0) & (points[:, :2] < [width, height])).all(axis=1)
        if outside.any():
            notes["keypoints outside their picture taken for invisible"] += int(outside.sum())
            points[outside, 2] = 0
        box = _box(entry, points)
        if not ((box[:2] < [width, height]).all() and (box[:2] + box[2:] > 0).all()):
            raise ValueError(f"has the bbox {box.tolist()}, which lies outside its picture of {width} x {height}")
        track = entry.get("track_id")
        if track is not None and not _is_id(track):
            raise ValueError(f"has the track_id {str(track)[:40]!r}; expected a number")
        return PosedPerson(
            annotation_id=entry["id"], image_id=entry["image_id"], box_xywh=box, keypoints=points, track_id=track
        )

    def _points(self, entry: Mapping[str, Any]) -> Floats:
        parts = []
        for field, count in self._fields:
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
        if self._fields[0][0] == "keypoints" and len(self._fields) == 1 and not np.isin(points[:, 2], (0, 1, 2)).all():
            odd = points[~np.isin(points[:, 2], (0, 1, 2)), 2][0]
            raise ValueError(f"has a visibility of {odd:g}; expected 0, 1 or 2")
        return points.astype(np.float32)


def _checked_document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: it has 0 bytes.")
    document = read_json(path)
    parts = ("images", "annotations", "categories")
    if not isinstance(document, dict) or not all(isinstance(document.get(part), list) for part in parts):
        raise InputError(f"{path} is no COCO file: it lacks lists called {', '.join(parts)}.")
    return document


def _point_fields(document: Mapping[str, Any], path: Path) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Arrays of an annotation with the number of points of each, and the names of all points."""
    first = next((entry for entry in document["annotations"] if isinstance(entry, Mapping)), {})
    if _PUBLISHED_FIELD in first:
        names = keypoint_table().names
        return ((_PUBLISHED_FIELD, len(names)),), names
    if "face_kpts" in first and "lefthand_kpts" in first:
        return tuple((field, len(own)) for field, own in GROUPS.items()), WHOLEBODY_NAMES
    named = [entry for entry in document["categories"] if isinstance(entry, Mapping) and entry.get("keypoints")]
    lists = {tuple(str(name) for name in entry["keypoints"]) for entry in named}
    if len(lists) != 1:
        raise InputError(f"{path}: {len(lists)} lists of keypoint names in its categories; expected one.")
    (names,) = lists
    if not all(name.strip() for name in names):
        raise InputError(
            f"{path}: keypoint {[not name.strip() for name in names].index(True)} of its categories has no name."
        )
    if len(set(names)) != len(names):
        raise InputError(f"{path}: its keypoint names repeat: {sorted({n for n in names if names.count(n) > 1})}.")
    return (("keypoints", len(names)),), names


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _as_list(value: Any, path: Path) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise InputError(f"{path}: its skeleton is {str(value)[:40]!r}; expected a list of pairs of numbers from 1.")
    return value or []


def _checked_image(entry: Any) -> tuple[Any, str, SizeHW]:
    """Id, file name, height and width of an entry of ``images``; ValueError says what is wrong with it."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {str(entry)[:40]!r}; expected an object")
    if missing := [name for name in ("id", "file_name", "height", "width") if name not in entry]:
        raise ValueError(f"lacks {', '.join(missing)}")
    number, file_name = entry["id"], entry["file_name"]
    if not isinstance(number, int | str) or not isinstance(file_name, str) or not file_name:
        raise ValueError(
            f"has the id {str(number)[:40]!r} and the file_name {str(file_name)[:40]!r}; expected a number and a name"
        )
    sides = _numbers([entry["height"], entry["width"]], "height and width")
    if not np.isfinite(sides).all() or min(sides) < 1 or (sides != np.rint(sides)).any():
        raise ValueError(f"has the height {entry['height']} and the width {entry['width']}; expected pixels from 1")
    return number, file_name, (int(sides[0]), int(sides[1]))


def _numbers(value: Any, field: str) -> NDArray[np.float64]:
    """A flat or nested list of numbers; ValueError says what else it is."""
    try:
        numbers = np.array(value)
    except (TypeError, ValueError):
        numbers = np.array(None)
    if numbers.dtype.kind not in "uif":
        raise ValueError(f"has {str(value)[:40]!r} for {field}; expected a list of numbers")
    return numbers.astype(np.float64)


def _skeleton(categories: Sequence[Any], names: Sequence[str], path: Path) -> tuple[tuple[int, int], ...]:
    """Links of the categories, counted from 0; those of points that are not there are left out."""
    listed = [
        link for entry in categories if isinstance(entry, Mapping) for link in _as_list(entry.get("skeleton"), path)
    ]
    links = []
    for link in listed:
        if not (isinstance(link, list) and len(link) == 2 and all(_is_id(end) for end in link)):
            raise InputError(f"{path}: its skeleton has the link {str(link)[:40]!r}; expected two numbers from 1.")
        links.append((int(link[0]) - 1, int(link[1]) - 1))
    return tuple(dict.fromkeys(link for link in links if min(link) >= 0 and max(link) < len(names)))


def _box(entry: Mapping[str, Any], points: Floats) -> Floats:
    """The annotation's box, or the extent of the visible points where it has none."""
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
