"""Person boxes from a JSON file, matched with pictures by name."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.errors import InputError
from sapiens2.geometry import as_boxes
from sapiens2.io import read_json
from sapiens2.services.picture_files import PictureFile
from sapiens2.types import PathLike

__all__ = ["PictureBoxes", "read_boxes"]

Named: TypeAlias = dict[str, list[tuple[Any, Any]]]
"""Name of a picture -> box and score (None: not known) of its people, not checked yet."""

PERSON_ID = 1
FORMS = (
    '{"photo.jpg": [[x, y, width, height], ...]}, a COCO document with "images" and "annotations", or a COCO list of '
    'detections with "image_id" and "bbox"'
)


class PictureBoxes(NamedTuple):
    """The people of one picture.

    Attributes:
        boxes: ``(N, 4)`` float32, COCO ``(x_min, y_min, width, height)``; N may be 0.
        scores: ``(N,)`` float32, the detector's confidence; None unless it is known for all.
    """

    boxes: Tensor
    scores: NDArray[np.float32] | None


def read_boxes(path: PathLike, pictures: Sequence[PictureFile], *, min_score: float = 0.0) -> list[PictureBoxes]:
    """Read the boxes of pictures.

    Three forms are understood: a mapping from name to boxes; a COCO document, whose images are named; and a list of
    COCO detections, whose ``image_id`` is a name or the number that a name consists of. The first two have to name
    every picture (``[]``: nobody is there); a list of detections names those alone in which somebody was found. Of
    COCO's categories the one called "person", or number 1, counts.

    Convention: ``(x_min, y_min, width, height)`` in absolute pixels of the displayed picture.

    Args:
        path: The file.
        pictures: The pictures, known by name, by path, or by name without suffix.
        min_score: Detections with a lower ``score`` are left out.

    Returns:
        The boxes of each picture.

    Raises:
        InputError: ``min_score`` is not finite; the file cannot be read or has another form, names a picture that is
            not among ``pictures``, leaves one out, or holds a box or a score that is none; the message names file,
            picture and box.
    """
    if not math.isfinite(min_score):
        raise InputError(f"the least score of a box is {min_score}; expected a finite number, such as 0.3")
    try:
        document = read_json(path)
    except OSError as error:
        raise InputError(f"cannot read the boxes in {path}: {error.strerror or error}") from error
    try:
        named, is_complete = _by_name(document, min_score)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: not a file of boxes ({error!r}); expected {FORMS}") from error
    names = _Names(pictures)
    boxes: list[Any] = [None] * len(pictures)
    for name, own in named.items():
        index = names.index(name, path)
        if boxes[index] is not None:
            raise InputError(f"{path}: {name!r} is the second name of {pictures[index].path}; give its boxes once")
        boxes[index] = own
    if not is_complete:
        boxes = [own or [] for own in boxes]
    silent = [str(picture.path) for picture, own in zip(pictures, boxes, strict=True) if own is None]
    if silent:
        raise InputError(
            f'{path}: nothing is said of {_some(silent)}; add "{Path(silent[0]).name}": [] if nobody is there'
        )
    return [_checked(own, picture, path) for own, picture in zip(boxes, pictures, strict=True)]


def _by_name(document: Any, min_score: float) -> tuple[Named, bool]:
    """Boxes by name, and whether a picture that is not named is an oversight."""
    if isinstance(document, list):
        return _of_detections(document, {}, {PERSON_ID}, min_score), False
    if "images" in document and "annotations" in document:
        names = {image["id"]: str(image["file_name"]) for image in document["images"]}
        people = {kind["id"] for kind in document.get("categories", []) if kind["name"] == "person"} or {PERSON_ID}
        empty: Named = {name: [] for name in names.values()}
        return empty | _of_detections(document["annotations"], names, people, min_score), True
    if not all(isinstance(own, list) for own in document.values()):
        raise TypeError("a value is no list of boxes")
    return {name: [(box, None) for box in own] for name, own in document.items()}, True


def _of_detections(
    entries: Sequence[Mapping[str, Any]], names: Mapping[Any, str], people: Iterable[Any], min_score: float
) -> Named:
    boxes: Named = defaultdict(list)
    for index, entry in enumerate(entries):
        score = entry.get("score", 1)
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise InputError(
                f'detection {index} has "score": {json.dumps(score)}; expected a number, or no "score" if unknown'
            )
        if entry.get("category_id") in (None, *people) and score >= min_score:
            boxes[names[entry["image_id"]] if names else str(entry["image_id"])].append(
                (entry["bbox"], entry.get("score"))
            )
    return dict(boxes)


class _Names:
    """Which picture a name means: its path, else its name or place below an input folder, else its name's stem."""

    def __init__(self, pictures: Sequence[PictureFile]) -> None:
        self._pictures = pictures
        self._kinds: tuple[dict[str, set[int]], ...] = (defaultdict(set), defaultdict(set), defaultdict(set))
        for index, picture in enumerate(pictures):
            path = picture.path
            keys = ({str(path)}, {path.name, str(picture.place)}, _stem_keys(path.stem))
            for kind, own in zip(self._kinds, keys, strict=True):
                for key in own:
                    kind[key].add(index)

    def index(self, name: str, file: PathLike) -> int:
        """The picture's index; ``file`` is for the message."""
        keys = ({str(Path(name))}, {str(Path(name))}, _stem_keys(name))
        for kind, own in zip(self._kinds, keys, strict=True):
            matches = sorted({index for key in own for index in kind.get(key, ())})
            if len(matches) == 1:
                return matches[0]
            if matches:
                paths = [str(self._pictures[index].path) for index in matches]
                raise InputError(f"{file}: {name!r} may mean {_some(paths)}; give the path instead")
        inputs = _some([str(picture.path) for picture in self._pictures])
        raise InputError(f"{file}: boxes for {name!r}, which is not among the inputs: {inputs}")


def _stem_keys(stem: str) -> set[str]:
    """COCO's images are called by zero-padded numbers and known by the number."""
    return {stem, str(int(stem))} if stem.isdecimal() else {stem}


def _checked(people: Sequence[tuple[Any, Any]], picture: PictureFile, path: PathLike) -> PictureBoxes:
    try:
        boxes = as_boxes([box for box, _ in people])
    except InputError as error:
        raise InputError(f"{path}: {picture.path.name}: {error}") from error
    scores = [score for _, score in people if score is not None]
    return PictureBoxes(boxes, np.array(scores, np.float32) if scores and len(scores) == len(people) else None)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
