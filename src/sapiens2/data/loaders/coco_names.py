"""Keypoints of COCO-WholeBody, which are spread over several arrays of an annotation and not named in its file.

Source: Jin et al., "Whole-Body Human Pose Estimation in the Wild", ECCV 2020; the order is that of its 133 points.
"""

from __future__ import annotations

__all__ = ["COCO_NAMES", "FEET", "GROUPS", "WHOLEBODY_NAMES", "hand_names"]

COCO_NAMES = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder"),
    *("left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip"),
    *("left_knee", "right_knee", "left_ankle", "right_ankle"),
)
"""COCO's 17 keypoints in order."""

FEET = ("left_big_toe", "left_small_toe", "left_heel", "right_big_toe", "right_small_toe", "right_heel")

_FINGERS = ("thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger")


def hand_names(side: str) -> tuple[str, ...]:
    """Names of the 21 points of a hand: its root, then each finger from the palm to the tip."""
    fingers = tuple(f"{side}_{finger}{joint}" for finger in _FINGERS for joint in range(1, 5))
    return (f"{side}_hand_root", *fingers)


GROUPS: dict[str, tuple[str, ...]] = {
    "keypoints": COCO_NAMES,
    "foot_kpts": FEET,
    "face_kpts": tuple(f"face_{point}" for point in range(68)),
    "lefthand_kpts": hand_names("left"),
    "righthand_kpts": hand_names("right"),
}
"""Arrays of an annotation and the names of their points, in the order of the 133."""

WHOLEBODY_NAMES = tuple(name for names in GROUPS.values() for name in names)
