"""The losses that transformers' own Sapiens2 models compute for ``labels``."""

import pytest
import torch
from transformers import Sapiens2Config, Sapiens2ForPoseEstimation, Sapiens2ForSemanticSegmentation

from sapiens2.losses import cross_entropy_loss, heatmap_mse_loss

TOLERANCE = 1e-6


def _config(num_labels):
    head = {
        "upsample_out_channels": [8, 8],
        "upsample_kernel_sizes": [4, 4],
        "conv_out_channels": [8],
        "conv_kernel_sizes": [1],
    }
    return Sapiens2Config(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_attention_heads=2,
        num_register_tokens=1,
        image_size=[48, 32],
        num_labels=num_labels,
        head_config=head,
    )


@pytest.fixture
def pixel_values():
    return torch.randn((2, 3, 48, 32), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def pose_model():
    torch.manual_seed(0)
    return Sapiens2ForPoseEstimation(_config(5)).eval()


@pytest.fixture
def segmentation_model():
    torch.manual_seed(0)
    return Sapiens2ForSemanticSegmentation(_config(4)).eval()


@torch.no_grad()
@pytest.mark.parametrize("weighted", [False, True])
def test_heatmap_mse_loss__equals_transformers(pose_model, pixel_values, weighted):
    generator = torch.Generator().manual_seed(2)
    labels = torch.rand((2, 5, 12, 8), generator=generator)
    weights = torch.rand((2, 5, 12, 8), generator=generator) if weighted else None
    outputs = pose_model(pixel_values, labels=labels, label_weights=weights)
    assert heatmap_mse_loss(outputs.heatmaps, labels, weights).item() == pytest.approx(
        outputs.loss.item(), abs=TOLERANCE
    )


@torch.no_grad()
def test_heatmap_mse_loss__per_keypoint_weights_equal_expanded_ones_in_transformers(pose_model, pixel_values):
    labels = torch.rand((2, 5, 12, 8), generator=torch.Generator().manual_seed(3))
    weights = torch.tensor([[1.0, 0, 1, 1, 0], [0, 0, 1, 0, 0]])
    expanded = weights[..., None, None].expand_as(labels)
    outputs = pose_model(pixel_values, labels=labels, label_weights=expanded)
    assert heatmap_mse_loss(outputs.heatmaps, labels, weights).item() == pytest.approx(
        outputs.loss.item(), abs=TOLERANCE
    )


@torch.no_grad()
@pytest.mark.parametrize("labels_hw", [(12, 8), (48, 32), (7, 5)])
def test_cross_entropy_loss__equals_transformers(segmentation_model, pixel_values, labels_hw):
    labels = torch.randint(0, 4, (2, *labels_hw), generator=torch.Generator().manual_seed(4))
    labels[0, :2] = 255
    outputs = segmentation_model(pixel_values, labels=labels)
    assert cross_entropy_loss(outputs.logits, labels).item() == pytest.approx(outputs.loss.item(), abs=TOLERANCE)
