"""Keypoints in COCO's JSON: any number of points, named by the file's categories."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from sapiens2.data.augment.mirror import flip_pairs_by_name
from sapiens2.data.loaders.coco_fields import (
    annotation_box,
    annotation_points,
    image_entry,
    is_crowd,
    is_id,
    point_fields,
    read_document,
    skeleton_links,
)
from sapiens2.data.loaders.files import read_rgb
from sapiens2.data.loaders.folders import raise_problems, require_stated_size
from sapiens2.data.sample import Sample, check_values
from sapiens2.types import PathLike, SizeHW

__all__ = ["CocoKeypoints", "PosedPerson"]


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
    box_xywh: NDArray[np.float32]
    keypoints: NDArray[np.float32]
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
        document = read_document(self.annotation_file)
        self._fields, self.keypoint_names = point_fields(document, self.annotation_file)
        self.skeleton = skeleton_links(document["categories"], len(self.keypoint_names), self.annotation_file)
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

    def stated_size(self, image_id: int) -> SizeHW:
        """Height and width that the file says a picture has."""
        return self._pictures[image_id].size_hw

    def __getitem__(self, index: int) -> Sample:
        """Read a sample.

        Raises:
            IndexError: There is no such sample.
            InputError: The picture is damaged, or has another size than the file says.
        """
        people = [self.people[index]] if self.per_person else self._people_of[self._image_ids[index]]
        picture = self._pictures[self.image_id(index)]
        image = read_rgb(picture.path)
        require_stated_size(picture.path, (image.shape[0], image.shape[1]), picture.size_hw, self.annotation_file)
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
        ids: dict[str, int] = {}
        for position, entry in enumerate(entries):
            try:
                number, file_name, size_hw = image_entry(entry)
            except ValueError as error:
                problems.append(f"{self.annotation_file}: image {position} {error}")
                continue
            path = folder / file_name
            plain = os.path.normpath(path)  # "../images/a.png" is the same as "a.png"
            if number in pictures:
                problems.append(f"{self.annotation_file}: two images have the id {number}")
            elif plain in ids:
                problems.append(f"{self.annotation_file}: images {ids[plain]} and {number} are both {file_name}")
            elif not path.is_file():
                problems.append(f"{path}: there is no such picture, and {self.annotation_file.name} lists it")
            else:
                pictures[number], ids[plain] = _Picture(path, size_hw), number
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
            place = f"{self.annotation_file}: annotation {number if is_id(number) else f'at position {position}'}"
            if not isinstance(entry, Mapping):
                problems.append(f"{place} is {str(entry)[:40]!r}; expected an object")
                continue
            if is_id(number):
                if number in numbers:
                    problems.append(f"{place}: another annotation has the same id")
                    continue
                numbers.add(number)
            try:
                person = self._read_person(entry, notes)
            except (KeyError, ValueError) as error:
                problems.append(f"{place} {f'lacks {error}' if isinstance(error, KeyError) else error}")
                continue
            if person is not None:
                people.append(person)
        return people

    def _read_person(self, entry: Mapping[str, Any], notes: Counter[str]) -> PosedPerson | None:
        if not is_id(entry["id"]) or not isinstance(entry["image_id"], int | str):
            found = {name: str(entry[name])[:40] for name in ("id", "image_id")}
            raise ValueError(f"has {found}; expected numbers")
        if entry["image_id"] in self._missing_pictures:
            return None  # its picture has been reported
        if entry["image_id"] not in self._pictures:
            raise ValueError(f"belongs to image {entry['image_id']}, which is not listed")
        if is_crowd(entry):
            notes["crowds left out"] += 1
            return None
        points = annotation_points(entry, self._fields)
        if not (points[:, 2] > 0).any():
            notes["people without visible keypoints left out"] += 1
            return None
        height, width = self._pictures[entry["image_id"]].size_hw
        outside = (points[:, 2] > 0) & ~((points[:, :2] >= 0) & (points[:, :2] < [width, height])).all(axis=1)
        if outside.any():
            notes["keypoints outside their picture taken for invisible"] += int(outside.sum())
            points[outside, 2] = 0
        box = annotation_box(entry, points)
        if not ((box[:2] < [width, height]).all() and (box[:2] + box[2:] > 0).all()):
            raise ValueError(f"has the bbox {box.tolist()}, which lies outside its picture of {width} x {height}")
        track = entry.get("track_id")
        if track is not None and not is_id(track):
            raise ValueError(f"has the track_id {str(track)[:40]!r}; expected a number")
        return PosedPerson(
            annotation_id=entry["id"], image_id=entry["image_id"], box_xywh=box, keypoints=points, track_id=track
        )
