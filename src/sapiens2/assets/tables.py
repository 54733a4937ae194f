"""The tables of keypoints and body parts that every other layer reads.

The facts (names, order, flip partners, links, sigmas, colours, loss weights) are those of the published models. They
lie in ``keypoints308.json`` and ``body_parts.json``, one keypoint or part per line, where partners and links are named:
indices follow from the order of the lines alone, so a table that was edited cannot point at stale ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeAlias

from sapiens2.errors import ConfigurationError

__all__ = ["KEYPOINT_GROUPS", "RGB", "KeypointTable", "PartTable", "keypoint_table", "part_table"]

RGB: TypeAlias = tuple[int, int, int]
"""Red, green and blue, each 0..255."""

KEYPOINT_GROUPS = ("body", "foot", "left_hand", "right_hand", "extra", "face")


@dataclass(frozen=True, eq=False)
class KeypointTable:
    """What is known of each keypoint; every tuple that is not a list of links or pairs has one entry per keypoint.

    Attributes:
        names: Unique names, in the order of the heatmap channels.
        groups: Group of each keypoint, one of :data:`KEYPOINT_GROUPS`.
        regions: Finer grouping of the face (``"left_iris"``, ``"outer_lip"``, ...); elsewhere it equals the group.
        flip_permutation: Index of the partner on the other side of the body; its own index on the midline.
            Mirrored keypoints are ``keypoints[flip_permutation]``.
        sigmas: Falloff of each keypoint in object keypoint similarity.
        colors_rgb: Colour in which each keypoint is drawn.
        skeleton: Links as pairs of indices.
        skeleton_groups: Group of each link; a link from a wrist into a hand belongs to the hand.
        skeleton_colors_rgb: Colour of each link.
        coco17: Index of each of COCO's 17 keypoints, in COCO's order.
        coco_wholebody133: COCO-WholeBody index -> index here, for those that have a counterpart.
        upper_body: Head, arms and hands, for half-body augmentation.
        lower_body: Hips, legs and feet, for half-body augmentation.

    Convention: left and right are the person's own.
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    regions: tuple[str, ...]
    flip_permutation: tuple[int, ...]
    sigmas: tuple[float, ...]
    colors_rgb: tuple[RGB, ...]
    skeleton: tuple[tuple[int, int], ...]
    skeleton_groups: tuple[str, ...]
    skeleton_colors_rgb: tuple[RGB, ...]
    coco17: tuple[int, ...]
    coco_wholebody133: Mapping[int, int]
    upper_body: tuple[int, ...]
    lower_body: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def flip_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of keypoints that a mirror exchanges, each once, lower index first."""
        return _pairs(self.flip_permutation)

    def index(self, name: str) -> int:
        """Index of the keypoint called ``name``.

        Raises:
            ConfigurationError: No keypoint has this name.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise ConfigurationError(f"unknown keypoint {name!r}; the names are in keypoint_table().names") from None

    def indices(self, group: str) -> tuple[int, ...]:
        """Indices of the keypoints of a group, ascending.

        Raises:
            ConfigurationError: ``group`` is not one of :data:`KEYPOINT_GROUPS`.
        """
        if group not in KEYPOINT_GROUPS:
            raise ConfigurationError(f"unknown keypoint group {group!r}; expected one of {', '.join(KEYPOINT_GROUPS)}")
        return tuple(index for index, own in enumerate(self.groups) if own == group)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> KeypointTable:
        """Build a table from a document laid out like ``keypoints308.json``.

        Raises:
            ConfigurationError: Names repeat, a partner or a link names no keypoint, partners are not mutual, a value
                is out of range, or a COCO index is given twice or left out.
        """
        rows, links = document["keypoints"], document["links"]
        index = _index_by_name([row["name"] for row in rows])
        groups = tuple(row["group"] for row in rows)
        if unknown := sorted(set(groups) - set(KEYPOINT_GROUPS)):
            raise ConfigurationError(f"unknown keypoint groups {unknown}; expected {', '.join(KEYPOINT_GROUPS)}")
        sigmas = tuple(float(row["sigma"]) for row in rows)
        if not all(0 < sigma < 1 for sigma in sigmas):
            raise ConfigurationError("every keypoint sigma must lie in (0, 1)")
        coco17 = _external_map(rows, "coco17")
        if sorted(coco17) != list(range(17)):
            raise ConfigurationError(f"coco17 must map 0..16, got {sorted(coco17)}")
        return cls(
            names=tuple(index),
            groups=groups,
            regions=tuple(row["region"] for row in rows),
            flip_permutation=_permutation(rows, index),
            sigmas=sigmas,
            colors_rgb=tuple(_rgb(row["color"]) for row in rows),
            skeleton=tuple(_link(row, index) for row in links),
            skeleton_groups=tuple(row["group"] for row in links),
            skeleton_colors_rgb=tuple(_rgb(row["color"]) for row in links),
            coco17=tuple(coco17[key] for key in range(17)),
            coco_wholebody133=MappingProxyType(_external_map(rows, "wholebody133")),
            upper_body=tuple(i for i, row in enumerate(rows) if row.get("half") == "upper"),
            lower_body=tuple(i for i, row in enumerate(rows) if row.get("half") == "lower"),
        )


