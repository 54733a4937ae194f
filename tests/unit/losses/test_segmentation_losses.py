import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from sapiens2.errors import InputError
from sapiens2.losses import cross_entropy_loss, dice_loss, segmentation_recipe_loss

CLASS_WEIGHTS = (0.1, 1.0, 10.0, 2.0)

EVERY_LOSS = pytest.mark.parametrize(
    "loss",
    [
        cross_entropy_loss,
        lambda *args: cross_entropy_loss(*args, class_weights=CLASS_WEIGHTS),
        dice_loss,
        lambda *args: dice_loss(*args, exclude_background=False),
        lambda *args: segmentation_recipe_loss(*args).total,
    ],
    ids=["cross_entropy", "weighted_cross_entropy", "dice", "dice_with_background", "recipe"],
)


@pytest.fixture
def logits():
    return torch.randn((2, 4, 5, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def labels():
    labels = torch.randint(0, 4, (2, 5, 3), generator=torch.Generator().manual_seed(2))
    labels[0, :2] = 255
    labels[1][labels[1] == 3] = 1  # sample 1 lacks class 3
    return labels


def _softmax(logits):
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def _numpy_dice(logits, labels, smooth, first_class):
    """Loop over samples and classes, as the formula is written."""
    losses = []
    for probabilities, truth in zip(_softmax(logits), labels, strict=True):
        counted = truth != 255
        scores = []
        for index in range(first_class, len(probabilities)):
            g = (truth == index)[counted].astype(float)
            p = probabilities[index][counted]
            if g.any():
                scores.append((2 * (p * g).sum() + smooth) / ((p**2).sum() + (g**2).sum() + smooth))
        if scores:
            losses.append(1 - np.mean(scores))
    return np.mean(losses)


def test_cross_entropy_loss__matches_numpy(logits, labels):
    log_p = np.log(_softmax(logits.numpy()))
    losses, weights = [], []
    for sample, row, column in np.argwhere(labels.numpy() != 255):
        label = labels[sample, row, column].item()
        losses.append(-log_p[sample, label, row, column])
        weights.append(CLASS_WEIGHTS[label])
    assert cross_entropy_loss(logits, labels).item() == pytest.approx(np.mean(losses))
    expected = np.average(losses, weights=weights)
    assert cross_entropy_loss(logits, labels, class_weights=CLASS_WEIGHTS).item() == pytest.approx(expected)
    as_tensor = torch.tensor(CLASS_WEIGHTS)
    assert cross_entropy_loss(logits, labels, class_weights=as_tensor).item() == pytest.approx(expected)


@pytest.mark.parametrize("exclude_background", [True, False])
@pytest.mark.parametrize("smooth", [1e-3, 1.0])
def test_dice_loss__matches_numpy(logits, labels, exclude_background, smooth):
    expected = _numpy_dice(logits.numpy(), labels.numpy(), smooth, int(exclude_background))
    value = dice_loss(logits, labels, exclude_background=exclude_background, smooth=smooth)
    assert value.item() == pytest.approx(expected)


@EVERY_LOSS
def test_segmentation_loss__gradient_is_that_of_the_value(loss, logits, labels):
    assert gradcheck(lambda x: loss(x, labels), (logits.requires_grad_(),))


@EVERY_LOSS
def test_segmentation_loss__certain_and_right_is_zero(loss, labels):
    indices = labels.masked_fill(labels == 255, 0)
    certain = 100.0 * F.one_hot(indices, 4).permute(0, 3, 1, 2)
    assert loss(certain, labels).item() == pytest.approx(0, abs=1e-6)


@EVERY_LOSS
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_segmentation_loss__ignored_pixels_have_no_influence(loss, logits, labels, garbage):
    expected = loss(logits, labels)
    ignored = (labels == 255)[:, None].expand_as(logits)
    broken = logits.masked_fill(ignored, garbage).requires_grad_()
    value = loss(broken, labels)
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert (broken.grad[ignored] == 0).all()
    assert torch.isfinite(broken.grad).all()


@EVERY_LOSS
def test_segmentation_loss__ignored_pixels_do_not_dilute(loss, logits, labels):
    padded = F.pad(labels, (0, 6, 0, 2), value=255)
    torch.testing.assert_close(loss(F.pad(logits, (0, 6, 0, 2)), padded), loss(logits, labels))


@EVERY_LOSS
def test_segmentation_loss__ignored_sample_does_not_dilute(loss, logits, labels):
    labels[0] = 255
    torch.testing.assert_close(loss(logits, labels), loss(logits[1:], labels[1:]))


@EVERY_LOSS
@pytest.mark.parametrize("labels_hw", [(5, 3), (10, 7)])
def test_segmentation_loss__all_ignored_is_zero_and_differentiable(loss, logits, labels_hw):
    logits.requires_grad_()
    value = loss(logits, torch.full((2, *labels_hw), 255))
    value.backward()
    assert value.item() == 0
    assert (logits.grad == 0).all()


@EVERY_LOSS
def test_segmentation_loss__empty_batch_is_zero_and_differentiable(loss):
    logits = torch.zeros((0, 4, 5, 3), requires_grad=True)
    value = loss(logits, torch.zeros((0, 5, 3), dtype=torch.long))
    value.backward()
    assert value.item() == 0


@EVERY_LOSS
@pytest.mark.parametrize("labels_hw", [(10, 7), (3, 2)])
def test_segmentation_loss__logits_are_resized_to_the_labels(loss, logits, labels_hw):
    labels = torch.randint(0, 4, (2, *labels_hw), generator=torch.Generator().manual_seed(3))
    resized = F.interpolate(logits, size=labels_hw, mode="bilinear", align_corners=False)
    torch.testing.assert_close(loss(logits, labels), loss(resized, labels))


@EVERY_LOSS
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_segmentation_loss__any_integer_labels_do(loss, logits, labels, dtype):
    torch.testing.assert_close(loss(logits, labels.to(dtype)), loss(logits, labels))


@EVERY_LOSS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_segmentation_loss__computes_in_float32_for_half_precision(loss, logits, labels, dtype):
    logits = logits.to(dtype)
    value = loss(logits, labels)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(loss(logits.double(), labels).item(), rel=1e-5)


@EVERY_LOSS
def test_segmentation_loss__autocast_changes_nothing(loss, logits, labels):
    logits = logits.float()
    expected = loss(logits, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(loss(logits, labels), expected)


def test_segmentation_loss__other_ignore_index(logits, labels):
    moved = labels.masked_fill(labels == 255, -100)
    expected = segmentation_recipe_loss(logits, labels).total
    torch.testing.assert_close(segmentation_recipe_loss(logits, moved, ignore_index=-100).total, expected)


def test_cross_entropy_loss__scale_of_class_weights_cancels(logits, labels):
    tripled = [3 * weight for weight in CLASS_WEIGHTS]
    torch.testing.assert_close(
        cross_entropy_loss(logits, labels, class_weights=tripled),
        cross_entropy_loss(logits, labels, class_weights=CLASS_WEIGHTS),
    )


def test_cross_entropy_loss__only_classes_of_weight_zero_is_zero(logits):
    logits.requires_grad_()
    labels = torch.zeros((2, 5, 3), dtype=torch.long)
    value = cross_entropy_loss(logits, labels, class_weights=[0, 1, 1, 1])
    value.backward()
    assert value.item() == 0
    assert (logits.grad == 0).all()


def test_dice_loss__only_background_is_zero(logits):
    assert dice_loss(logits, torch.zeros((2, 5, 3), dtype=torch.long)).item() == 0


def test_segmentation_recipe_loss__adds_weighted_terms(logits, labels):
    result = segmentation_recipe_loss(
        logits, labels, class_weights=CLASS_WEIGHTS, cross_entropy_weight=2, dice_weight=0.5
    )
    cross_entropy = cross_entropy_loss(logits, labels, class_weights=CLASS_WEIGHTS)
    expected = 2 * cross_entropy + 0.5 * dice_loss(logits, labels)
    torch.testing.assert_close(result.total, expected)
    assert set(result.terms) == {"cross_entropy", "dice"}


@EVERY_LOSS
def test_segmentation_loss__labels_that_are_no_class_are_listed(loss, logits, labels):
    labels[0, 3, 1], labels[1, 0, 0], labels[1, 4, 2] = 7, -1, 7
    with pytest.raises(InputError, match="labels contain -1, 7; expected class indices from 0 to 3, or 255"):
        loss(logits, labels)


def test_cross_entropy_loss__long_lists_of_strange_labels_are_cut(logits):
    labels = torch.arange(30).reshape(2, 5, 3)
    with pytest.raises(InputError, match=r"labels contain 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, \.\.\.; expected"):
        cross_entropy_loss(logits, labels)


@EVERY_LOSS
@pytest.mark.parametrize("shape", [(2, 1, 5, 3), (3, 5, 3), (5, 3)])
def test_segmentation_loss__labels_of_another_shape_are_refused(loss, logits, shape):
    with pytest.raises(InputError) as error:
        loss(logits, torch.zeros(shape, dtype=torch.long))
    assert str(shape) in str(error.value)
    assert "(2, 4, 5, 3)" in str(error.value)


@EVERY_LOSS
def test_segmentation_loss__labels_that_are_not_integers_are_refused(loss, logits, labels):
    with pytest.raises(InputError, match=r"integer class indices, got torch.float32.*\.long\(\)"):
        loss(logits, labels.float())


@EVERY_LOSS
def test_segmentation_loss__one_class_is_refused(loss, labels):
    with pytest.raises(InputError, match=r"at least 2 classes.*\(2, 1, 5, 3\)"):
        loss(torch.zeros((2, 1, 5, 3)), torch.zeros_like(labels))


@pytest.mark.parametrize("weights", [[1.0, 2.0, 3.0], torch.ones((4, 1))])
def test_cross_entropy_loss__class_weights_of_another_number_are_refused(logits, labels, weights):
    with pytest.raises(InputError, match=r"class_weights have shape .* one weight for each of the 4 classes"):
        cross_entropy_loss(logits, labels, class_weights=weights)


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_cross_entropy_loss__class_weights_that_are_no_weights_are_refused(logits, labels, wrong):
    with pytest.raises(InputError, match="class_weights must be finite numbers >= 0"):
        cross_entropy_loss(logits, labels, class_weights=[1.0, 1.0, 1.0, wrong])
