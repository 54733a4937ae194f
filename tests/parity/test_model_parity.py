"""Our models against transformers' own classes on the same random weights, every option and both loading directions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.sapiens2 import modeling_sapiens2 as upstream
from transformers.models.sapiens2.configuration_sapiens2 import Sapiens2Config as UpstreamConfig

import sapiens2.models as ours
import tiny_models as tiny

TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 8e-3, torch.float16: 1e-3}  # relative to the largest value

TRUNK_VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "ungated": {"use_gated_mlp": False},
    "no_biases": {f"{name}_bias": False for name in ("query", "key", "value", "proj", "mlp")},
    "no_registers": {"num_register_tokens": 0},
    "rectangular_patches": {"patch_size": [16, 8]},
    "kv_heads_per_layer": {"num_key_value_heads_per_layer": [4, 1, 2, 2]},
    "no_qk_norm": {"use_qk_norm": False},
    "gelu": {"hidden_act": "gelu"},
    "rope_theta": {"rope_theta": 33.0},
    "large_eps": {"rms_norm_eps": 1e-2},
}
HEAD_VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("Sapiens2ForSemanticSegmentation", {"upsample_out_channels": [8, 8, 6, 6, 4], "conv_out_channels": [4, 4, 4]}),
    ("Sapiens2ForSemanticSegmentation", {"upsample_out_channels": [8], "conv_out_channels": []}),
    ("Sapiens2ForSemanticSegmentation", tiny.SHUFFLE_HEAD),
    ("Sapiens2ForPoseEstimation", {"upsample_out_channels": [8, 8, 6], "conv_out_channels": [4, 4, 4, 4]}),
    ("Sapiens2ForPoseEstimation", {"upsample_out_channels": [8], "conv_out_channels": [5], "conv_kernel_sizes": [3]}),
    ("Sapiens2ForPoseEstimation", tiny.SHUFFLE_HEAD),
    ("Sapiens2ForNormalEstimation", tiny.DECONV_HEAD),
    (
        "Sapiens2ForNormalEstimation",
        {**tiny.SHUFFLE_HEAD, "conv_out_channels": [5, 5, 4, 4], "conv_kernel_sizes": [3, 1, 5, 3]},
    ),
    (
        "Sapiens2ForPointmapEstimation",
        {**tiny.SHUFFLE_HEAD, "scale_conv_out_channels": [9], "scale_final_hidden_sizes": [7, 5]},
    ),
    ("Sapiens2ForPointmapEstimation", tiny.SHUFFLE_HEAD),  # no scale branch
    (
        "Sapiens2ForPointmapEstimation",
        {**tiny.SHUFFLE_HEAD, **tiny.SCALE_BRANCH, "scale_conv_kernel_sizes": [3, 5]},
    ),
    ("Sapiens2ForPoseEstimation", {**tiny.DECONV_HEAD, "upsample_kernel_sizes": [2, 3]}),
    ("Sapiens2ForPoseEstimation", {**tiny.DECONV_HEAD, "upsample_kernel_sizes": [5, 6], "conv_kernel_sizes": [2, 3]}),
    ("Sapiens2ForImageMatting", {**tiny.SHUFFLE_HEAD, "upsample_out_channels": [9], "upsample_kernel_sizes": [5]}),
]


def pair(class_name: str, attention: str = "eager", **changes: Any) -> tuple[Any, Any]:
    """Upstream's model and ours with equal weights."""
    fields = tiny.fields_of(class_name, **changes)
    torch.manual_seed(0)
    theirs = getattr(upstream, class_name)(UpstreamConfig(**fields, attn_implementation=attention))
    tiny.randomised(theirs).eval()
    mine = getattr(ours, class_name)(ours.Sapiens2Config(**fields, attn_implementation=attention)).eval()
    mine.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, mine


def tensors_of(output: Any) -> list[Tensor]:
    """All tensors of an output or tuple, in order."""
    found: list[Tensor] = []
    for value in output.to_tuple() if hasattr(output, "to_tuple") else output:
        found += [value] if isinstance(value, Tensor) else [tensor for tensor in value if tensor is not None]
    return found


def assert_equal_outputs(expected: Any, actual: Any, dtype: torch.dtype = torch.float32) -> None:
    left, right = tensors_of(expected), tensors_of(actual)
    assert len(left) == len(right)
    for theirs, mine in zip(left, right, strict=True):
        assert theirs.shape == mine.shape
        assert theirs.dtype == mine.dtype
        scale = theirs.abs().max().clamp_min(1e-6)
        assert (theirs.float() - mine.float()).abs().max() / scale <= TOLERANCE[dtype]


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("variant", TRUNK_VARIANTS)
@pytest.mark.parametrize("class_name", tiny.UPSTREAM_CLASSES)
@torch.no_grad()
def test_forward__equals_upstream(class_name: str, variant: str, attention: str) -> None:
    theirs, mine = pair(class_name, attention, **TRUNK_VARIANTS[variant])
    options = {"output_hidden_states": True, "output_attentions": attention == "eager"}
    x = tiny.pixels()
    expected, actual = theirs(x, **options), mine(x, **options)
    assert list(expected.keys()) == list(actual.keys())
    assert_equal_outputs(expected, actual)