@dataclass(frozen=True, eq=False)
class PartTable:
    """What is known of each body-part class; every tuple has one entry per class id.

    Attributes:
        names: Unique class names, in the order of the logits; id 0 is the background.
        groups: Coarser grouping: background, clothing, head, mouth, torso, left_arm, right_arm, left_leg, right_leg.
        flip_permutation: Class that a mirror turns each class into; its own id when it has no side.
        palette_rgb: Colour of each class.
        class_weights: Weights of the published cross-entropy.
        ignore_index: Label of pixels that no loss and no metric counts.

    Convention: left and right are the person's own.
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    flip_permutation: tuple[int, ...]
    palette_rgb: tuple[RGB, ...]
    class_weights: tuple[float, ...]
    ignore_index: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def flip_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of classes that a mirror exchanges, each once, lower id first."""
        return _pairs(self.flip_permutation)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PartTable:
        """Build a table from a document laid out like ``body_parts.json``.

        Raises:
            ConfigurationError: Names repeat, partners are missing or not mutual, a weight is not positive, or the
                ignored label is a class.
        """
        rows, ignore_index = document["parts"], int(document["ignore_index"])
        index = _index_by_name([row["name"] for row in rows])
        weights = tuple(float(row["weight"]) for row in rows)
        if not all(weight > 0 for weight in weights):
            raise ConfigurationError("every class weight must be positive")
        if 0 <= ignore_index < len(rows):
            raise ConfigurationError(f"ignore_index {ignore_index} is the id of class {rows[ignore_index]['name']}")
        return cls(
            names=tuple(index),
            groups=tuple(row["group"] for row in rows),
            flip_permutation=_permutation(rows, index),
            palette_rgb=tuple(_rgb(row["color"]) for row in rows),
            class_weights=weights,
            ignore_index=ignore_index,
        )


@cache
def keypoint_table() -> KeypointTable:
    """The 308 keypoints of the published pose models."""
    return KeypointTable.from_dict(_document("keypoints308.json"))


@cache
def part_table() -> PartTable:
    """The 29 classes of the published segmentation models."""
    return PartTable.from_dict(_document("body_parts.json"))


def _document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((files("sapiens2.assets") / name).read_text(encoding="utf-8"))
    return document


def _index_by_name(names: Sequence[str]) -> dict[str, int]:
    index = {name: position for position, name in enumerate(names)}
    if len(index) != len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ConfigurationError(f"names must be unique; these repeat: {', '.join(repeated)}")
    return index


def _permutation(rows: Sequence[Mapping[str, Any]], index: Mapping[str, int]) -> tuple[int, ...]:
    """Partner of each row; a mirror applied twice must change nothing."""
    partners = tuple(_lookup(row["mirror"], index) for row in rows)
    for position, partner in enumerate(partners):
        if partners[partner] != position:
            raise ConfigurationError(
                f"{rows[position]['name']} mirrors to {rows[partner]['name']}, which mirrors to "
                f"{rows[partners[partner]]['name']}; partners must be mutual"
            )
    return partners


def _pairs(permutation: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((position, partner) for position, partner in enumerate(permutation) if position < partner)


def _link(row: Mapping[str, Any], index: Mapping[str, int]) -> tuple[int, int]:
    start, end = _lookup(row["start"], index), _lookup(row["end"], index)
    if start == end:
        raise ConfigurationError(f"a link must join two keypoints, got {row['start']} twice")
    return start, end


def _lookup(name: str, index: Mapping[str, int]) -> int:
    if name not in index:
        raise ConfigurationError(f"{name!r} is named as a partner or a link end but is not in the table")
    return index[name]


def _external_map(rows: Sequence[Mapping[str, Any]], field: str) -> dict[int, int]:
    found = {int(row[field]): position for position, row in enumerate(rows) if field in row}
    if len(found) != sum(field in row for row in rows):
        raise ConfigurationError(f"two keypoints have the same {field} index")
    return dict(sorted(found.items()))


def _rgb(values: Sequence[int]) -> RGB:
    if len(values) != 3 or not all(0 <= int(value) <= 255 for value in values):
        raise ConfigurationError(f"a colour must be three values in 0..255, got {list(values)}")
    red, green, blue = (int(value) for value in values)
    return red, green, blue
