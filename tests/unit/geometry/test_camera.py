import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.geometry import canonical_scale, project, unproject

INTRINSICS = torch.tensor([[[500.0, 0.0, 20.5], [0.0, 480.0, 14.0], [0.0, 0.0, 1.0]]])


def random_depth(batch=1):
    return 1 + torch.rand(batch, 1, 30, 40, generator=torch.Generator().manual_seed(0))


def test_unproject__golden():
    points = unproject(torch.full((30, 40), 2.0), INTRINSICS)
    assert points.shape == (1, 3, 30, 40)
    torch.testing.assert_close(points[0, :, 14, 0], torch.tensor([-20.5 * 2 / 500, 0.0, 2.0]))
    torch.testing.assert_close(points[0, :, 29, 39], torch.tensor([18.5 * 2 / 500, 15 * 2 / 480, 2.0]))


def test_project__undoes_unproject():
    intrinsics = torch.cat([INTRINSICS, INTRINSICS * torch.tensor([2.0, 2.0, 1.0])[:, None]])
    pixels = project(unproject(random_depth(2), intrinsics), intrinsics)
    v, u = torch.meshgrid(torch.arange(30.0), torch.arange(40.0), indexing="ij")
    torch.testing.assert_close(pixels, torch.stack([u, v]).expand(2, 2, 30, 40), atol=1e-4, rtol=0)


def test_unproject__scales_with_depth():
    torch.testing.assert_close(unproject(3 * random_depth(), INTRINSICS), 3 * unproject(random_depth(), INTRINSICS))


def test_unproject__one_camera_serves_the_batch():
    depth = random_depth(3)
    assert unproject(depth, INTRINSICS).equal(unproject(depth, INTRINSICS[0]))
    assert unproject(depth, INTRINSICS).equal(unproject(depth, INTRINSICS.expand(3, 3, 3)))


def test_project__what_lies_behind_the_camera_is_nan():
    points = torch.ones(1, 3, 1, 3)
    points[0, 2, 0] = torch.tensor([1.0, 0.0, -1.0])
    pixels = project(points, INTRINSICS)
    assert pixels[0, 0, 0].isnan().tolist() == [False, True, True]


def test_canonical_scale__halves_when_the_focal_length_doubles():
    assert canonical_scale(768.0) == 1.0
    assert canonical_scale(torch.tensor([384.0, 1536.0])).tolist() == [2.0, 0.5]
    assert canonical_scale(100.0, canonical=50.0) == 0.5


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (5,), (2, 4, 4)])
def test_unproject__refuses_what_is_no_depth_map(shape):
    with pytest.raises(InputError, match="Depth has shape"):
        unproject(torch.ones(shape), INTRINSICS)


def test_project__refuses_what_is_no_point_map():
    with pytest.raises(InputError, match=r"Points have shape \(3, 4, 4\)"):
        project(torch.ones(3, 4, 4), INTRINSICS)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 3), (1, 2, 2)])
def test_project__refuses_intrinsics_that_do_not_fit(shape):
    with pytest.raises(InputError, match=r"Intrinsics have shape .* for a batch of 3"):
        project(torch.ones(3, 3, 4, 4), torch.ones(shape))