@pytest.mark.parametrize(("class_name", "head"), HEAD_VARIANTS)
@torch.no_grad()
def test_forward__heads_of_other_depths(class_name: str, head: dict[str, Any]) -> None:
    theirs, mine = pair(class_name, head_config=head)
    assert_equal_outputs(theirs(tiny.pixels()), mine(tiny.pixels()))


@pytest.mark.parametrize("class_name", tiny.UPSTREAM_CLASSES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"output_hidden_states": True},
        {"output_attentions": True},
        {"output_hidden_states": True, "output_attentions": True},
        {"output_hidden_states": [1, -1]},
        {"output_hidden_states": 2},
    ],
    ids=str,
)
@torch.no_grad()
def test_forward__tuple_layout(class_name: str, options: dict[str, Any]) -> None:
    theirs, mine = pair(class_name)
    x = tiny.pixels()
    expected, actual = theirs(x, return_dict=False, **options), mine(x, return_dict=False, **options)
    assert isinstance(actual, tuple)
    # upstream's backbone gives a list where hidden states are chosen by index
    assert [isinstance(value, Tensor) for value in expected] == [isinstance(value, Tensor) for value in actual]
    for left, right in zip(expected, actual, strict=True):
        if not isinstance(left, Tensor):
            assert [value is None for value in left] == [value is None for value in right]
    assert_equal_outputs(expected, actual)


@pytest.mark.parametrize("class_name", tiny.UPSTREAM_CLASSES)
@torch.no_grad()
def test_forward__return_dict_of_the_configuration(class_name: str) -> None:
    """``return_dict=False`` in the configuration crashes upstream; ours gives the tuple of the argument."""
    _, mine = pair(class_name, return_dict=False)
    output = mine(tiny.pixels())
    assert isinstance(output, tuple)
    assert_equal_outputs(mine(tiny.pixels(), return_dict=True), output)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("class_name", tiny.UPSTREAM_CLASSES)
@torch.no_grad()
def test_forward__half_precision_takes_float_pixels(class_name: str, dtype: torch.dtype, tmp_path: Any) -> None:
    pair(class_name)[0].save_pretrained(tmp_path)
    # loaded in half precision, not cast: a cast would round upstream's table of frequencies
    theirs = getattr(upstream, class_name).from_pretrained(tmp_path, dtype=dtype)
    mine = getattr(ours, class_name).from_pretrained(tmp_path, dtype=dtype)
    assert_equal_outputs(theirs(tiny.pixels()), mine(tiny.pixels()), dtype)
    assert_equal_outputs(mine(tiny.pixels()), mine.float().to(dtype)(tiny.pixels()), dtype)


@pytest.mark.parametrize("size_hw", [(32, 128), (160, 48), (96, 64)])
@torch.no_grad()
def test_forward__other_image_sizes(size_hw: tuple[int, int]) -> None:
    theirs, mine = pair("Sapiens2ForSemanticSegmentation")
    x = tiny.pixels(1, size_hw)
    assert_equal_outputs(theirs(x), mine(x))


@torch.no_grad()
def test_forward__masked_positions() -> None:
    theirs, mine = pair("Sapiens2Model", use_mask_token=True)
    mask = torch.rand(2, 24, generator=torch.Generator().manual_seed(0)) < 0.4
    x = tiny.pixels()
    assert_equal_outputs(theirs(x, bool_masked_pos=mask), mine(x, bool_masked_pos=mask))
    assert not torch.equal(mine(x).pooler_output, mine(x, bool_masked_pos=mask).pooler_output)


@pytest.mark.parametrize(
    "changes",
    [
        {"out_indices": [-1]},
        {"out_indices": [0, 4]},
        {"out_indices": None, "out_features": ["stem", "stage3"]},
        {"reshape_hidden_states": False},
        {"normalize_backbone_outputs": False},
        {"return_class_token": True},
    ],
    ids=str,
)
@torch.no_grad()
def test_backbone__options(changes: dict[str, Any]) -> None:
    theirs, mine = pair("Sapiens2Backbone", **changes)
    x = tiny.pixels()
    expected, actual = theirs(x), mine(x)
    assert list(expected.keys()) == list(actual.keys())
    assert_equal_outputs(expected, actual)
    assert theirs.channels == mine.channels
    assert (theirs.out_features, theirs.out_indices) == (mine.out_features, mine.out_indices)
    assert_equal_outputs(theirs(x, output_hidden_states=True), mine(x, output_hidden_states=True))


