import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from sapiens2.errors import InputError
from sapiens2.losses import heatmap_mse_loss, heatmap_ohkm_loss, pose_recipe_loss


@pytest.fixture
def heatmaps():
    return torch.randn((2, 5, 6, 4), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def targets():
    return torch.rand((2, 5, 6, 4), generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.fixture
def weights():
    weights = torch.rand((2, 5), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    weights[0, 1] = weights[1, 4] = 0
    return weights


EVERY_LOSS = pytest.mark.parametrize(
    "loss",
    [
        heatmap_mse_loss,
        lambda *args: heatmap_ohkm_loss(*args, top_k=3),
        lambda *args: pose_recipe_loss(*args).total,
        lambda *args: pose_recipe_loss(*args, reduction="visible").total,
    ],
    ids=["mse", "ohkm", "recipe_all", "recipe_visible"],
)


def test_heatmap_mse_loss__matches_numpy(heatmaps, targets, weights):
    error = (heatmaps.numpy() - targets.numpy()) ** 2
    assert heatmap_mse_loss(heatmaps, targets).item() == pytest.approx(error.mean())
    expected = np.average(error.mean(axis=(2, 3)), weights=weights.numpy())
    assert heatmap_mse_loss(heatmaps, targets, weights).item() == pytest.approx(expected)


@EVERY_LOSS
def test_heatmap_loss__shapes_of_weights_agree(loss, heatmaps, targets, weights):
    expected = loss(heatmaps, targets, weights)
    column = weights[..., None, None]
    torch.testing.assert_close(loss(heatmaps, targets, column), expected)
    torch.testing.assert_close(loss(heatmaps, targets, column.expand_as(heatmaps)), expected)
    visible = weights > 0
    torch.testing.assert_close(loss(heatmaps, targets, visible), loss(heatmaps, targets, visible.float()))


@EVERY_LOSS
def test_heatmap_loss__gradient_is_that_of_the_value(loss, heatmaps, targets, weights):
    assert gradcheck(lambda h: loss(h, targets, weights), (heatmaps.requires_grad_(),))


@EVERY_LOSS
def test_heatmap_loss__perfect_prediction_is_zero(loss, targets, weights):
    assert loss(targets, targets, weights).item() == 0


@EVERY_LOSS
def test_heatmap_loss__doubled_error_is_fourfold(loss, heatmaps, targets, weights):
    doubled = targets + 2 * (heatmaps - targets)
    torch.testing.assert_close(loss(doubled, targets, weights), 4 * loss(heatmaps, targets, weights))


@EVERY_LOSS
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_heatmap_loss__invisible_keypoints_have_no_influence(loss, heatmaps, targets, weights, garbage):
    expected = loss(heatmaps, targets, weights)
    hidden = (weights == 0)[..., None, None].expand_as(heatmaps)
    broken = heatmaps.masked_fill(hidden, garbage).requires_grad_()
    value = loss(broken, targets.masked_fill(hidden, garbage), weights)
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert (broken.grad[hidden] == 0).all()
    assert torch.isfinite(broken.grad).all()


@EVERY_LOSS
@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 1, 1), (2, 5, 6, 4)])
def test_heatmap_loss__all_invisible_is_zero_and_differentiable(loss, heatmaps, targets, shape):
    heatmaps.requires_grad_()
    value = loss(heatmaps, targets, torch.zeros(shape))
    value.backward()
    assert value.item() == 0
    assert (heatmaps.grad == 0).all()


@EVERY_LOSS
@pytest.mark.parametrize("target_hw", [(6, 4), (12, 8)])
def test_heatmap_loss__nobody_is_zero_and_differentiable(loss, target_hw):
    heatmaps = torch.zeros((0, 5, 6, 4), requires_grad=True)
    value = loss(heatmaps, torch.zeros((0, 5, *target_hw)), torch.zeros((0, 5)))
    value.backward()
    assert value.item() == 0


@EVERY_LOSS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_heatmap_loss__computes_in_float32_for_half_precision(loss, heatmaps, targets, weights, dtype):
    heatmaps, targets = (maps.to(dtype) for maps in (heatmaps, targets))
    value = loss(heatmaps, targets, weights.to(dtype))
    assert value.dtype == torch.float32
    expected = loss(heatmaps.double(), targets.double(), weights.to(dtype).double())
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)


def test_heatmap_mse_loss__scale_of_the_weights_cancels(heatmaps, targets, weights):
    torch.testing.assert_close(
        heatmap_mse_loss(heatmaps, targets, 7 * weights), heatmap_mse_loss(heatmaps, targets, weights)
    )


def test_heatmap_mse_loss__targets_of_another_size_keep_their_place():
    """UDP: coordinates scale by (size - 1), so a linear ramp over a large target is the same ramp over a small one."""

    def ramps(height, width):
        y, x = torch.meshgrid(torch.linspace(0, 1, height), torch.linspace(0, 1, width), indexing="ij")
        return torch.stack([x, y])[None].double()

    assert heatmap_mse_loss(ramps(6, 4), ramps(24, 16)).item() == pytest.approx(0, abs=1e-12)
    assert heatmap_mse_loss(ramps(6, 4), ramps(3, 2)).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("corner", [(0, 0), (0, 15), (23, 0), (23, 15)])
