"""Keypoints and skeletons over a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets.tables import RGB, KeypointTable, keypoint_table
from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_image
from sapiens2.visualization.strokes import draw_box, draw_disc, draw_segment

__all__ = ["draw_pose"]

POINT_RADIUS = {"body": 0.006, "extra": 0.004, "foot": 0.004, "left_hand": 0.0028, "right_hand": 0.0028, "face": 0.0022}
LINK_RADIUS = {"body": 0.0045, "foot": 0.0028, "left_hand": 0.002, "right_hand": 0.002}
HEAD_POINT_RADIUS, HEAD_LINK_RADIUS = 0.0036, 0.0022
"""Sizes as parts of the extent of the person's points."""
MIN_RADIUS = 0.6
FAR_AWAY = 1e6
"""Coordinates beyond this are moved to it; squares of larger ones overflow."""
OUTLINE = (16, 16, 20)
OUTLINE_OPACITY = 0.55
BOX_COLOR = (255, 255, 255)
PLAIN_COLOR = (0, 200, 255)


class Look(NamedTuple):
    """How the K points of a person are drawn; sizes are parts of the person's extent."""

    point_colors: Sequence[RGB]
    point_radii: Sequence[float]
    links: Sequence[tuple[int, int]]
    link_colors: Sequence[RGB]
    link_radii: Sequence[float]


def draw_pose(
    image: Any,
    keypoints: Any,
    scores: Any,
    *,
    boxes_xyxy: Any | None = None,
    threshold: float = 0.3,
    skeleton: Sequence[tuple[int, int]] | None = None,
) -> NDArray[np.uint8]:
    """Draw people's points and the links between them.

    A point is drawn when it is finite and its score reaches the threshold; a link when both its ends are. Widths follow
    the extent of each person's points, so that a small figure is not covered by its own skeleton.

    Args:
        image: ``(H, W, 3)`` uint8; it is not changed.
        keypoints: ``(N, K, 2)`` x, y in pixels; NaN where there is no point. N may be 0.
        scores: ``(N, K)``.
        boxes_xyxy: ``(N, 4)``; drawn when given.
        threshold: Lowest score that is shown.
        skeleton: Links as pairs of indices. Left out, the 308 published keypoints get their own links and colours, and
            any other set gets points alone.

    Returns:
        ``(H, W, 3)`` uint8.

    Raises:
        InputError: Shapes that do not match, or a link to a point that does not exist.

    Convention: pixel centres at integers, x right, y down.
    """
    canvas = checked_image(image).copy()
    points = checked_array(keypoints, "keypoints", ("N", "K", 2))
    confidence = checked_array(scores, "scores", points.shape[:2])
    shown = np.isfinite(points).all(axis=2) & (confidence >= threshold)
    points = points.clip(-FAR_AWAY, FAR_AWAY)
    look = _look(points.shape[1], skeleton)
    if boxes_xyxy is not None:
        boxes = checked_array(boxes_xyxy, "boxes_xyxy", (len(points), 4), finite=True)
        for box in boxes.clip(-FAR_AWAY, FAR_AWAY):
            radius = max(MIN_RADIUS, 0.0015 * min(canvas.shape[:2]))
            draw_box(canvas, box.tolist(), radius + 1, OUTLINE, OUTLINE_OPACITY)
            draw_box(canvas, box.tolist(), radius, BOX_COLOR)
    for person, visible in zip(points, shown, strict=True):
        if visible.any():
            _draw_person(canvas, person, visible, look)
    return canvas


def _draw_person(canvas: NDArray[np.uint8], points: NDArray[np.float32], shown: NDArray[np.bool_], look: Look) -> None:
    """Links first, then points; of each first the dark outlines, so that none crosses a neighbour's colour."""
    extent = float(np.ptp(points[shown], axis=0).max())
    extent = min(max(extent, 0.25 * min(canvas.shape[:2])), max(canvas.shape[:2]))
    outline = max(0.5, 0.0012 * extent)
    xy = points.tolist()
    links = [
        (xy[start], xy[end], max(MIN_RADIUS, size * extent), color)
        for (start, end), size, color in zip(look.links, look.link_radii, look.link_colors, strict=True)
        if shown[start] and shown[end]
    ]
    for start, end, radius, _ in links:
        draw_segment(canvas, start, end, radius + outline, OUTLINE, OUTLINE_OPACITY)
    for start, end, radius, color in links:
        draw_segment(canvas, start, end, radius, color)
    discs = [
        (xy[index], max(MIN_RADIUS, look.point_radii[index] * extent), look.point_colors[index])
        for index in np.flatnonzero(shown).tolist()
    ]
    for center, radius, _ in discs:
        draw_disc(canvas, center, radius + outline, OUTLINE, OUTLINE_OPACITY)
    for center, radius, color in discs:
        draw_disc(canvas, center, radius, color)


def _look(num_keypoints: int, skeleton: Sequence[tuple[int, int]] | None) -> Look:
    table = keypoint_table()
    if skeleton is None and num_keypoints == len(table):
        return _published_look(table)
    links = [(int(start), int(end)) for start, end in skeleton or ()]
    for link in links:
        if not all(0 <= index < num_keypoints for index in link):
            raise InputError(f"skeleton joins {link}, and there are {num_keypoints} keypoints (0..{num_keypoints - 1})")
    return Look(
        point_colors=[PLAIN_COLOR] * num_keypoints,
        point_radii=[POINT_RADIUS["body"]] * num_keypoints,
        links=links,
        link_colors=[PLAIN_COLOR] * len(links),
        link_radii=[LINK_RADIUS["body"]] * len(links),
    )


def _published_look(table: KeypointTable) -> Look:
    """The table's colours; a point that ends a link takes the link's, which tells left from right."""
    colors = list(table.colors_rgb)
    for (start, end), color in zip(table.skeleton, table.skeleton_colors_rgb, strict=True):
        for index in (start, end):
            if table.groups[index] != "face" and colors[index] == table.colors_rgb[index]:
                colors[index] = color
    head = set(table.coco17[:5])  # nose, eyes, ears: thin, since the dense face points lie under them
    return Look(
        point_colors=colors,
        point_radii=[HEAD_POINT_RADIUS if i in head else POINT_RADIUS[group] for i, group in enumerate(table.groups)],
        links=table.skeleton,
        link_colors=table.skeleton_colors_rgb,
        link_radii=[
            HEAD_LINK_RADIUS if head.issuperset(link) else LINK_RADIUS[group]
            for link, group in zip(table.skeleton, table.skeleton_groups, strict=True)
        ],
    )
