"""The tables agree with each other and with the figures that COCO and the published models fix."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from importlib.resources import files

import pytest

from sapiens2.assets import KeypointTable, PartTable, keypoint_table, part_table
from sapiens2.assets.tables import KEYPOINT_GROUPS
from sapiens2.errors import ConfigurationError

SIDES = ("left", "right")
COCO17 = [
    "nose",
    *(
        f"{side}_{part}"
        for part in ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
        for side in SIDES
    ),
]
COCO_SIGMAS = (26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89)


def document(name: str) -> dict:
    return json.loads((files("sapiens2.assets") / name).read_text(encoding="utf-8"))


def test_keypoint_table__counts_of_the_published_models():
    table = keypoint_table()
    assert len(table) == 308
    assert [len(table.indices(group)) for group in KEYPOINT_GROUPS] == [17, 6, 20, 20, 7, 238]
    assert (len(table.flip_pairs), len(table.skeleton)) == (146, 65)
    assert (len(table.upper_body), len(table.lower_body)) == (51, 12)
    assert [table.skeleton_groups.count(group) for group in KEYPOINT_GROUPS] == [19, 6, 20, 20, 0, 0]


def test_keypoint_table__one_entry_per_keypoint():
    table = keypoint_table()
    per_point = (table.names, table.groups, table.regions, table.flip_permutation, table.sigmas, table.colors_rgb)
    assert {len(column) for column in per_point} == {308}
    assert len(table.skeleton) == len(table.skeleton_groups) == len(table.skeleton_colors_rgb)
    assert {index for link in table.skeleton for index in link} <= set(range(308))


def test_keypoint_table__mirroring_twice_changes_nothing_and_swaps_the_sides():
    table = keypoint_table()
    flip = table.flip_permutation
    assert [flip[partner] for partner in flip] == list(range(308))
    assert sum(partner == index for index, partner in enumerate(flip)) == 16
    assert [table.sigmas[i] for i in (5, 6)] == [0.079, 0.079]
    sided = [
        (table.names[i], table.names[j]) for i, j in table.flip_pairs if "left_" in table.names[i] + table.names[j]
    ]
    assert len(sided) > 30
    assert all(a.replace("left_", "right_") == b.replace("left_", "right_") for a, b in sided)


def test_keypoint_table__links_mirror_to_links():
    table = keypoint_table()
    links = {frozenset(link) for link in table.skeleton}
    assert {frozenset(table.flip_permutation[index] for index in link) for link in links} == links


def test_keypoint_table__coco17_has_cocos_names_and_sigmas():
    table = keypoint_table()
    assert [table.names[index] for index in table.coco17] == COCO17
    assert [round(table.sigmas[index] * 1000) for index in table.coco17] == list(COCO_SIGMAS)


def test_keypoint_table__wholebody_begins_with_coco17_and_has_53_counterparts():
    table = keypoint_table()
    assert len(table.coco_wholebody133) == 53
    assert tuple(table.coco_wholebody133[index] for index in range(17)) == table.coco17
    assert table.names[table.coco_wholebody133[95]] == "left_thumb4"


def test_keypoint_table__is_cached_and_frozen():
    table = keypoint_table()
    assert keypoint_table() is table
    with pytest.raises(FrozenInstanceError):
        table.names = ()
    with pytest.raises(TypeError):
        table.coco_wholebody133[0] = 1


def test_keypoint_table__index_finds_names_and_refuses_others():
    table = keypoint_table()
    assert (table.index("right_wrist"), table.index("left_wrist")) == (41, 62)
    with pytest.raises(ConfigurationError, match="unknown keypoint 'tail'"):
        table.index("tail")
    with pytest.raises(ConfigurationError, match="unknown keypoint group 'wings'; expected one of body"):
        table.indices("wings")


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (0, {"name": "left_eye"}, "these repeat: left_eye"),
        (1, {"mirror": "left_eye"}, "partners must be mutual"),
        (1, {"mirror": "third_eye"}, "'third_eye' is named as a partner"),
        (3, {"sigma": 0}, r"sigma must lie in \(0, 1\)"),
        (3, {"group": "antenna"}, r"unknown keypoint groups \['antenna'\]"),
        (3, {"color": [0, 0, 256]}, "three values in 0..255"),
        (3, {"coco17": 0}, "two keypoints have the same coco17 index"),
        (70, {"coco17": 17}, r"coco17 must map 0\.\.16"),
    ],
)
def test_keypoint_table_from_dict__refuses_damage(line, change, message):
    damaged = document("keypoints308.json")
    damaged["keypoints"][line] |= change
    with pytest.raises(ConfigurationError, match=message):
        KeypointTable.from_dict(damaged)


@pytest.mark.parametrize(("end", "message"), [("left_ankle", "must join two keypoints"), ("tail", "not in the table")])
def test_keypoint_table_from_dict__refuses_links_that_join_nothing(end, message):
    damaged = document("keypoints308.json")
    damaged["links"][0]["end"] = end
    with pytest.raises(ConfigurationError, match=message):
        KeypointTable.from_dict(damaged)


def test_part_table__figures_of_the_published_models():
    table = part_table()
    assert len(table) == 29
    assert (table.names[0], table.names[23], table.palette_rgb[0]) == ("Background", "Upper_Clothing", (50, 50, 50))
    assert table.flip_pairs == ((5, 14), (6, 15), (7, 16), (8, 17), (9, 18), (10, 19), (11, 20), (12, 21))
    assert sum(table.class_weights) == pytest.approx(146.1)
    assert table.ignore_index == 255
    assert len(set(table.palette_rgb)) == 29
    assert part_table() is table


def test_part_table__mirror_swaps_left_and_right_only():
    table = part_table()
    for name, partner in zip(table.names, (table.names[i] for i in table.flip_permutation), strict=True):
        assert partner == name.replace("Left", "#").replace("Right", "Left").replace("#", "Right")


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (5, {"mirror": "Right_Hand"}, "partners must be mutual"),
        (5, {"weight": 0}, "weight must be positive"),
        (5, {"name": "Hair"}, "these repeat: Hair"),
    ],
)
def test_part_table_from_dict__refuses_damage(line, change, message):
    damaged = document("body_parts.json")
    damaged["parts"][line] |= change
    with pytest.raises(ConfigurationError, match=message):
        PartTable.from_dict(damaged)


def test_part_table_from_dict__refuses_an_ignored_label_that_is_a_class():
    with pytest.raises(ConfigurationError, match="ignore_index 4 is the id of class Hair"):
        PartTable.from_dict(document("body_parts.json") | {"ignore_index": 4})
