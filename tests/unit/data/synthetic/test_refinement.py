from __future__ import annotations

import numpy as np


def test_refinement__a_triangle_twice__sixteen_of_the_same_area() -> None:
    from sapiens2.data.synthetic.refinement import Refinement

    finer = Refinement.of(np.array([[4, 2, 0]], np.int32), 2)
    points = finer.values(np.array([[0, 0, 0], [9, 9, 9], [0, 4, 0], [9, 9, 9], [4, 0, 0]], np.float32))
    a, b, c = (points[finer.triangles[:, i]] for i in range(3))
    areas = np.cross(b - a, c - a)[:, 2] / 2
    assert len(points) == 15
    assert np.allclose(areas, 8 / 16)


def test_fractal_noise__seeds_and_places() -> None:
    from sapiens2.data.synthetic.noise import fractal_noise

    places = np.random.default_rng(0).uniform(-5, 5, (500, 3))
    noise = fractal_noise(places, 3, 3)
    assert np.array_equal(noise, fractal_noise(places, 3, 3))
    assert not np.allclose(noise, fractal_noise(places, 4, 3))
    assert np.abs(noise).max() <= 1.4
    assert np.abs(noise - fractal_noise(places + 1e-4, 3, 3)).max() < 0.01


def test_rasterise__nearer_triangle_wins_and_cut_lets_through() -> None:
    from sapiens2.data.synthetic.rasteriser import rasterise
    from sapiens2.data.synthetic.warp_runtime import to_numpy

    corners = np.array([[-1, -1], [-1, 40], [40, -1]], np.float32)
    points = np.concatenate([np.c_[corners, [1, 1, 1]], np.c_[corners, [2, 2, 2]]]).astype(np.float32)
    cut = np.array([1, 1, 1, -1, -1, 1], np.float32)  # the nearer one is there on its right side alone
    zero = np.zeros(6, np.float32)
    triangles, both = np.array([[0, 1, 2], [3, 4, 5]], np.int32), np.ones(2, np.int32)
    seen = to_numpy(rasterise(points, cut, zero, zero, triangles, both, (8, 32)).triangle)
    assert seen[0, 2] == 0
    assert seen[0, 30] == 1
    assert seen[7, 31] == 1


def test_rasterise__back_faces__only_when_two_sided() -> None:
    from sapiens2.data.synthetic.rasteriser import rasterise
    from sapiens2.data.synthetic.warp_runtime import to_numpy

    points = np.array([[-1, -1, 1], [40, -1, 1], [-1, 40, 1]], np.float32)
    one, zero, triangle = np.ones(3, np.float32), np.zeros(3, np.float32), np.array([[0, 1, 2]], np.int32)
    for two_sided, expected in ((0, -1), (1, 0)):
        sides = np.array([two_sided], np.int32)
        seen = to_numpy(rasterise(points, one, zero, zero, triangle, sides, (4, 4)).triangle)
        assert (seen == expected).all()
