from __future__ import annotations

import numpy as np
import pytest

from sapiens2.errors import InputError
from sapiens2.io import read_ply, write_ply

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("with_colors", [True, False])
@pytest.mark.parametrize("with_normals", [True, False])
def test_write_ply__round_trip(tmp_path, count, with_colors, with_normals):
    points = RNG.normal(size=(count, 3)).astype(np.float32)
    colors = RNG.integers(0, 256, (count, 3), np.uint8) if with_colors else None
    normals = RNG.normal(size=(count, 3)).astype(np.float32) if with_normals else None
    cloud = read_ply(write_ply(tmp_path / "a.ply", points, colors_rgb=colors, normals=normals, comments=["two\nlines"]))
    np.testing.assert_array_equal(cloud.points, points)
    for stored, given in ((cloud.colors_rgb, colors), (cloud.normals, normals)):
        assert (stored is None) == (given is None)
        if given is not None:
            np.testing.assert_array_equal(stored, given)


def test_write_ply__bytes_of_one_point(tmp_path):
    path = write_ply(tmp_path / "a.ply", [[1, 2, 3]], colors_rgb=np.array([[4, 5, 6]], np.uint8), comments=["metres"])
    expected = (
        b"ply\nformat binary_little_endian 1.0\ncomment metres\nelement vertex 1\n"
        b"property float x\nproperty float y\nproperty float z\n"
        b"property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n"
        b"\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x04\x05\x06"
    )
    assert path.read_bytes() == expected


def test_read_ply__other_properties_and_later_elements_are_left_out(tmp_path):
    path = tmp_path / "a.ply"
    vertex = np.array([(1.5, 9, 2.5, 3.5)], [("x", "<f8"), ("quality", "u1"), ("y", "<f8"), ("z", "<f8")])
    path.write_bytes(
        b"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty double x\nproperty uint8 quality\n"
        b"property double y\nproperty double z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        + vertex.tobytes()
        + b"\x03"
        + bytes(12)
    )
    cloud = read_ply(path)
    assert cloud.points.tolist() == [[1.5, 2.5, 3.5]]
    assert cloud.colors_rgb is None


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (np.zeros((2, 2)), {}, r"points must have shape \(N, 3\)"),
        (np.full((2, 3), np.inf), {}, "points must be finite"),
        (np.zeros((2, 3)), {"colors_rgb": np.zeros((2, 3))}, r"colors_rgb must be uint8 \(2, 3\), got float64"),
        (np.zeros((2, 3)), {"colors_rgb": np.zeros((1, 3), np.uint8)}, r"got uint8 \(1, 3\)"),
        (np.zeros((2, 3)), {"normals": np.zeros((1, 3))}, r"normals must have shape \(2, 3\), got \(1, 3\)"),
    ],
)
def test_write_ply__refuses(tmp_path, points, options, message):
    with pytest.raises(InputError, match=message):
        write_ply(tmp_path / "a.ply", points, **options)
    assert not list(tmp_path.iterdir())


HEADER = b"ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plywood", "not a PLY file"),
        (b"ply\nformat ascii 1.0\nend_header\n", "not in the format binary_little_endian"),
        (HEADER + b"property float z\nend_header\n" + bytes(23), "cut short: 2 points need 24 bytes, got 23"),
        (HEADER + b"end_header\n" + bytes(16), "has no x, y and z; its properties are x, y"),
        (HEADER + b"property list uchar int i\nend_header\n", "not one number: property list"),
        (HEADER.replace(b"vertex", b"camera") + b"end_header\n", "begins with the element camera 2"),
    ],
)
def test_read_ply__refuses(tmp_path, content, message):
    path = tmp_path / "a.ply"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_ply(path)