def test_heatmap_mse_loss__corner_of_a_larger_target_is_the_corner(corner):
    large, small = torch.zeros((1, 1, 24, 16)), torch.zeros((1, 1, 6, 4))
    large[0, 0, corner[0], corner[1]] = 1
    small[0, 0, 0 if corner[0] == 0 else 5, 0 if corner[1] == 0 else 3] = 1
    assert heatmap_mse_loss(small, large).item() == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 1, 1), (2, 5, 6, 4), (2, 5, 12, 8)])
def test_heatmap_mse_loss__weights_fit_heatmaps_or_larger_targets(heatmaps, shape):
    targets = torch.rand((2, 5, 12, 8), generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    torch.testing.assert_close(
        heatmap_mse_loss(heatmaps, targets, torch.full(shape, 0.5)), heatmap_mse_loss(heatmaps, targets)
    )


def test_heatmap_ohkm_loss__matches_numpy(heatmaps, targets, weights):
    error = ((heatmaps - targets) ** 2).mean(dim=(2, 3)).numpy() * weights.numpy()
    expected = np.sort(error, axis=1)[:, -2:].mean()
    assert heatmap_ohkm_loss(heatmaps, targets, weights, top_k=2).item() == pytest.approx(expected)


def test_heatmap_ohkm_loss__with_every_keypoint_is_the_mean(heatmaps, targets):
    torch.testing.assert_close(heatmap_ohkm_loss(heatmaps, targets, top_k=5), heatmap_mse_loss(heatmaps, targets))


def test_heatmap_ohkm_loss__few_visible_keypoints_are_not_diluted(heatmaps, targets):
    weights = torch.zeros((2, 5))
    weights[:, 2] = 1
    expected = heatmap_mse_loss(heatmaps[:, 2:3], targets[:, 2:3])
    torch.testing.assert_close(heatmap_ohkm_loss(heatmaps, targets, weights, top_k=4), expected)


def test_heatmap_ohkm_loss__perfect_visible_keypoint_goes_before_an_invisible_one(heatmaps, targets):
    weights = torch.zeros((2, 5))
    weights[:, 4] = 1
    heatmaps[:, 4] = targets[:, 4]
    heatmaps.requires_grad_()
    heatmap_ohkm_loss(heatmaps, targets, weights, top_k=1).backward()
    assert (heatmaps.grad == 0).all()


@pytest.mark.parametrize("top_k", [0, 6])
def test_heatmap_ohkm_loss__top_k_out_of_range_is_refused(heatmaps, targets, top_k):
    with pytest.raises(InputError, match=f"from 1 to the number of keypoints, 5; got {top_k}"):
        heatmap_ohkm_loss(heatmaps, targets, top_k=top_k)


def test_pose_recipe_loss__matches_numpy(heatmaps, targets, weights):
    error = (heatmaps.numpy() - targets.numpy()) ** 2 * weights.numpy()[..., None, None]
    assert pose_recipe_loss(heatmaps, targets, weights).total.item() == pytest.approx(10 * error.mean())
    result = pose_recipe_loss(heatmaps, targets, weights, reduction="visible", mse_weight=3)
    assert result.terms["mse"].item() == pytest.approx(heatmap_mse_loss(heatmaps, targets, weights).item())
    assert result.total.item() == pytest.approx(3 * result.terms["mse"].item())


def test_pose_recipe_loss__unknown_reduction_is_refused(heatmaps, targets):
    with pytest.raises(InputError, match=r"reduction must be one of \('all', 'visible'\), got 'mean'"):
        pose_recipe_loss(heatmaps, targets, reduction="mean")


@EVERY_LOSS
@pytest.mark.parametrize("shape", [(2, 4, 6, 4), (3, 5, 6, 4), (2, 5, 6)])
def test_heatmap_loss__targets_of_others_are_refused(loss, heatmaps, shape):
    with pytest.raises(InputError) as error:
        loss(heatmaps, torch.zeros(shape))
    assert str(shape) in str(error.value)


@EVERY_LOSS
@pytest.mark.parametrize("shape", [(5,), (2, 4), (2, 5, 1), (2, 5, 4, 6), (3, 5, 1, 1)])
def test_heatmap_loss__weights_that_do_not_fit_are_refused(loss, heatmaps, targets, shape):
    with pytest.raises(InputError) as error:
        loss(heatmaps, targets, torch.ones(shape))
    assert str(shape) in str(error.value)
    assert "(2, 5), (2, 5, 1, 1) or the full shape" in str(error.value)


@EVERY_LOSS
@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_heatmap_loss__weights_that_are_no_weights_are_refused(loss, heatmaps, targets, weights, wrong):
    weights[1, 2] = wrong
    with pytest.raises(InputError, match="weights must be finite numbers >= 0"):
        loss(heatmaps, targets, weights)


@EVERY_LOSS
@pytest.mark.parametrize("num_keypoints", [0, 3, 5])
def test_losses__nobody_on_both_sides_needs_no_number_of_keypoints(loss, num_keypoints):
    heatmaps = torch.zeros((0, 5, 6, 4), requires_grad=True)
    value = loss(heatmaps, torch.zeros((0, num_keypoints, 6, 4)), torch.zeros((0, num_keypoints)))
    assert value.item() == 0
    value.backward()
    assert heatmaps.grad is not None


@EVERY_LOSS
def test_losses__nobody_on_one_side_only_is_refused(loss, heatmaps):
    with pytest.raises(InputError, match="number of people"):
        loss(heatmaps, torch.zeros((0, 0, 6, 4)))
