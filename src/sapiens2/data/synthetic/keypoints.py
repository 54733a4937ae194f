"""The 308 keypoints of posed bodies, and whether the picture shows them.

Where each lies on the body is read from ``keypoint_anchors.json``, made by ``scripts/build_keypoint_anchors.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from sapiens2.assets import keypoint_table
from sapiens2.data.synthetic.body_model import PosedBody
from sapiens2.data.synthetic.camera import Camera
from sapiens2.data.synthetic.shading import Surface
from sapiens2.errors import ConfigurationError

__all__ = ["OCCLUDED", "OUTSIDE", "VISIBLE", "KeypointAnchors", "keypoint_anchors", "person_boxes", "scene_keypoints"]

VISIBLE, OCCLUDED, OUTSIDE = 2, 1, 0
"""The third number of a keypoint, as in COCO."""


@dataclass(frozen=True, eq=False)
class KeypointAnchors:
    """Keypoints as weighted means of vertices.

    Attributes:
        vertices: ``(308, 8)`` int32 vertices of the base mesh, padded with vertex 0.
        weights: ``(308, 8)`` float64, rows sum to 1; 0 where padded.
        depth_m: ``(308,)`` how far in front of a point the surface may lie that still shows it, in metres: for joints
            what flesh and clothes cover them, for the face little.
    """

    vertices: NDArray[np.int32]
    weights: NDArray[np.float64]
    depth_m: NDArray[np.float64]

    def places(self, vertices: NDArray[np.float32]) -> NDArray[np.float64]:
        """Keypoints ``(308, 3)`` of a body with these vertices."""
        result: NDArray[np.float64] = (vertices[self.vertices] * self.weights[..., None]).sum(axis=1)
        return result


@cache
def keypoint_anchors() -> KeypointAnchors:
    """The table, in the order of the keypoints.

    Raises:
        ConfigurationError: Its names are not those of the keypoint table.
    """
    text = (files("sapiens2.data.synthetic") / "keypoint_anchors.json").read_text(encoding="utf-8")
    rows = json.loads(text)["keypoints"]
    names = tuple(row["name"] for row in rows)
    if names != keypoint_table().names:
        raise ConfigurationError("keypoint_anchors.json has other names than the keypoint table; build it again")
    width = max(len(row["vertices"]) for row in rows)
    vertices, weights = np.zeros((len(rows), width), np.int32), np.zeros((len(rows), width))
    for index, row in enumerate(rows):
        count = len(row["vertices"])
        vertices[index, :count] = row["vertices"]
        weights[index, :count] = np.array(row["weights"]) / sum(row["weights"])
    return KeypointAnchors(vertices, weights, np.array([row["depth_m"] for row in rows]))


def scene_keypoints(
    bodies: Sequence[PosedBody], camera: Camera, inverse_depth: NDArray[np.float32], samples: int
) -> NDArray[np.float32]:
    """Keypoints in the picture.

    Args:
        bodies: The people.
        camera: The camera.
        inverse_depth: ``(H * S, W * S)`` 1/z of what each sample sees, 0 where that is nothing.
        samples: S.

    Returns:
        ``(N, 308, 3)`` float32: x, y in pixels and :data:`VISIBLE`, :data:`OCCLUDED` or :data:`OUTSIDE`. Points
        outside keep their place, those behind the camera are at 0.

    Convention: pixel centres at integers; a point is in the picture when 0 <= x < W and 0 <= y < H.
    """
    anchors = keypoint_anchors()
    height, width = camera.size_hw
    result = np.zeros((len(bodies), len(anchors.depth_m), 3), np.float32)
    for own, body in zip(result, bodies, strict=True):
        points = camera.points(anchors.places(body.vertices))
        pixels = camera.project(points)
        inside = (pixels >= 0).all(axis=1) & (pixels[:, 0] < width) & (pixels[:, 1] < height)
        place = np.where(inside[:, None], pixels, 0) * samples + (samples - 1) / 2
        columns, rows = np.clip(np.rint(place).astype(int), 0, np.array([width, height]) * samples - 1).T
        seen = inverse_depth[rows, columns]
        in_front = seen > 1 / np.maximum(points[:, 2] - anchors.depth_m, 0.01)
        own[:, :2] = np.nan_to_num(pixels)
        own[:, 2] = np.where(inside, np.where(in_front, OCCLUDED, VISIBLE), OUTSIDE)
    return result


def person_boxes(surface: Surface, camera: Camera, people: int) -> NDArray[np.float32]:
    """Boxes ``(N, 4)``, x, y, width, height, around all of each person, hidden or not, within the picture."""
    height, width = camera.size_hw
    boxes = np.zeros((people, 4), np.float32)
    for number in range(1, people + 1):
        used = np.unique(surface.triangles[surface.person == number])
        used = used[surface.cut[used] > 0]
        pixels = camera.project(surface.points[used].astype(np.float64))
        pixels = pixels[np.isfinite(pixels).all(axis=1)]
        if not len(pixels):
            continue
        low = np.clip(pixels.min(axis=0), -0.5, [width - 0.5, height - 0.5])
        high = np.clip(pixels.max(axis=0), -0.5, [width - 0.5, height - 0.5])
        boxes[number - 1] = [*low, *(high - low)]
    return boxes
