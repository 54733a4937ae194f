"""Laws of the models: shapes, gradients, batches, precision, compilation, export, and errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sapiens2.models as models
import tiny_models as tiny
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.models.pose import flip_back
from sapiens2.processing import Sapiens2ImageProcessor


def build(class_name: str, seed: int = 0, **changes: Any) -> Any:
    torch.manual_seed(seed)
    config = models.Sapiens2Config(**tiny.fields_of(class_name, **changes))
    return tiny.randomised(getattr(models, class_name)(config)).eval()


def maps_of(class_name: str, output: Any) -> Tensor:
    maps: Tensor = output[tiny.OUTPUT_FIELD[class_name]]
    return maps


@pytest.mark.parametrize("class_name", tiny.TASK_CLASSES)
def test_training_step__every_parameter_gets_a_gradient(class_name: str) -> None:
    model = build(class_name, pos_embed_rescale=None).train()
    labels = tiny.labels_of(class_name, model(tiny.pixels()))
    loss = model(tiny.pixels(), **labels).loss
    assert loss.ndim == 0
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        # a constant is removed by the norm that follows: biases before instance norm have no effect
        if not name.endswith(("convolution.bias", "k_proj.bias")):
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("class_name", tiny.TASK_CLASSES)
def test_training_step__overfits(class_name: str) -> None:
    model = build(class_name, pos_embed_rescale=None).train()
    labels = tiny.labels_of(class_name, model(tiny.pixels()))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        loss = model(tiny.pixels(), **labels).loss
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("class_name", tiny.TASK_CLASSES)
def test_gradient_checkpointing__same_loss_and_gradients(class_name: str) -> None:
    plain = build(class_name, pos_embed_rescale=None).train()
    checkpointed = build(class_name, pos_embed_rescale=None).train()
    checkpointed.activation_checkpointing_enable()
    assert any(getattr(module, "gradient_checkpointing", False) for module in checkpointed.modules())
    labels = tiny.labels_of(class_name, plain(tiny.pixels()))
    for model in (plain, checkpointed):
        model(tiny.pixels(), **labels).loss.backward()
    for (name, left), right in zip(plain.named_parameters(), checkpointed.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad, msg=name)


@pytest.mark.parametrize("class_name", tiny.TASK_CLASSES)
@torch.no_grad()
def test_forward__batch_equals_singles(class_name: str) -> None:
    model = build(class_name)
    x = tiny.pixels(3)
    together = maps_of(class_name, model(x))
    alone = torch.cat([maps_of(class_name, model(x[i : i + 1])) for i in range(3)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("class_name", tiny.HEADS)
@torch.no_grad()
def test_forward__nobody_is_no_error(class_name: str, attention: str) -> None:
    output = build(class_name, attn_implementation=attention)(tiny.pixels(0))
    first = output.to_tuple()[0]
    assert (first[0] if isinstance(first, tuple) else first).shape[0] == 0


def test_pose_loss__nobody_is_zero_with_gradient() -> None:
    model = build("Sapiens2ForPoseEstimation")
    empty = model(tiny.pixels(0)).heatmaps
    loss = model(tiny.pixels(0), labels=empty.detach(), label_weights=torch.ones(0, 5)).loss
    loss.backward()
    assert loss.item() == 0


@torch.no_grad()
def test_train_mode__rescale_augmentation_is_the_only_randomness() -> None:
    random = build("Sapiens2Model", pos_embed_rescale=2.0).train()
    still = build("Sapiens2Model", pos_embed_rescale=None).train()
    x = tiny.pixels()
    assert not torch.equal(random(x).pooler_output, random(x).pooler_output)
    assert torch.equal(still(x).pooler_output, still(x).pooler_output)
    assert torch.equal(random.eval()(x).pooler_output, still.eval()(x).pooler_output)


@pytest.mark.parametrize("name", ["pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"])
@torch.no_grad()
def test_train_mode__each_coordinate_augmentation_acts(name: str) -> None:
    fields = {"pos_embed_shift": None, "pos_embed_jitter": None, "pos_embed_rescale": None, name: 1.5}
    model = build("Sapiens2Model", **fields)
    still = model(tiny.pixels()).pooler_output
    moved = model.train()(tiny.pixels()).pooler_output
    assert torch.isfinite(moved).all()
    assert not torch.equal(still, moved)


@torch.no_grad()
def test_drop_path__drops_whole_samples_in_training_only() -> None:
    model = build("Sapiens2Model", drop_path_rate=0.9, pos_embed_rescale=None)
    still = model(tiny.pixels()).last_hidden_state
    assert torch.equal(still, model(tiny.pixels()).last_hidden_state)
    torch.manual_seed(0)
    assert not torch.equal(still, model.train()(tiny.pixels()).last_hidden_state)


@torch.no_grad()
def test_rope__patch_tokens_turn_and_prefix_does_not() -> None:
    from sapiens2.models.layers.rope import rotate

    model = build("Sapiens2Model")
    tables = model.rope_embeddings((6, 4), like=torch.zeros(1))
    states = torch.randn(1, 2, 33, 16)
    turned = rotate(states, tables)
    assert torch.equal(turned[:, :, :9], states[:, :, :9])
    torch.testing.assert_close(turned.norm(dim=-1), states.norm(dim=-1))
    query, key = torch.randn(16), torch.randn(16)
    scores = (rotate(query.expand(1, 1, 33, 16), tables) @ rotate(key.expand(1, 1, 33, 16), tables).mT)[0, 0, 9:, 9:]
    grid = scores.view(6, 4, 6, 4)
    # the score depends on the offset between patches alone
    torch.testing.assert_close(grid[0, 0, 2, 1], grid[3, 2, 5, 3])


@torch.no_grad()
def test_rope__bfloat16_tables_as_the_original_computes_them() -> None:
    exact = build("Sapiens2Model")
    rounded = build("Sapiens2Model", rope_table_dtype="bfloat16")
    cosines, sines = rounded.rope_embeddings((64, 48), like=torch.zeros(1))
    assert cosines.dtype == torch.bfloat16
    steps = torch.arange(4, dtype=torch.bfloat16)
    periods = 100.0 ** (2 * steps / 8)
    rows = 2.0 * (torch.arange(0.5, 64, dtype=torch.bfloat16) / 64) - 1.0
    angles = 2 * torch.pi * rows[:, None] / periods
    assert torch.equal(sines[9:].view(64, 48, 8)[:, 0, :4], angles.sin())
    difference = (exact(tiny.pixels()).last_hidden_state - rounded(tiny.pixels()).last_hidden_state).abs().max()
    assert 1e-4 < difference < 0.5
    assert rounded(tiny.pixels()).last_hidden_state.dtype == torch.float32


@torch.no_grad()
def test_half_precision__cast_keeps_rope_tables_exact() -> None:
    model = build("Sapiens2Model").to(torch.bfloat16)
    cosines, _ = model.rope_embeddings((64, 48), like=torch.zeros(1))
    expected, _ = build("Sapiens2Model").rope_embeddings((64, 48), like=torch.zeros(1))
    assert torch.equal(cosines, expected)


@torch.no_grad()
def test_backbone__normalises_only_what_it_returns() -> None:
    model = build("Sapiens2Backbone")
    seen: list[torch.Size] = []
    model.norm.register_forward_hook(lambda _module, args, _output: seen.append(args[0].shape))
    model(tiny.pixels())
    assert seen == [torch.Size([2, 24, 64])] * 3  # three stages asked for, patches alone
    seen.clear()
    model(tiny.pixels(), return_class_token=True)
    assert len(seen) == 6


@torch.no_grad()
def test_backbone__class_token_as_argument_and_field() -> None:
    by_argument = build("Sapiens2Backbone")(tiny.pixels(), return_class_token=True)
    by_field = build("Sapiens2Backbone", return_class_token=True)(tiny.pixels())
    assert len(by_argument.cls_tokens) == 3
    for left, right in zip(by_argument.cls_tokens, by_field.cls_tokens, strict=True):
        assert torch.equal(left, right)
    assert (
        build("Sapiens2Backbone", return_class_token=True)(tiny.pixels(), return_class_token=False).cls_tokens is None
    )


@torch.no_grad()
def test_backbone__hidden_states_only_when_asked_for() -> None:
    model = build("Sapiens2Backbone")
    assert model(tiny.pixels()).hidden_states is None
    assert len(model(tiny.pixels(), output_hidden_states=True).hidden_states) == 5


def test_flip_back__mirrors_and_swaps() -> None:
    heatmaps = torch.arange(2 * 5 * 3 * 4, dtype=torch.float32).view(2, 5, 3, 4)
    turned = flip_back(heatmaps, [[0, 3], [1, 2]])
    for index, source in enumerate([3, 2, 1, 0, 4]):
        assert torch.equal(turned[:, index], heatmaps[:, source].flip(-1))
    assert torch.equal(flip_back(turned, [[0, 3], [1, 2]]), heatmaps)
    assert torch.equal(flip_back(heatmaps, []), heatmaps.flip(-1))
    assert torch.equal(flip_back(heatmaps, torch.empty(0, 2, dtype=torch.long)), heatmaps.flip(-1))


@pytest.mark.parametrize("pairs", [[[0, 5]], [[-1, 2]], torch.tensor([[0, 99]])])
def test_flip_back__keypoint_that_does_not_exist(pairs: Any) -> None:
    with pytest.raises(InputError, match=r"flip_pairs name keypoints .* 0 to 4"):
        flip_back(torch.zeros(1, 5, 3, 4), pairs)


@pytest.mark.parametrize("pairs", [[0, 1], [[0, 1, 2]]])
def test_flip_back__not_pairs(pairs: Any) -> None:
    with pytest.raises(InputError, match=r"flip_pairs must be \(pairs, 2\)"):
        flip_back(torch.zeros(1, 5, 3, 4), pairs)


@pytest.mark.parametrize(
    ("pixel_values", "message"),
    [
        (torch.zeros(1, 3, 70, 48), "70x48: the height must be a multiple of 16"),
        (torch.zeros(1, 3, 64, 50), "64x50: the width must be a multiple of 16"),
        (torch.zeros(1, 3, 0, 48), "0x48: the height must be a multiple of 16"),
        (torch.zeros(1, 3, 8, 16), "8x16: the height"),
        (torch.zeros(1, 1, 64, 48), r"\(batch, 3, height, width\), got \(1, 1, 64, 48\)"),
        (torch.zeros(3, 64, 48), r"\(batch, 3, height, width\), got \(3, 64, 48\)"),
        (torch.zeros(1, 3, 64, 48, dtype=torch.uint8), "floating point, got torch.uint8"),
    ],
)
def test_forward__pixels_that_do_not_fit(pixel_values: Tensor, message: str) -> None:
    for class_name in ("Sapiens2Model", "Sapiens2Backbone", "Sapiens2ForPoseEstimation"):
        with pytest.raises(InputError, match=message):
            build(class_name)(pixel_values)


def test_forward__masks_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="use_mask_token=True"):
        build("Sapiens2Model")(tiny.pixels(), bool_masked_pos=torch.zeros(2, 24, dtype=torch.bool))
    with pytest.raises(InputError, match=r"\(2, 24\), got \(2, 23\)"):
        build("Sapiens2Model", use_mask_token=True)(tiny.pixels(), bool_masked_pos=torch.zeros(2, 23, dtype=torch.bool))


@torch.no_grad()
def test_pointmap__scale_at_another_image_size() -> None:
    model = build("Sapiens2ForPointmapEstimation")
    output = model(tiny.pixels(2, (160, 128)))
    assert output.scales.shape == (2, 1)
    assert torch.isfinite(output.scales).all()


def test_pointmap__scale_input_size_that_does_not_fit() -> None:
    head = {**tiny.SHUFFLE_HEAD, **tiny.SCALE_BRANCH, "scale_final_input_size": 17}
    with pytest.raises(ConfigurationError, match="scale_final_input_size=17"):
        build("Sapiens2ForPointmapEstimation", head_config=head)


@pytest.mark.parametrize("class_name", tiny.HEADS)
@torch.no_grad()
def test_compile__fullgraph(class_name: str) -> None:
    model = build(class_name)
    expected = model(tiny.pixels(), return_dict=False)
    torch._dynamo.reset()
    actual = torch.compile(model, fullgraph=True, backend="eager")(tiny.pixels(), return_dict=False)
    for left, right in zip(expected, actual, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("class_name", tiny.HEADS)
@torch.no_grad()
def test_export__dynamic_batch(class_name: str) -> None:
    model = build(class_name)
    batch = torch.export.Dim("batch", min=1, max=16)
    program = torch.export.export(model, (tiny.pixels(2),), dynamic_shapes=({0: batch},))
    for size in (1, 3):
        expected, actual = model(tiny.pixels(size)), program.module()(tiny.pixels(size))
        torch.testing.assert_close(expected.to_tuple()[0], actual.to_tuple()[0], rtol=1e-4, atol=1e-5)


FOUR_K = {"use_tokenizer": True, "num_tokenizer_layers": 2, "tokenizer_window_size": 2, "image_size": [192, 128]}


@torch.no_grad()
def test_tokenizer__windows_become_tokens() -> None:
    model = build("Sapiens2Model", **FOUR_K)
    x = tiny.pixels(2, (192, 128))
    output = model(x, output_hidden_states=True)
    assert output.last_hidden_state.shape == (2, 9 + 6 * 4, 64)
    assert len(output.hidden_states) == 5  # the trunk's; the tokenizer's layers are not among them
    # a token knows its own window before the trunk mixes them
    changed = x.clone()
    changed[:, :, :32, :32] += 1
    moved = (model(changed, output_hidden_states=True).hidden_states[0] - output.hidden_states[0]).abs().amax((0, 2))
    assert torch.nonzero(moved).flatten().tolist() == [9]


@torch.no_grad()
def test_tokenizer__chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from sapiens2.models.layers import window_tokenizer

    model = build("Sapiens2Model", **FOUR_K)
    x = tiny.pixels(3, (192, 128))
    whole = model(x).last_hidden_state
    monkeypatch.setattr(window_tokenizer, "WINDOWS_PER_CHUNK", 7)
    torch.testing.assert_close(model(x).last_hidden_state, whole)


@pytest.mark.parametrize("class_name", tiny.HEADS)
def test_tokenizer__every_class_trains_and_saves(class_name: str, tmp_path: Any) -> None:
    model = build(class_name, **FOUR_K, pos_embed_rescale=None)
    x = tiny.pixels(2, (192, 128))
    if class_name in tiny.OUTPUT_FIELD:
        model.train()
        model(x, **tiny.labels_of(class_name, model(x))).loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        model.eval()
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


@torch.no_grad()
def test_tokenizer__exports_with_dynamic_batch() -> None:
    model = build("Sapiens2ForPoseEstimation", **FOUR_K)
    x = tiny.pixels(2, (192, 128))
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=16)},))
    actual = program.module()(x[:1]).heatmaps
    torch.testing.assert_close(model(x[:1]).heatmaps, actual, rtol=1e-4, atol=1e-5)


def test_tokenizer__window_that_does_not_fit() -> None:
    with pytest.raises(InputError, match="multiple of 32"):
        build("Sapiens2Model", **FOUR_K)(tiny.pixels(1, (176, 128)))


@torch.no_grad()
def test_albedo__norm_keeps_parameters() -> None:
    model = build("Sapiens2ForAlbedoEstimation")
    norms = [name for name, _ in model.named_parameters() if name.endswith("norm.weight") and "decode_head" in name]
    assert len(norms) == 1 + 2 + 2
    assert model(tiny.pixels()).albedos.shape == (2, 3, 24, 16)


@torch.no_grad()
def test_copies__deepcopy_and_pickle() -> None:
    model = build("Sapiens2ForPoseEstimation")
    expected = model(tiny.pixels()).heatmaps
    assert torch.equal(copy.deepcopy(model)(tiny.pixels()).heatmaps, expected)
    assert torch.equal(pickle.loads(pickle.dumps(model))(tiny.pixels()).heatmaps, expected)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")  # meant: see below
@pytest.mark.parametrize("attention", ["eager", "sdpa", "flex_attention"])
@torch.no_grad()
def test_attention__implementations_agree(attention: str) -> None:
    expected = build("Sapiens2Model", attn_implementation="eager")(tiny.pixels()).last_hidden_state
    model = build("Sapiens2Model", attn_implementation=attention)
    with torch.compiler.set_stance("force_eager"):  # flex attention would spend half a minute in the compiler
        torch.testing.assert_close(model(tiny.pixels()).last_hidden_state, expected, rtol=1e-4, atol=1e-4)
    model.set_attn_implementation("eager")
    assert len(model(tiny.pixels(), output_attentions=True).attentions) == 4


@torch.no_grad()
def test_attentions__rows_sum_to_one() -> None:
    model = build("Sapiens2Model", attn_implementation="eager")
    for weights in model(tiny.pixels(), output_attentions=True).attentions:
        assert weights.shape == (2, 4, 33, 33)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 33))


def test_autocast__bfloat16_training_step() -> None:
    model = build("Sapiens2ForPoseEstimation", pos_embed_rescale=None).train()
    labels = tiny.labels_of("Sapiens2ForPoseEstimation", model(tiny.pixels()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(tiny.pixels(), **labels).loss
    loss.backward()
    assert torch.isfinite(loss)


def test_pose_estimation__a_batch_with_nobody_trains() -> None:
    model = models.Sapiens2ForPoseEstimation(models.Sapiens2Config(**tiny.fields_of("Sapiens2ForPoseEstimation")))
    height, width = tiny.IMAGE_HW
    processor = Sapiens2ImageProcessor(size={"height": height, "width": width})
    inputs = processor(np.zeros((50, 40, 3), np.uint8), boxes=[[]], keypoints=[[]], return_tensors="pt")
    loss = model(**inputs).loss
    loss.backward()
    assert loss.item() == 0
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())
