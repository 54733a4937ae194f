import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from sapiens2.errors import InputError
from sapiens2.losses import (
    intrinsics_consistency_loss,
    multiscale_pointmap_l1_loss,
    pointmap_l1_loss,
    pointmap_normal_loss,
    pointmap_recipe_loss,
    scale_l1_loss,
    shift_invariant_pointmap_l1_loss,
    silog_loss,
    valid_points,
)

SIZE_HW = (6, 5)
FX, FY, CX, CY = 7.0, 8.0, 2.2, 2.9


@pytest.fixture
def intrinsics():
    return torch.tensor([[FX, 0, CX], [0, FY, CY], [0, 0, 1]], dtype=torch.float64).repeat(2, 1, 1)


@pytest.fixture
def targets():
    """Points on the rays of the pixels, in canonical units."""
    depth = 1 + torch.rand((2, *SIZE_HW), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    v, u = np.mgrid[: SIZE_HW[0], : SIZE_HW[1]]
    x, y = torch.from_numpy((u - CX) / FX) * depth, torch.from_numpy((v - CY) / FY) * depth
    return torch.stack([x, y, depth], dim=1)


@pytest.fixture
def pointmaps(targets):
    noise = torch.randn(targets.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return targets + 0.2 * noise


@pytest.fixture
def mask():
    mask = torch.ones((2, *SIZE_HW), dtype=torch.bool)
    mask[0, 1:3, 2] = mask[1, 5, 4] = mask[1, 0, :3] = False
    return mask


def _normalised(pointmaps, targets, mask):
    """Both maps over the mean target depth of each sample, as numpy."""
    p, g, m = pointmaps.numpy().copy(), targets.numpy().copy(), mask.numpy()
    for index in range(len(p)):
        depth = g[index, 2][m[index]].mean()
        p[index] /= depth
        g[index] /= depth
    return p, g, m


def test_pointmap_l1_loss__matches_numpy(pointmaps, targets, mask):
    p, g, m = _normalised(pointmaps, targets, mask)
    expected = np.abs(p - g).mean(axis=1)[m].mean()
    assert pointmap_l1_loss(pointmaps, targets, mask).item() == pytest.approx(expected)


@pytest.mark.parametrize("num_scales", [1, 2, 4])
def test_multiscale_pointmap_l1_loss__matches_numpy(pointmaps, targets, mask, num_scales):
    p, g, m = _normalised(pointmaps, targets, mask)
    height, width = SIZE_HW
    scale_losses = []
    for factor in 2 ** np.arange(1, num_scales + 1):
        windows = []
        for sample in range(2):
            for top in range(0, height, factor):
                for left in range(0, width, factor):
                    window = np.s_[top : top + factor, left : left + factor]
                    counted = m[sample][window]
                    if counted.any():
                        mean_p = p[sample][:, *window][:, counted].mean(axis=1)
                        mean_g = g[sample][:, *window][:, counted].mean(axis=1)
                        windows.append(np.abs(mean_p - mean_g).mean())
        scale_losses.append(np.mean(windows))
    value = multiscale_pointmap_l1_loss(pointmaps, targets, mask, num_scales=num_scales)
    assert value.item() == pytest.approx(np.mean(scale_losses))


def test_multiscale_pointmap_l1_loss__noise_averages_out(targets):
    checkers = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64).repeat(3, 3)[:, :5]
    noisy = targets + 0.1 * checkers
    # Only the windows that overhang the odd border keep a part of it, and they hold two pixels that cancel too.
    assert multiscale_pointmap_l1_loss(noisy, targets).item() == pytest.approx(0, abs=1e-12)
    assert pointmap_l1_loss(noisy, targets).item() > 0.01


def test_shift_invariant_pointmap_l1_loss__matches_numpy(pointmaps, targets, mask):
    p, g, m = _normalised(pointmaps, targets, mask)
    errors = []
    for sample in range(2):
        pixels_p, pixels_g = p[sample][:, m[sample]], g[sample][:, m[sample]]
        centred = pixels_p - pixels_p.mean(1, keepdims=True) - pixels_g + pixels_g.mean(1, keepdims=True)
        errors.append(np.abs(centred).mean(axis=0))
    value = shift_invariant_pointmap_l1_loss(pointmaps, targets, mask)
    assert value.item() == pytest.approx(np.concatenate(errors).mean())


def test_shift_invariant_pointmap_l1_loss__does_not_see_a_shift(pointmaps, targets, mask):
    shift = torch.tensor([[0.3, -2.0, 5.0], [1.0, 0.0, -0.1]], dtype=torch.float64)[..., None, None]
    torch.testing.assert_close(
        shift_invariant_pointmap_l1_loss(pointmaps + shift, targets, mask),
        shift_invariant_pointmap_l1_loss(pointmaps, targets, mask),
    )


@pytest.mark.parametrize("variance_focus", [0.0, 0.5, 1.0])
def test_silog_loss__matches_numpy(pointmaps, targets, mask, variance_focus):
    roots = []
    for p, g, m in zip(pointmaps.numpy(), targets.numpy(), mask.numpy(), strict=True):
        d = np.log(g[2][m]) - np.log(p[2][m])
        roots.append(np.sqrt((d**2).mean() - variance_focus * d.mean() ** 2))
    value = silog_loss(pointmaps, targets, mask, variance_focus=variance_focus)
    assert value.item() == pytest.approx(np.mean(roots), abs=2e-6)


def test_silog_loss__full_variance_focus_does_not_see_a_factor(pointmaps, targets):
    torch.testing.assert_close(
        silog_loss(3 * pointmaps, targets, variance_focus=1), silog_loss(pointmaps, targets, variance_focus=1)
    )


@pytest.mark.parametrize("depth", [1e-3, 1e-4, 5e-5, 0.0, -1e-4, -0.5, -100.0])
def test_silog_loss__depth_below_the_floor_is_pushed_up(targets, depth):
    pointmaps = targets.clone()
    pointmaps[:, 2] = depth
    pointmaps.requires_grad_()
    value = silog_loss(pointmaps, targets)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(pointmaps.grad).all()
    assert (pointmaps.grad[:, 2] < 0).all()


def test_silog_loss__grows_as_depth_falls(targets):
    values = []
    for depth in (1.0, 1e-2, 1e-4, 0.0, -1e-4, -1.0):
        pointmaps = targets.clone()
        pointmaps[:, 2] = depth
        values.append(silog_loss(pointmaps, targets).item())
    assert values == sorted(values)


def test_silog_loss__gradient_below_the_floor_is_that_of_the_value(targets):
    pointmaps = (targets - 1.5).requires_grad_()
    assert (pointmaps[:, 2] < 0).any()
    assert gradcheck(lambda p: silog_loss(p, targets), (pointmaps,))


def test_silog_loss__common_factor_in_float32_is_finite():
    """The variance of equal numbers may round to below 0; its root must not become NaN."""
    targets = torch.full((1, 3, 7, 9), 1.7)
    pointmaps = (targets * 1.1).requires_grad_()
    value = silog_loss(pointmaps, targets, variance_focus=1)
    value.backward()
    assert value.item() == pytest.approx(0, abs=1e-6)
    assert torch.isfinite(pointmaps.grad).all()


@pytest.mark.parametrize("variance_focus", [-0.1, 1.1])
def test_silog_loss__variance_focus_out_of_range_is_refused(targets, variance_focus):
    with pytest.raises(InputError, match=r"variance_focus must be in \[0, 1\]"):
        silog_loss(targets, targets, variance_focus=variance_focus)


def test_intrinsics_consistency_loss__points_on_their_rays_are_zero(targets, intrinsics):
    assert intrinsics_consistency_loss(targets, intrinsics).item() == pytest.approx(0, abs=1e-12)
    assert intrinsics_consistency_loss(3 * targets, intrinsics[0]).item() == pytest.approx(0, abs=1e-12)


def test_intrinsics_consistency_loss__matches_numpy(pointmaps, intrinsics, mask):
    p, errors = pointmaps.numpy(), []
    for sample, v, u in np.argwhere(mask.numpy()):
        x, y, z = p[sample, :, v, u]
        errors += [abs(x - (u - CX) * z / FX), abs(y - (v - CY) * z / FY)]
    assert intrinsics_consistency_loss(pointmaps, intrinsics, mask).item() == pytest.approx(np.mean(errors))


def test_intrinsics_consistency_loss__gradient_is_that_of_the_value(pointmaps, intrinsics, mask):
    assert gradcheck(lambda p: intrinsics_consistency_loss(p, intrinsics, mask), (pointmaps.requires_grad_(),))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf")])
def test_intrinsics_consistency_loss__masked_pixels_have_no_influence(pointmaps, intrinsics, mask, garbage):
    expected = intrinsics_consistency_loss(pointmaps, intrinsics, mask)
    outside = ~mask[:, None].expand_as(pointmaps)
    broken = pointmaps.masked_fill(outside, garbage).requires_grad_()
    value = intrinsics_consistency_loss(broken, intrinsics, mask)
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert (broken.grad[outside] == 0).all()


def test_intrinsics_consistency_loss__nothing_valid_is_zero_and_differentiable(pointmaps, intrinsics, mask):
    pointmaps.requires_grad_()
    value = intrinsics_consistency_loss(pointmaps, intrinsics, mask & False)
    value.backward()
    assert value.item() == 0
    assert (pointmaps.grad == 0).all()


@pytest.mark.parametrize("shape", [(4, 4), (1, 3, 3), (2, 3), (2, 4, 4)])
def test_intrinsics_consistency_loss__matrices_of_another_shape_are_refused(targets, shape):
    with pytest.raises(InputError) as error:
        intrinsics_consistency_loss(targets, torch.ones(shape))
    assert str(shape) in str(error.value)
    assert "(2, 3, 6, 5)" in str(error.value)


@pytest.mark.parametrize("focal", [0.0, -7.0, float("nan")])
def test_intrinsics_consistency_loss__focal_length_that_is_not_positive_is_refused(targets, intrinsics, focal):
    intrinsics[1, 0, 0] = focal
    with pytest.raises(InputError, match="focal lengths > 0"):
        intrinsics_consistency_loss(targets, intrinsics)


def test_pointmap_normal_loss__matches_numpy(pointmaps, targets, mask):
    def normal(points, v, u):
        cross = np.cross(points[:, v, u + 1] - points[:, v, u], points[:, v + 1, u] - points[:, v, u])
        return cross / np.linalg.norm(cross)

    p, g, m, errors = pointmaps.numpy(), targets.numpy(), mask.numpy(), []
    for sample in range(2):
        for v in range(SIZE_HW[0] - 1):
            for u in range(SIZE_HW[1] - 1):
                if m[sample, v, u] and m[sample, v, u + 1] and m[sample, v + 1, u]:
                    predicted, true = normal(p[sample], v, u), normal(g[sample], v, u)
                    errors.append(1 - predicted @ true + np.abs(predicted - true).mean())
    assert pointmap_normal_loss(pointmaps, targets, mask).item() == pytest.approx(np.mean(errors))


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_pointmap_normal_loss__does_not_see_the_unit_or_a_shift(pointmaps, targets, unit):
    expected = pointmap_normal_loss(pointmaps, targets)
    torch.testing.assert_close(pointmap_normal_loss(unit * pointmaps, unit * targets), expected)
    torch.testing.assert_close(pointmap_normal_loss(pointmaps + 3, targets), expected)


def test_pointmap_normal_loss__plane_turned_by_a_right_angle():
    v, u = (torch.from_numpy(grid).double() for grid in np.mgrid[:4, :4])
    facing = torch.stack([u, v, torch.full_like(u, 5)])[None]  # normal (0, 0, 1)
    turned = torch.stack([torch.full_like(u, 5), v, 5 - u])[None]  # normal (1, 0, 0)
    expected = 1 + (1 + 0 + 1) / 3
    assert pointmap_normal_loss(turned, facing).item() == pytest.approx(expected)


@pytest.mark.parametrize("loss", [pointmap_l1_loss, multiscale_pointmap_l1_loss, shift_invariant_pointmap_l1_loss])
def test_pointmap_loss__is_relative_to_the_depth(loss, pointmaps, targets):
    torch.testing.assert_close(loss(50 * pointmaps, 50 * targets), loss(pointmaps, targets))


@pytest.mark.parametrize("loss", [pointmap_l1_loss, multiscale_pointmap_l1_loss, shift_invariant_pointmap_l1_loss])
def test_pointmap_loss__large_error_keeps_its_gradient(loss, pointmaps, targets):
    far = (1000 * pointmaps).requires_grad_()
    loss(far, targets).backward()
    assert far.grad.abs().sum().item() > 0.1


@pytest.mark.parametrize("mark", [0.0, -1.0, float("nan"), float("inf")])
def test_valid_points__points_that_do_not_exist(targets, mask, mark):
    marked = targets.masked_fill(~mask[:, None], mark)
    assert torch.equal(valid_points(marked), mask[:, None])


def test_scale_l1_loss__matches_numpy():
    scales, targets = torch.tensor([[1.0], [0.5], [-0.2]]), torch.tensor([0.8, 0.9, 1.1])
    assert scale_l1_loss(scales, targets).item() == pytest.approx(np.mean([0.2, 0.4, 1.3]))
    assert scale_l1_loss(scales.flatten(), targets[:, None]).item() == pytest.approx(np.mean([0.2, 0.4, 1.3]))


@pytest.mark.parametrize("mark", [0.0, -1.0, float("nan"), float("inf")])
def test_scale_l1_loss__samples_without_scale_do_not_count(mark):
    scales = torch.tensor([[1.0], [0.5]], requires_grad=True)
    value = scale_l1_loss(scales, torch.tensor([0.8, mark]))
    value.backward()
    assert value.item() == pytest.approx(0.2)
    assert scales.grad.tolist() == [[1.0], [0.0]]


def test_scale_l1_loss__nothing_valid_is_zero_and_differentiable():
    scales = torch.tensor([[1.0], [0.5]], requires_grad=True)
    value = scale_l1_loss(scales, torch.zeros(2))
    value.backward()
    assert value.item() == 0
    assert (scales.grad == 0).all()


@pytest.mark.parametrize("shapes", [((2, 1), (3, 1)), ((2, 2), (2, 1)), ((), ()), ((2,), (2, 1, 1))])
def test_scale_l1_loss__shapes_that_differ_are_refused(shapes):
    with pytest.raises(InputError) as error:
        scale_l1_loss(torch.ones(shapes[0]), torch.ones(shapes[1]))
    assert all(str(shape) in str(error.value) for shape in shapes)


def _published_total(pointmaps, targets, scales, target_scales, mask):
    """The published sums over coordinates of the terms without a clamp and at full resolution, in numpy."""
    p, g, m = _normalised(pointmaps, targets, mask)
    l1 = np.abs(p - g).sum(axis=1)[m].mean()
    v, u = np.mgrid[: SIZE_HW[0], : SIZE_HW[1]]
    x, y, z = np.moveaxis(pointmaps.numpy(), 1, 0)
    rays = np.abs(x - (u - CX) * z / FX) + np.abs(y - (v - CY) * z / FY)
    return 2 * l1 + rays[m].mean() + 4 * np.abs(scales.numpy().ravel() - target_scales.numpy().ravel()).mean()


def test_pointmap_recipe_loss__weights_of_the_docstring_restore_the_published_total(
    pointmaps, targets, intrinsics, mask
):
    scales, target_scales = torch.tensor([[0.9], [1.2]]), torch.tensor([[1.0], [1.1]])
    result = pointmap_recipe_loss(
        pointmaps,
        targets,
        scales=scales,
        target_scales=target_scales,
        intrinsics=intrinsics,
        mask=mask,
        l1_weight=6,
        intrinsics_weight=2,
        multiscale_l1_weight=0,
        shift_invariant_l1_weight=0,
        silog_weight=0,
        normal_weight=0,
    )
    expected = _published_total(pointmaps, targets, scales, target_scales, mask)
    assert set(result.terms) == {"l1", "intrinsics", "scale"}
    assert result.total.item() == pytest.approx(expected)


def test_pointmap_recipe_loss__terms_without_inputs_are_left_out(pointmaps, targets, intrinsics):
    maps_only = {"l1", "multiscale_l1", "shift_invariant_l1", "silog", "normal"}
    assert set(pointmap_recipe_loss(pointmaps, targets).terms) == maps_only
    assert set(pointmap_recipe_loss(pointmaps, targets, scales=torch.ones((2, 1))).terms) == maps_only
    everything = pointmap_recipe_loss(
        pointmaps, targets, scales=torch.ones((2, 1)), target_scales=torch.ones((2, 1)), intrinsics=intrinsics
    )
    assert dict(everything.weights) == {
        "l1": 2,
        "multiscale_l1": 1,
        "shift_invariant_l1": 1,
        "silog": 1,
        "normal": 2,
        "intrinsics": 1,
        "scale": 4,
    }


def test_pointmap_recipe_loss__perfect_prediction_is_zero(targets, intrinsics):
    scales = torch.ones((2, 1))
    result = pointmap_recipe_loss(targets, targets, scales=scales, target_scales=scales, intrinsics=intrinsics)
    assert result.total.item() == pytest.approx(0, abs=1e-6)


def test_pointmap_recipe_loss__soft_limit_damps_but_keeps_the_gradient(pointmaps, targets):
    far = (100 * pointmaps).requires_grad_()
    limited = pointmap_recipe_loss(far, targets)
    free = pointmap_recipe_loss(far, targets, soft_limit=None)
    weighted, value = 2 * limited.terms["l1"].item(), 2 * free.terms["l1"].item()
    assert value > 4
    assert weighted == pytest.approx(4 * (1 + np.log(value / 4)))
    (gradient,) = torch.autograd.grad(limited.terms["l1"], far)
    assert (gradient != 0).any()


def test_pointmap_recipe_loss__soft_limit_changes_nothing_below(pointmaps, targets):
    limited, free = (pointmap_recipe_loss(pointmaps, targets, soft_limit=limit) for limit in (4.0, None))
    assert torch.equal(limited.total, free.total)


def test_pointmap_recipe_loss__target_scales_without_scales_are_refused(targets):
    with pytest.raises(InputError, match="target_scales are given without scales"):
        pointmap_recipe_loss(targets, targets, target_scales=torch.ones((2, 1)))


@pytest.mark.parametrize("soft_limit", [0.0, -1.0, float("nan")])
def test_pointmap_recipe_loss__soft_limit_that_is_not_positive_is_refused(targets, soft_limit):
    with pytest.raises(InputError, match="soft_limit must be above 0"):
        pointmap_recipe_loss(targets, targets, soft_limit=soft_limit)


def test_multiscale_pointmap_l1_loss__no_scale_is_refused(targets):
    with pytest.raises(InputError, match="num_scales must be at least 1, got 0"):
        multiscale_pointmap_l1_loss(targets, targets, num_scales=0)