@torch.no_grad()
def test_pose__flip_pairs() -> None:
    theirs, mine = pair("Sapiens2ForPoseEstimation")
    pairs = torch.tensor([[0, 3], [1, 2]])
    expected = theirs(tiny.pixels(), flip_pairs=pairs)
    assert_equal_outputs(expected, mine(tiny.pixels(), flip_pairs=pairs))
    assert_equal_outputs(expected, mine(tiny.pixels(), flip_pairs=pairs.tolist()))


@torch.no_grad()
def test_losses__pose_and_segmentation_equal_upstream() -> None:
    theirs, mine = pair("Sapiens2ForPoseEstimation")
    maps = torch.rand(theirs(tiny.pixels()).heatmaps.shape)
    weights = (torch.rand(maps.shape) > 0.5).float()
    for options in ({"labels": maps}, {"labels": maps, "label_weights": weights}):
        torch.testing.assert_close(mine(tiny.pixels(), **options).loss, theirs(tiny.pixels(), **options).loss)
    theirs, mine = pair("Sapiens2ForSemanticSegmentation")
    labels = torch.randint(0, 7, (2, 96, 64))
    labels[:, :20] = 255
    torch.testing.assert_close(mine(tiny.pixels(), labels=labels).loss, theirs(tiny.pixels(), labels=labels).loss)


SAVED = [(name, TRUNK_VARIANTS[variant]) for name in tiny.UPSTREAM_CLASSES for variant in ("default", "no_biases")]
SAVED += [("Sapiens2ForPoseEstimation", {"use_mask_token": True}), ("Sapiens2Model", {"use_mask_token": True})]
SAVED += [(name, {"head_config": head}) for name, head in HEAD_VARIANTS]


@pytest.mark.parametrize(("class_name", "changes"), SAVED)
def test_checkpoints__both_directions(class_name: str, changes: dict[str, Any], tmp_path: Any) -> None:
    theirs, mine = pair(class_name, **changes)
    theirs.save_pretrained(tmp_path / "theirs")
    reloaded = getattr(ours, class_name).from_pretrained(tmp_path / "theirs")
    mine.save_pretrained(tmp_path / "mine")
    there, info = getattr(upstream, class_name).from_pretrained(tmp_path / "mine", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(tensor, reloaded.state_dict()[name]), name
        assert torch.equal(tensor, there.state_dict()[name]), name


@pytest.mark.parametrize("class_name", tiny.UPSTREAM_CLASSES)
def test_checkpoints__ungated_feed_forward(class_name: str, tmp_path: Any) -> None:
    """Upstream cannot read its own ungated files; we read them, and it reads ours."""
    theirs, mine = pair(class_name, use_gated_mlp=False)
    theirs.save_pretrained(tmp_path / "theirs")
    reloaded = getattr(ours, class_name).from_pretrained(tmp_path / "theirs")
    mine.save_pretrained(tmp_path / "mine")
    there, info = getattr(upstream, class_name).from_pretrained(tmp_path / "mine", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(tensor, reloaded.state_dict()[name]), name
        assert torch.equal(tensor, there.state_dict()[name]), name


def test_checkpoints__sharded(tmp_path: Any) -> None:
    theirs, mine = pair("Sapiens2ForPoseEstimation")
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="100KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 2
    reloaded = ours.Sapiens2ForPoseEstimation.from_pretrained(tmp_path / "theirs")
    mine.save_pretrained(tmp_path / "mine", max_shard_size="100KB")
    there = upstream.Sapiens2ForPoseEstimation.from_pretrained(tmp_path / "mine")
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(tensor, reloaded.state_dict()[name]), name
        assert torch.equal(tensor, there.state_dict()[name]), name


@pytest.mark.parametrize("class_name", tiny.UPSTREAM_CLASSES)
def test_parameters__same_names_and_count(class_name: str) -> None:
    theirs, mine = pair(class_name)
    assert [name for name, _ in theirs.named_parameters()] != []
    assert {name for name, _ in theirs.named_parameters()} == {name for name, _ in mine.named_parameters()}


def test_initialisation__same_spread_as_upstream() -> None:
    fields = tiny.fields_of("Sapiens2ForPointmapEstimation", hidden_size=128, intermediate_size=512)
    torch.manual_seed(0)
    theirs = upstream.Sapiens2ForPointmapEstimation(UpstreamConfig(**fields)).state_dict()
    mine = ours.Sapiens2ForPointmapEstimation(ours.Sapiens2Config(**fields)).state_dict()
    for name, tensor in theirs.items():
        if tensor.numel() > 1000:
            assert mine[name].std() == pytest.approx(tensor.std().item(), rel=0.1), name
        elif name.endswith("bias") or "norm" in name or "lambda1" in name:
            assert torch.equal(mine[name], tensor), name
