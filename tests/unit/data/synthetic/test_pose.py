from __future__ import annotations

import numpy as np


def test_sample_pose__rotations_are_rotations_and_named_bones_exist() -> None:
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.pose import sample_pose

    names = set(body_model().rig.names)
    for seed in range(20):
        pose = sample_pose(np.random.default_rng(seed))
        assert set(pose.rotations) <= names
        for own in pose.rotations.values():
            assert np.allclose(own @ own.T, np.eye(3), atol=1e-9)
            assert np.linalg.det(own) > 0


def test_sample_pose__never_passes_through_itself() -> None:
    from sapiens2.data.synthetic.pose import sample_pose
    from sapiens2.data.synthetic.self_contact import passes_through_itself

    poses = [sample_pose(np.random.default_rng(seed)).rotations for seed in range(30)]
    assert sum(passes_through_itself(pose) for pose in poses) == 0


def test_passes_through_itself__arm_in_the_belly__is_found() -> None:
    from sapiens2.data.synthetic.pose import _arm
    from sapiens2.data.synthetic.self_contact import passes_through_itself

    assert passes_through_itself(_arm("L", -25, -20, 20, 0, 0))
    assert not passes_through_itself({})


def test_posed__rest_pose__gives_the_rest_vertices() -> None:
    from sapiens2.data.synthetic.body_model import body_model

    model = body_model()
    assert np.abs(model.posed(model.template, {}).vertices - model.template).max() < 1e-5


def test_posed__turned_root__turns_everything() -> None:
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.rotations import about

    model, turn = body_model(), about((0.0, 0.0, 1.0), 90)
    posed = model.posed(model.template, {"root": turn})
    root = model.template[model.rig.head_vertices[0]].mean(0)
    assert np.abs(posed.vertices - ((model.template - root) @ turn.T + root)).max() < 1e-5


def test_posed__bent_knee__moves_the_shin_back_and_nothing_above() -> None:
    from sapiens2.data.synthetic.body_model import body_model
    from sapiens2.data.synthetic.rotations import about

    model = body_model()
    posed = model.posed(model.template, {"lowerleg01.L": about((1.0, 0.0, 0.0), 60)})
    moved = np.abs(posed.vertices - model.template).max(axis=1) > 1e-4
    assert not moved[model.template[:, 2] > -0.1].any()
    assert not moved[:13380][model.template[:13380, 0] < -0.01].any()  # the helper skirt spans both legs
    foot = model.bone("foot.L")
    assert posed.heads[foot, 1] > posed.rest_heads[foot, 1] + 0.2
