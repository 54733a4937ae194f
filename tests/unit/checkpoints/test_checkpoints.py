"""Reading, converting, initialising and listing checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import sapiens2.models as models
import tiny_models as tiny
from sapiens2.checkpoints import (
    convert_checkpoint,
    convert_tree,
    entries,
    infer_config,
    initialise_checkpoint,
    load_model,
    load_processor,
    published_id,
    read_shapes,
)
from sapiens2.checkpoints.convert import original_state_dict
from sapiens2.errors import CheckpointError, ConfigurationError

FOUR_K = {"use_tokenizer": True, "num_tokenizer_layers": 2, "tokenizer_window_size": 2}


def build(class_name: str, **changes: Any) -> Any:
    config = models.Sapiens2Config(**tiny.fields_of(class_name, **changes))
    return tiny.randomised(getattr(models, class_name)(config)).eval()


def write_original(model: Any, path: Path) -> Path:
    save_file(original_state_dict(model), path)
    return path


def assert_same_weights(left: Any, right: Any) -> None:
    assert type(left) is type(right)
    assert left.state_dict().keys() == right.state_dict().keys()
    for name, tensor in left.state_dict().items():
        assert torch.equal(tensor, right.state_dict()[name]), name


# --- names ---


@pytest.mark.parametrize("class_name", [name for name in tiny.HEADS if name != "Sapiens2Backbone"])
@pytest.mark.parametrize("changes", [{}, FOUR_K, {"use_gated_mlp": False}], ids=["1k", "4k", "ungated"])
def test_key_map__original_names_and_back(class_name: str, changes: dict[str, Any]) -> None:
    model = build(class_name, **changes)
    weights = original_state_dict(model)
    module_names = set(model.state_dict())
    for name in weights:
        if name.endswith("periods"):
            continue
        back = model.key_map.to_module(name)
        parts = [back.replace("w12", part) for part in ("gate_proj", "up_proj")] if ".w12." in back else [back]
        assert set(parts) <= module_names, name
        assert name.startswith(("backbone.", "decode_head.")) == (model.task is not None)


def test_key_map__the_original_names() -> None:
    weights = original_state_dict(build("Sapiens2ForPointmapEstimation", **FOUR_K))
    for name in (
        "backbone.cls_token",
        "backbone.storage_tokens",
        "backbone.patch_embed.projection.weight",
        "backbone.rope_embed.periods",
        "backbone.blocks.3.attn.wq.bias",
        "backbone.blocks.0.attn.gamma.weight",
        "backbone.blocks.0.ffn.w12.weight",
        "backbone.ln1.weight",
        "backbone.tokenizer.w_cls",
        "backbone.tokenizer.local_pos_embed",
        "backbone.tokenizer.blocks.1.attn.proj.weight",
        "decode_head.input_conv.0.bias",
        "decode_head.upsample_blocks.1.0.weight",
        "decode_head.conv_layers.3.bias",
        "decode_head.conv_pointmap.weight",
        "decode_head.scale_conv_layers.3.weight",
        "decode_head.scale_final_layer.1.weight",
        "decode_head.scale_final_layer.3.weight",
        "decode_head.scale_final_layer.5.bias",
    ):
        assert name in weights
    assert weights["backbone.rope_embed.periods"].dtype == torch.bfloat16
    assert weights["backbone.blocks.0.ffn.w12.weight"].shape == (192, 64)
    albedo = original_state_dict(build("Sapiens2ForAlbedoEstimation"))
    for name in ("input_conv.1.norm", "upsample_blocks.0.2.norm", "conv_layers.1.norm", "conv_layers.4.norm"):
        assert f"decode_head.{name}.weight" in albedo
    seg = original_state_dict(build("Sapiens2ForSemanticSegmentation"))
    assert {"decode_head.deconv_layers.0.weight", "decode_head.deconv_layers.3.weight"} <= set(seg)


def test_key_map__tensor_count_of_the_original() -> None:
    weights = original_state_dict(build("Sapiens2Model"))
    assert len(weights) == 17 * 4 + 6


def test_key_map__gate_comes_first() -> None:
    model = build("Sapiens2Model")
    joined = original_state_dict(model)["blocks.0.ffn.w12.weight"]
    assert torch.equal(joined[:96], model.model.layer[0].mlp.gate_proj.weight)
    assert torch.equal(joined[96:], model.model.layer[0].mlp.up_proj.weight)


# --- loading ---


@pytest.mark.parametrize("class_name", [name for name in tiny.HEADS if name != "Sapiens2Backbone"])
@pytest.mark.parametrize(
    "changes", [{}, FOUR_K, {"num_register_tokens": 4, "key_bias": False}], ids=["1k", "4k", "odd"]
)
def test_load_model__original_file_without_configuration(class_name: str, changes: Any, tmp_path: Path) -> None:
    head, _ = tiny.HEADS[class_name]
    if class_name == "Sapiens2ForPointmapEstimation":  # the weights tell the published image size alone
        head = {**(head or {}), "scale_conv_out_channels": [16, 8, 8, 8, 8, 8]}
    size = [4096, 3072] if changes is FOUR_K else [1024, 768]
    if changes is FOUR_K:
        size = [1024 * 4, 768 * 4]
        head = (
            {**(head or {}), "scale_conv_out_channels": [16] + [8] * 6}
            if head and "scale_conv_out_channels" in head
            else head
        )
    model = build(class_name, **changes, head_config=head, image_size=size)
    path = write_original(model, tmp_path / "weights.safetensors")
    loaded = load_model(path)
    assert_same_weights(model, loaded)
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / "any_name.safetensors")
    assert_same_weights(model, load_model(folder, model.task))
    x = tiny.pixels(1, (96, 64))
    with torch.no_grad():
        torch.testing.assert_close(model(x).to_tuple()[0], loaded(x).to_tuple()[0], rtol=1e-4, atol=1e-4)


def test_infer_config__published_pose_model() -> None:
    config = models.Sapiens2Config.from_size("1b", "pose")
    with torch.device("meta"):
        model = models.Sapiens2ForPoseEstimation(config)
    key_map = model.key_map
    shapes = {}
    for name, tensor in model.state_dict().items():
        if ".mlp.up_proj." in name:
            continue
        shape = tuple(tensor.shape)
        if ".mlp.gate_proj." in name:
            name, shape = name.replace("gate_proj", "w12"), (2 * shape[0], *shape[1:])
        shapes[key_map.to_original(name)] = shape
    inferred, task = infer_config(shapes)
    assert task == "pose"
    assert inferred.to_dict() == config.to_dict()


def test_load_model__saved_folder_keeps_class_and_dtype(tmp_path: Path) -> None:
    model = build("Sapiens2ForPoseEstimation").to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    loaded = load_model(tmp_path, "pose")
    assert_same_weights(model, loaded)
    assert loaded.dtype == torch.bfloat16
    assert load_model(tmp_path, dtype=torch.float32).dtype == torch.float32
    assert not loaded.training


def test_from_pretrained__trunk_into_task_model_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trunk = build("Sapiens2Model")
    trunk.save_pretrained(tmp_path)
    head, num_labels = tiny.HEADS["Sapiens2ForPoseEstimation"]
    with caplog.at_level("WARNING", logger="sapiens2"):
        model = models.Sapiens2ForPoseEstimation.from_pretrained(tmp_path, head_config=head, num_labels=num_labels)
    assert "head of Sapiens2ForPoseEstimation is newly initialised" in caplog.text
    for name, tensor in trunk.state_dict().items():
        assert torch.equal(tensor, model.model.state_dict()[name])


@pytest.mark.parametrize("class_name", ["Sapiens2Model", "Sapiens2Backbone"])
def test_from_pretrained__task_file_into_bare_trunk(class_name: str, tmp_path: Path) -> None:
    model = build("Sapiens2ForPointmapEstimation")
    model.save_pretrained(tmp_path)
    trunk = getattr(models, class_name).from_pretrained(tmp_path)
    for name, tensor in trunk.state_dict().items():
        assert torch.equal(tensor, model.model.state_dict()[name])


def damaged(path: Path, drop: tuple[str, ...] = (), add: dict[str, torch.Tensor] | None = None) -> None:
    file = path / "model.safetensors"
    weights = {name: tensor for name, tensor in load_file(file).items() if name not in drop}
    save_file({**weights, **(add or {})}, file, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("drop", "add", "message"),
    [
        (("backbone.blocks.1.attn.wq.weight",), {}, r"1 missing: model\.model\.layer\.1\.attention\.q_proj\.weight"),
        (("decode_head.conv_pose.bias",), {}, r"1 missing: decode_head\.predictor\.bias"),
        ((), {"decode_head.deconv_layers.9.weight": torch.zeros(1)}, "1 unexpected: decode_head"),
        ((), {"backbone.blocks.7.ln1.weight": torch.zeros(64)}, "1 unexpected: .*layer.7"),
        ((), {"optimizer.step": torch.zeros(1)}, "1 unexpected: optimizer.step"),
        (("backbone.cls_token",), {"surplus": torch.zeros(1)}, "1 missing: .*cls_token; 1 unexpected: surplus"),
    ],
    ids=str,
)
def test_from_pretrained__strict(drop: tuple[str, ...], add: Any, message: str, tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path)
    damaged(tmp_path, drop, add)
    with pytest.raises(CheckpointError, match=message):
        models.Sapiens2ForPoseEstimation.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        load_model(tmp_path)


def test_from_pretrained__periods_are_tolerated(tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path)
    damaged(tmp_path, add={"backbone.rope_embed.periods": torch.zeros(4)})
    models.Sapiens2ForPoseEstimation.from_pretrained(tmp_path)


def test_from_pretrained__another_shape(tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"predictor.bias: \(5,\), expected \(9,\)"):
        models.Sapiens2ForPoseEstimation.from_pretrained(tmp_path, num_labels=9)
    model = models.Sapiens2ForPoseEstimation.from_pretrained(tmp_path, num_labels=9, ignore_mismatched_sizes=True)
    assert model.decode_head.predictor.weight.shape[0] == 9


def test_from_pretrained__pickles_are_refused(tmp_path: Path) -> None:
    build("Sapiens2Model").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        models.Sapiens2Model.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="pickles can run code"):
        models.Sapiens2Model.from_pretrained(tmp_path, use_safetensors=False)
    with pytest.raises(CheckpointError, match=r"pickles|not found"):
        load_model(tmp_path)


def test_load_model__says_what_is_wrong(tmp_path: Path) -> None:
    model = build("Sapiens2ForPoseEstimation")
    path = write_original(model, tmp_path / "pose.safetensors")
    with pytest.raises(CheckpointError, match="is a pose checkpoint, and the task asked for is seg"):
        load_model(path, "seg")
    with pytest.raises(CheckpointError, match="does-not-exist"):
        load_model(tmp_path / "does-not-exist")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"holds no \.safetensors file"):
        load_model(tmp_path / "empty")
    (tmp_path / "empty" / "old.pth").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"old\.pth are pickles"):
        load_model(tmp_path / "empty")
    truncated = tmp_path / "truncated.safetensors"
    truncated.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CheckpointError, match=r"truncated\.safetensors is not a whole safetensors file"):
        load_model(truncated)
    (tmp_path / "zero.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"zero\.safetensors is not a whole"):
        load_model(tmp_path / "zero.safetensors")
    other = tmp_path / "other.safetensors"
    save_file({"conv1.weight": torch.zeros(3)}, other)
    with pytest.raises(CheckpointError, match="no cls_token"):
        load_model(other)
    with pytest.raises(CheckpointError, match="only safetensors are read"):
        load_model(tmp_path / "empty" / "old.pth")
    two = tmp_path / "two"
    two.mkdir()
    for name in ("a", "b"):
        write_original(model, two / f"{name}.safetensors")
    with pytest.raises(CheckpointError, match=r"holds 2 \.safetensors files"):
        load_model(two)


def test_load_model__sharded_original_with_a_shard_missing(tmp_path: Path) -> None:
    weights = original_state_dict(build("Sapiens2Model", image_size=[1024, 768]))
    names = sorted(weights)
    for index, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :])):
        save_file({name: weights[name] for name in part}, tmp_path / f"part{index}.safetensors")
    table = {name: f"part{int(i >= len(names) // 2)}.safetensors" for i, name in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    assert load_model(tmp_path).state_dict().keys() == build("Sapiens2Model").state_dict().keys()
    (tmp_path / "part1.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"part1\.safetensors"):
        load_model(tmp_path)


@pytest.mark.parametrize("class_name", list(tiny.HEADS))
@pytest.mark.parametrize("changes", [{}, FOUR_K, {"use_gated_mlp": False}], ids=["1k", "4k", "ungated"])
def test_load_state_dict__names_on_disk(class_name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model, other = build(class_name, **changes), build(class_name, **changes)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    given = original_state_dict(model)
    names = list(given)
    other.load_state_dict(given, strict=True)
    assert list(given) == names
    assert_same_weights(model, other)
    model.save_pretrained(tmp_path)
    nested = torch.nn.ModuleDict({"wrapped": build(class_name, **changes)})
    saved = {f"wrapped.{name}": tensor for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    nested.load_state_dict(saved, strict=True)
    assert_same_weights(model, nested["wrapped"])


# --- converting ---


@pytest.mark.parametrize(
    ("class_name", "changes"),
    [
        ("Sapiens2Model", {}),
        ("Sapiens2Model", FOUR_K),
        ("Sapiens2ForPoseEstimation", {}),
        ("Sapiens2ForPoseEstimation", FOUR_K),
        ("Sapiens2ForAlbedoEstimation", {}),
        ("Sapiens2ForImageMatting", {}),
        (
            "Sapiens2ForSemanticSegmentation",
            {"head_config": {"upsample_out_channels": [4] * 5, "conv_out_channels": [4] * 3}},
        ),
    ],
    ids=str,
)
def test_convert__there_and_back(class_name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = build(class_name, **changes)
    original = write_original(model, tmp_path / "given.safetensors")
    report = convert_checkpoint(original, tmp_path / "hf", layout="transformers")
    assert report.task == model.task
    assert report.num_parameters == sum(p.numel() for p in model.parameters())
    assert {"config.json", "model.safetensors", "preprocessor_config.json"} <= {
        p.name for p in report.destination.iterdir()
    }
    assert_same_weights(model, load_model(tmp_path / "hf"))
    back = convert_checkpoint(tmp_path / "hf", tmp_path / "back.safetensors", layout="original")
    given, written = load_file(original), load_file(back.destination)
    assert given.keys() == written.keys()
    assert all(torch.equal(given[name], written[name]) for name in given)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_convert__names_the_file_as_published(tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path / "in")
    report = convert_checkpoint(tmp_path / "in", tmp_path / "out", layout="original")
    assert report.destination == tmp_path / "out" / "sapiens2_0.4b_pose.safetensors"
    assert "backbone.cls_token" in read_shapes(report.destination)


def test_convert__leaves_what_exists(tmp_path: Path) -> None:
    build("Sapiens2Model").save_pretrained(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    with pytest.raises(CheckpointError, match="exists already"):
        convert_checkpoint(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "keep"


def test_convert_tree__keeps_places(tmp_path: Path) -> None:
    for task, name in (("pose", "Sapiens2ForPoseEstimation"), ("seg", "Sapiens2ForSemanticSegmentation")):
        (tmp_path / "in" / task).mkdir(parents=True)
        write_original(build(name), tmp_path / "in" / task / f"sapiens2_0.4b_{task}.safetensors")
    reports = [outcome.report for outcome in convert_tree(tmp_path / "in", tmp_path / "out")]
    assert [report.task for report in reports if report is not None] == ["pose", "seg"]
    assert load_model(tmp_path / "out" / "pose" / "sapiens2_0.4b_pose").task == "pose"
    (tmp_path / "nothing").mkdir()
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        convert_tree(tmp_path / "nothing", tmp_path / "out2")


def test_convert_tree__goes_on_after_a_failure_and_completes_a_first_run(tmp_path: Path) -> None:
    (tmp_path / "in" / "broken").mkdir(parents=True)
    (tmp_path / "in" / "broken" / "config.json").write_text("{")
    (tmp_path / "in" / "a.safetensors").write_bytes(b"torn")
    write_original(build("Sapiens2ForPoseEstimation"), tmp_path / "in" / "b.safetensors")
    torn, good, broken = convert_tree(tmp_path / "in", tmp_path / "out")
    assert torn.error is not None
    assert "a.safetensors is not a whole safetensors file" in torn.error
    assert broken.error is not None
    assert good.report is not None
    write_original(build("Sapiens2ForPoseEstimation"), tmp_path / "in" / "a.safetensors")
    written = (tmp_path / "out" / "b" / "config.json").stat()
    completed, kept, _ = convert_tree(tmp_path / "in", tmp_path / "out")
    assert completed.report is not None
    assert (kept.report, kept.error) == (None, None)
    assert (tmp_path / "out" / "b" / "config.json").stat() == written


def test_convert_tree__two_checkpoints_of_one_place(tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path / "in" / "a")
    write_original(build("Sapiens2ForPoseEstimation"), tmp_path / "in" / "a.safetensors")
    first, second = convert_tree(tmp_path / "in", tmp_path / "out")
    assert first.report is not None
    assert second.error is not None
    assert "is also where" in second.error


def test_convert_tree__destination_inside_the_source_or_a_file(tmp_path: Path) -> None:
    for name in "ab":
        build("Sapiens2Model").save_pretrained(tmp_path / "in" / name)
    for destination in (tmp_path / "in", tmp_path / "in" / "out", tmp_path / "in" / "a" / "out"):
        with pytest.raises(CheckpointError, match="lies inside"):
            convert_tree(tmp_path / "in", destination)
    with pytest.raises(CheckpointError, match=r"holds 2 checkpoints, and .* names a file"):
        convert_tree(tmp_path / "in", tmp_path / "out.safetensors", layout="original")


# --- initialising, processors, catalogue ---


def test_initialise__says_random_and_repeats(tmp_path: Path) -> None:
    before = torch.random.get_rng_state()
    first = initialise_checkpoint("nano", "seg", tmp_path / "a", seed=3)
    assert torch.equal(before, torch.random.get_rng_state())
    second = initialise_checkpoint("nano", "seg", tmp_path / "b", seed=3)
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    model = load_model(first)
    assert model.config.sapiens2_weights == "random"
    processor = load_processor(first, model)
    assert (processor.size["height"], processor.size["width"]) == (256, 192)


@pytest.mark.parametrize(
    ("task", "letterbox"), [("normal", True), ("pose", False), ("albedo", True), ("matting", False)]
)
def test_load_processor__default_of_the_task(task: Any, letterbox: bool, tmp_path: Path) -> None:
    folder = initialise_checkpoint("nano", task, tmp_path / task)
    (folder / "preprocessor_config.json").unlink()
    assert load_processor(folder, load_model(folder)).do_pad is letterbox


def test_catalogue__published_checkpoints() -> None:
    table = {(entry.task, entry.size): entry for entry in entries()}
    assert table["pretrain", "5b"].parameters == 5_066_902_976
    assert table["pretrain", "0.1b"].teraflops == 0.342
    assert table["pose", "0.4b"].hub_id == "facebook/sapiens2-pose-0.4b"
    assert ("pose", "0.1b") not in table
    assert len(table) == 6 + 4 * 4 + 1
    assert all(entry.licence == "Sapiens2 License" for entry in table.values())
    assert json.loads(json.dumps([entry.to_dict() for entry in table.values()]))


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.task}-{entry.size}")
def test_catalogue__parameters_are_those_of_the_models(entry: Any) -> None:
    with torch.device("meta"):
        if entry.task == "pretrain":
            model: Any = models.Sapiens2Model(models.Sapiens2Config.from_size(entry.size))
        else:
            model = models.TASK_MODELS[entry.task](models.Sapiens2Config.from_size(entry.size, entry.task))
    assert sum(parameter.numel() for parameter in model.parameters()) == entry.parameters


def test_published_id__what_was_not_published() -> None:
    with pytest.raises(ConfigurationError, match=r"no pose weights of size 0\.1b were published \(published: 0\.4b"):
        published_id("pose", "0.1b")
    with pytest.raises(ConfigurationError, match=r"no albedo weights .*published: none"):
        published_id("albedo", "1b")
    with pytest.raises(ConfigurationError, match="size='7b' is not known"):
        published_id("pose", "7b")
    with pytest.raises(ConfigurationError, match="task='depth' is not known"):
        published_id("depth", "1b")


# --- what files in the original layout carry ---


@pytest.mark.parametrize(
    ("class_name", "changes"),
    [
        ("Sapiens2ForSemanticSegmentation", {"rope_theta": 10.0, "rms_norm_eps": 1e-2, "hidden_act": "gelu"}),
        ("Sapiens2ForSemanticSegmentation", {"id2label": {i: f"mine{i}" for i in range(7)}}),
        ("Sapiens2ForPoseEstimation", {"use_mask_token": True, "sapiens2_weights": "random"}),
        ("Sapiens2Backbone", {}),
        ("Sapiens2ForPointmapEstimation", {}),
        ("Sapiens2ForNormalEstimation", {"head_config": {**tiny.SHUFFLE_HEAD, "upsample_out_channels": []}}),
    ],
    ids=str,
)
def test_convert__original_layout_keeps_what_names_do_not_tell(
    class_name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    head = changes.get("head_config")
    if head is not None:
        changes = {**changes, "head_config": {**head, "upsample_kernel_sizes": []}}
    model = build(class_name, **changes)
    model.save_pretrained(tmp_path / "in")
    report = convert_checkpoint(tmp_path / "in", tmp_path / "file.safetensors", layout="original")
    read = load_model(report.destination)
    x = tiny.pixels(1)
    with torch.no_grad():
        expected = model(x).to_tuple()[0]
        expected = expected[0] if isinstance(expected, tuple) else expected
    if class_name != "Sapiens2Backbone":
        with torch.no_grad():
            assert torch.equal(read(x).to_tuple()[0], expected)
    assert read.config.id2label == model.config.id2label
    assert getattr(read.config, "sapiens2_weights", None) == getattr(model.config, "sapiens2_weights", None)


def test_load_model__mixed_dtypes_are_not_rounded(tmp_path: Path) -> None:
    weights = original_state_dict(build("Sapiens2ForPoseEstimation"))
    name = "backbone.patch_embed.projection.weight"
    save_file({**weights, name: weights[name].half()}, tmp_path / "mixed.safetensors")
    loaded = load_model(tmp_path / "mixed.safetensors")
    assert loaded.dtype == torch.float32
    assert torch.equal(loaded.state_dict()["decode_head.predictor.weight"], weights["decode_head.conv_pose.weight"])


@pytest.mark.parametrize("part", ["ffn.w12", "ffn.w3", "attn.wk", "blocks.2.", "conv_layers.0", "conv_pose"])
def test_load_model__original_file_that_lacks_weights(part: str, tmp_path: Path) -> None:
    weights = original_state_dict(build("Sapiens2ForPoseEstimation"))
    save_file({k: v for k, v in weights.items() if part not in k}, tmp_path / "w.safetensors")
    with pytest.raises(CheckpointError, match=r"lacks|missing|no known task"):
        load_model(tmp_path / "w.safetensors")


def test_load_model__damaged_weights_beside_a_configuration(tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(CheckpointError, match="no whole safetensors file"):
        load_model(tmp_path)


def test_load_model__configuration_that_is_no_json(tmp_path: Path) -> None:
    build("Sapiens2ForPoseEstimation").save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_model(tmp_path)


def test_load_processor__file_that_is_no_json(tmp_path: Path) -> None:
    folder = initialise_checkpoint("nano", "seg", tmp_path)
    model = load_model(folder)
    (folder / "preprocessor_config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json cannot be read"):
        load_processor(folder, model)
