"""Which keypoint or class a mirror turns each one into, found by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets import keypoint_table, part_table
from sapiens2.data.sample import IGNORE_LABEL
from sapiens2.errors import ConfigurationError, InputError

__all__ = ["NO_PARTNER", "Mirror", "flip_pairs_by_name", "mirror_partners"]

NO_PARTNER = -1
"""Stands for a name with a side whose other side is not in the list."""

_OTHER_SIDE = {"left": "right", "right": "left", "l": "r", "r": "l"}
_SIDE = re.compile(r"(?<![a-z])(left|right|l|r)(?![a-z])", re.IGNORECASE)
_CAMEL_SIDE = re.compile(r"(?:^|(?<=[a-z\d_]))([Ll]eft|[Rr]ight)(?=[A-Z\d_]|$)")

# A letter that is no word of its own: `LShoulder`, `ShoulderL`. It counts only if that turns one name into another.
_LOOSE_SIDE = re.compile(r"^([LlRr])(?=[A-Z])|(?<=[a-z\d])([LR])$")

_FACE_NAME = re.compile(r"face[-_ ]?(\d+)", re.IGNORECASE)
_FACE_POINTS = 68
# Partners in the 68 points of iBUG's face scheme, which COCO-WholeBody uses: they are numbered, not named by side.
_FACE_SPANS = ((0, 16), (17, 26), (31, 35), (48, 54), (55, 59), (60, 64), (65, 67))
_FACE_EYES = ((36, 45), (37, 44), (38, 43), (39, 42), (40, 47), (41, 46))


@dataclass(frozen=True)
class Mirror:
    """The partners of keypoints and classes in a mirrored picture.

    Attributes:
        keypoints: Index of each keypoint's partner: its own on the midline, :data:`NO_PARTNER` where there is none.
        parts: The same for class ids.

    Convention: left and right are the person's own.
    """

    keypoints: tuple[int, ...]
    parts: tuple[int, ...]

    @classmethod
    def from_names(
        cls,
        keypoint_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        *,
        pairs: Sequence[tuple[str, str]] = (),
    ) -> Mirror:
        """Find the partners of own lists; see :func:`mirror_partners`.

        Args:
            keypoint_names: Keypoints in order; None for the 308 of the published models.
            class_names: Classes in order; None for the 29 of the published models.
            pairs: Names that mirror each other and do not say so, of keypoints or classes.

        Raises:
            ConfigurationError: A name repeats, or a pair has a name that is in neither list.
        """
        points = keypoint_table().names if keypoint_names is None else tuple(keypoint_names)
        classes = part_table().names if class_names is None else tuple(class_names)
        known = {*points, *classes}
        if unknown := sorted({name for pair in pairs for name in pair} - known):
            raise ConfigurationError(f"pairs name {unknown}, which are neither keypoints nor classes.")
        return cls(
            mirror_partners(points, pairs=[pair for pair in pairs if pair[0] in points]),
            mirror_partners(classes, pairs=[pair for pair in pairs if pair[0] in classes]),
        )

    def swap_keypoints(self, keypoints: NDArray[np.float32]) -> NDArray[np.float32]:
        """Exchange left and right; points without a partner become invisible.

        Args:
            keypoints: ``(N, K, 3)``.

        Returns:
            ``(N, K, 3)``, a copy.

        Raises:
            InputError: K is another number than that of the names.
        """
        if keypoints.shape[1] != len(self.keypoints):
            raise InputError(
                f"There are {keypoints.shape[1]} keypoints, and the mirror knows partners of {len(self.keypoints)}: "
                "build it from the names of these keypoints with Mirror.from_names."
            )
        order = np.array(self.keypoints, dtype=np.intp)
        swapped = keypoints[:, order]
        swapped[:, order == NO_PARTNER, 2] = 0
        return swapped

    def swap_parts(self, parts: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Exchange left and right classes; pixels of classes without a partner are labelled 255.

        Args:
            parts: ``(H, W)`` class ids, or 255.

        Returns:
            ``(H, W)``, a copy.

        Raises:
            InputError: A class id is not in the list.
        """
        table = np.full(256, IGNORE_LABEL, np.uint8)
        table[: len(self.parts)] = [IGNORE_LABEL if partner == NO_PARTNER else partner for partner in self.parts]
        unknown = parts[(parts >= len(self.parts)) & (parts != IGNORE_LABEL)]
        if unknown.size:
            raise InputError(
                f"Class id {int(unknown.max())} is not among the {len(self.parts)} classes that the mirror knows: "
                "build it from the names of these classes with Mirror.from_names."
            )
        return table[parts]


