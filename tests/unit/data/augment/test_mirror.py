from __future__ import annotations

import numpy as np
import pytest

from sapiens2.assets import keypoint_table, part_table
from sapiens2.data.augment import NO_PARTNER, Mirror, flip_pairs_by_name, half_body_indices, mirror_partners
from sapiens2.data.loaders import WHOLEBODY_NAMES
from sapiens2.errors import ConfigurationError


def test_mirror_partners__published_lists() -> None:
    assert mirror_partners(keypoint_table().names) == keypoint_table().flip_permutation
    assert mirror_partners(part_table().names) == part_table().flip_permutation
    assert Mirror.from_names() == Mirror(keypoint_table().flip_permutation, part_table().flip_permutation)


def test_mirror_partners__published_names_in_another_order() -> None:
    """Indices of the published lists would be stale here; some of these names do not look like their partners."""
    order = np.random.default_rng(0).permutation(308)
    names = [keypoint_table().names[index] for index in order]
    partners = mirror_partners(names)
    expected = [keypoint_table().names[keypoint_table().flip_permutation[index]] for index in order]
    assert [names[partner] for partner in partners] == expected
    fewer = ["Background", "Right_Hand", "Left_Hand"]
    assert mirror_partners(fewer) == (0, 2, 1)


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (("left_eye", "right_eye", "nose"), ((0, 1),)),
        (("eye.R", "tail", "eye.L"), ((0, 2),)),
        (("Left Shoe", "Right Shoe", "Bag"), ((0, 1),)),
        (("LEFT-ARM", "RIGHT-ARM"), ((0, 1),)),
        (("leftKnee", "rightKnee", "torso"), ((0, 1),)),
        (("kneeLeft2", "kneeRight2"), ((0, 1),)),
        (("RAnkle", "LAnkle"), ((0, 1),)),
        (("thumbL", "thumbR"), ((0, 1),)),
        (("bottom", "cleft", "upright", "Lower", "Rower"), ()),  # no sides in them
        (("a1", "a2"), ()),
    ],
)
def test_flip_pairs_by_name__ways_to_say_a_side(names: tuple[str, ...], pairs: tuple[tuple[int, int], ...]) -> None:
    assert flip_pairs_by_name(names) == pairs


def test_flip_pairs_by_name__given_pairs_come_first() -> None:
    assert flip_pairs_by_name(["a1", "left_b", "a2", "right_b"], pairs=[("a1", "a2")]) == ((0, 2), (1, 3))
    with pytest.raises(ConfigurationError, match="another pair"):
        flip_pairs_by_name(["a", "b", "c"], pairs=[("a", "b"), ("b", "c")])
    with pytest.raises(ConfigurationError, match=r"pairs name \['z'\]"):
        Mirror.from_names(["a", "b"], pairs=[("a", "z")])
    with pytest.raises(ConfigurationError, match="these repeat: a"):
        mirror_partners(["a", "a"])


def test_mirror_partners__are_mutual() -> None:
    for names in (WHOLEBODY_NAMES, ("left_a", "LEFT_a", "right_a"), ("l_a", "r_a", "left_a")):
        partners = mirror_partners(names)
        for index, partner in enumerate(partners):
            assert partner == NO_PARTNER or partners[partner] == index


def test_mirror_partners__numbered_face() -> None:
    """The outer corners of the eyes, of the mouth, and the ends of the jaw."""
    for start in (0, 1):
        names = [f"face-{point + start}" for point in range(68)]
        partners = mirror_partners(names)
        assert [partners[point] for point in (0, 36, 48, 60, 8, 27, 33, 62)] == [16, 45, 54, 64, 8, 27, 33, 62]
        assert sum(partner == point for point, partner in enumerate(partners)) == 10
    assert mirror_partners(["face_0", "face_1"]) == (0, 1)


def test_mirror__a_side_without_its_other_is_unknown_afterwards() -> None:
    mirror = Mirror.from_names(["left_paw", "nose"], ["ground", "left_boot"])
    swapped = mirror.swap_keypoints(np.array([[[1, 2, 2], [3, 4, 1]]], np.float32))
    assert swapped[0, :, 2].tolist() == [0, 1]
    assert mirror.swap_parts(np.array([[0, 1, 255]], np.uint8)).tolist() == [[0, 255, 255]]


def test_mirror__twice_is_the_identity() -> None:
    mirror = Mirror.from_names()
    parts = np.arange(29, dtype=np.uint8)[None]
    np.testing.assert_array_equal(mirror.swap_parts(mirror.swap_parts(parts)), parts)
    keypoints = np.random.default_rng(0).random((2, 308, 3), dtype=np.float32)
    np.testing.assert_array_equal(mirror.swap_keypoints(mirror.swap_keypoints(keypoints)), keypoints)


def test_half_body_indices__follow_names() -> None:
    assert half_body_indices(keypoint_table().names) == (keypoint_table().upper_body, keypoint_table().lower_body)
    assert half_body_indices(["left_hip", "tail", "nose"]) == ((2,), (0,))
