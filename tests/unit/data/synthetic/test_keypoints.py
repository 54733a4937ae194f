from __future__ import annotations

import numpy as np

from sapiens2.assets import keypoint_table
from sapiens2.data.synthetic import SyntheticSample

MIRROR = np.array([-1, 1, 1], np.float32)


def test_keypoint_anchors__mirrored_body__mirrored_points() -> None:
    """Any body, not only a symmetric one: its mirror image has the same points under the partners' names."""
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.keypoints import keypoint_anchors

    model = body_model()
    vertices = model.template + np.random.default_rng(0).normal(0, 0.01, model.template.shape).astype(np.float32)
    mirrored = vertices[model.mirror] * MIRROR
    partners = list(keypoint_table().flip_permutation)
    places = keypoint_anchors().places(vertices)
    symmetric = [i for i, partner in enumerate(partners) if i == partner]
    expected = places[partners] * MIRROR
    found = keypoint_anchors().places(mirrored)
    sided = [i for i in range(len(partners)) if i not in symmetric]
    assert np.abs(found[sided] - expected[sided]).max() < 1e-6


def test_keypoint_anchors__midline_points__lie_on_the_midline_of_the_template() -> None:
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.keypoints import keypoint_anchors

    places = keypoint_anchors().places(body_model().template)
    partners = keypoint_table().flip_permutation
    assert max(abs(places[i, 0]) for i, partner in enumerate(partners) if i == partner) < 1e-3


def test_keypoint_anchors__face_points__lie_on_the_part_they_name() -> None:
    from sapiens2.data.synthetic.anatomy import anatomy
    from sapiens2.data.synthetic.keypoints import keypoint_anchors

    anchors, body, table = keypoint_anchors(), anatomy(), keypoint_table()
    eyes = {side: set(np.unique(body.triangles[f"helper-{side}-eye"])) for side in "lr"}
    for index, (name, region) in enumerate(zip(table.names, table.regions, strict=True)):
        own = [int(v) for v, w in zip(anchors.vertices[index], anchors.weights[index], strict=True) if w > 0]
        if "iris" in region or "pupil" in region:
            assert set(own) <= eyes[name[0]], name
        elif "lip" in region:
            assert body.masks["lips"][own].max() > 0.3, name
        elif table.groups[index] == "face":
            assert max(own) < 13380, name
            assert body.head[own].min() > 0.5, name


def test_keypoint_anchors__curves__run_from_the_viewers_left_to_right() -> None:
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.keypoints import keypoint_anchors

    places, table = keypoint_anchors().places(body_model().template), keypoint_table()
    order = (3, 1, 4, 5, 2, 6)
    curves = [f"{side}_midpoint_{{}}_of_{lid}_lash_line" for side in "lr" for lid in ("upper", "lower")]
    curves += [f"midpoint_{{}}_of_{lip}_{edge}_lip" for lip in ("upper", "lower") for edge in ("outer", "inner")]
    for curve in curves:
        x = [places[table.index(curve.format(number)), 0] for number in order]
        assert (np.diff(x) > 0).all(), curve


def test_keypoint_anchors__fingers__run_from_tip_to_base() -> None:
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.keypoints import keypoint_anchors

    places, table = keypoint_anchors().places(body_model().template), keypoint_table()
    for side in ("left", "right"):
        wrist = places[table.index(f"{side}_wrist")]
        for finger in ("thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger"):
            chain = [f"{side}_{finger}{suffix}" for suffix in ("4", "3", "2", "_third_joint")]
            distances = [np.linalg.norm(places[table.index(name)] - wrist) for name in chain]
            assert (np.diff(distances) < 0).all(), chain


def test_scene_keypoints__visible_points_of_the_body__lie_on_the_person(one_person: SyntheticSample) -> None:
    points = one_person.keypoints[0]
    visible = points[points[:, 2] == 2]
    assert len(visible) > 60
    rows, columns = (np.rint(visible[:, axis]).astype(int) for axis in (1, 0))
    height, width = one_person.alpha.shape
    near = [
        one_person.alpha[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2].max()
        for row, column in zip(rows.clip(0, height - 1), columns.clip(0, width - 1), strict=True)
    ]
    assert np.mean(np.array(near) > 0) > 0.98


def test_scene_keypoints__outside__is_outside(three_people: SyntheticSample) -> None:
    height, width = three_people.alpha.shape
    x, y, seen = three_people.keypoints.reshape(-1, 3).T
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    assert (inside == (seen > 0)).all()
    assert (seen == 0).any()
    assert (seen == 1).any()