def mirror_partners(names: Sequence[str], *, pairs: Sequence[tuple[str, str]] = ()) -> tuple[int, ...]:
    """Find the partner of each name: indices are never carried over from another list.

    In this order: the pairs given; the tables of the published models, where some partners do not look alike; the
    numbered 68 points of a face, if all are there; the name with left and right exchanged, as words (``left``, ``R``)
    or in camel case, or as a single letter (``LShoulder``) if the result is in the list. A name that has no side
    mirrors to itself: of names that are mere numbers, give the pairs.

    Args:
        names: Unique names.
        pairs: Names that mirror each other.

    Returns:
        One index for each name, :data:`NO_PARTNER` where the other side is not in the list.

    Raises:
        ConfigurationError: A name repeats, or is in two pairs.
    """
    index = {name: position for position, name in enumerate(names)}
    if len(index) != len(names):
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        raise ConfigurationError(f"Names must be unique; these repeat: {', '.join(repeated)}.")
    given: dict[str, str] = {}
    for first, second in pairs:
        if first in given or second in given:
            raise ConfigurationError(f"The pair {first!r}, {second!r} has a name that is in another pair, too.")
        given |= {first: second, second: first}
    faces = _face_partners(names)
    partners = tuple(index.get(_partner_name(name, index, given, faces), NO_PARTNER) for name in names)
    return tuple(
        # A partner has to be mutual: of `l_a`, `r_a` and `left_a` not all can be.
        partner if partner == NO_PARTNER or partners[partner] == position else NO_PARTNER
        for position, partner in enumerate(partners)
    )


def flip_pairs_by_name(names: Sequence[str], *, pairs: Sequence[tuple[str, str]] = ()) -> tuple[tuple[int, int], ...]:
    """Pairs of indices that a mirror exchanges, each once, lower index first; see :func:`mirror_partners`."""
    partners = mirror_partners(names, pairs=pairs)
    return tuple((position, partner) for position, partner in enumerate(partners) if position < partner)


@cache
def _published_partners() -> Mapping[str, str]:
    tables = (keypoint_table(), part_table())
    return {
        name: table.names[table.flip_permutation[position]]
        for table in tables
        for position, name in enumerate(table.names)
    }


def _partner_name(name: str, index: Mapping[str, int], given: Mapping[str, str], faces: Mapping[str, str]) -> str:
    if name in given:
        return given[name]
    published = _published_partners().get(name)
    if published is not None and published in index:
        return published
    if name in faces:
        return faces[name]
    loose = _with_other_side(name, _LOOSE_SIDE)
    if loose != name and loose in index:
        return loose
    return _with_other_side(name, _SIDE if _SIDE.search(name) else _CAMEL_SIDE)


def _with_other_side(name: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: _in_case_of(match[0], _OTHER_SIDE[match[0].lower()]), name)


def _in_case_of(model: str, word: str) -> str:
    if model.isupper():
        return word.upper()
    return word.capitalize() if model[0].isupper() else word


def _face_partners(names: Sequence[str]) -> dict[str, str]:
    """Partners of numbered face points, if the list holds exactly the 68, counted from 0 or from 1."""
    numbered = {int(match[1]): name for name in names if (match := _FACE_NAME.fullmatch(name))}
    start = min(numbered, default=0)
    if start not in (0, 1) or set(numbered) != set(range(start, start + _FACE_POINTS)):
        return {}
    partner = {point: point for point in range(_FACE_POINTS)}
    for first, last in _FACE_SPANS:
        partner |= {first + step: last - step for step in range(last - first + 1)}
    for right, left in _FACE_EYES:
        partner |= {right: left, left: right}
    return {numbered[point + start]: numbered[other + start] for point, other in partner.items()}
