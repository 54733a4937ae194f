"""Fields, defaults, JSON and errors of the configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from transformers.models.sapiens2.configuration_sapiens2 import (
    Sapiens2Config as UpstreamConfig,
    Sapiens2HeadConfig as UpstreamHeadConfig,
)

from sapiens2.assets.sizes import size_names, size_table
from sapiens2.errors import ConfigurationError
from sapiens2.models import TASK_MODELS, Sapiens2Backbone, Sapiens2Config, Sapiens2HeadConfig, Sapiens2Model
from sapiens2.types import TASKS

FIELDS: list[dict[str, Any]] = [
    {},
    {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "image_size": (64, 48),
        "patch_size": [16, 8],
    },
    {"head_config": {"upsample_out_channels": [3, 4], "conv_out_channels": [4]}, "num_labels": 5},
    {
        "image_size": [64, 48],
        "flip_pairs": [[1, 2]],
        "head_config": {
            "upsample_out_channels": [3],
            "scale_conv_out_channels": [4, 5],
            "scale_final_hidden_sizes": [3, 4],
        },
    },
    {"out_indices": [1, -1], "return_class_token": True},
    {"out_features": ["stem", "stage2"], "id2label": {0: "a", 1: "b", 2: "c"}},
    {"num_hidden_layers": 20, "num_key_value_heads_per_layer": [16] * 19 + [4]},
]


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("use_diff", [True, False])
def test_json__identical_to_upstream(fields: dict[str, Any], use_diff: bool) -> None:
    theirs, ours = UpstreamConfig(**fields), Sapiens2Config(**fields)
    assert ours.to_json_string(use_diff=use_diff) == theirs.to_json_string(use_diff=use_diff)


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_json__round_trips_between_both(fields: dict[str, Any]) -> None:
    text = Sapiens2Config(**fields).to_json_string()
    assert Sapiens2Config(**json.loads(text)).to_json_string() == text
    assert UpstreamConfig(**json.loads(text)).to_json_string() == text


def test_json__saved_file_reads_in_both(tmp_path: Any) -> None:
    config = Sapiens2Config.from_size("nano", "pose")
    config.save_pretrained(tmp_path)
    assert Sapiens2Config.from_pretrained(tmp_path).to_dict() == config.to_dict()
    theirs = UpstreamConfig.from_pretrained(tmp_path)
    assert theirs.flip_pairs == config.flip_pairs
    assert theirs.id2label == config.id2label


def test_head_config__object_and_dict_are_the_same() -> None:
    fields = {"upsample_out_channels": [3, 4], "conv_out_channels": [4]}
    as_object = Sapiens2Config(head_config=Sapiens2HeadConfig(**fields))
    assert as_object.to_dict() == Sapiens2Config(head_config=fields).to_dict()
    assert UpstreamHeadConfig(**fields).to_json_string() == Sapiens2HeadConfig(**fields).to_json_string()


def test_additions__written_only_when_used() -> None:
    plain = Sapiens2Config().to_dict()
    assert not {"use_tokenizer", "tokenizer_window_size", "num_tokenizer_layers", "rope_table_dtype"} & set(plain)
    assert "norm_type" not in plain["head_config"]
    used = Sapiens2Config(use_tokenizer=True, num_tokenizer_layers=2, rope_table_dtype="bfloat16")
    assert used.to_dict()["num_tokenizer_layers"] == 2
    again = Sapiens2Config(**used.to_dict())
    assert again.use_tokenizer
    assert again.rope_table_dtype == "bfloat16"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden_size": 30, "num_attention_heads": 4}, "hidden_size=30 must be divisible by num_attention_heads=4"),
        (
            {"hidden_size": 40, "num_attention_heads": 4},
            r"hidden_size=40 must be divisible by 4 \* num_attention_heads",
        ),
        ({"hidden_size": "64"}, "hidden_size='64' must be a whole number"),
        ({"num_hidden_layers": 2.0}, "num_hidden_layers=2.0 must be a whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers=True must be a whole number"),
        ({"num_hidden_layers": 0}, "num_hidden_layers=0"),
        ({"num_attention_heads": 0}, "num_attention_heads=0"),
        ({"num_key_value_heads_per_layer": [16, 16]}, "num_key_value_heads_per_layer has 2 entries.*24"),
        ({"num_key_value_attention_heads": 3}, r"num_key_value_heads_per_layer\[8\]=3 must divide"),
        ({"num_key_value_attention_heads": 0}, r"num_key_value_heads_per_layer\[8\]=0 must divide"),
        ({"num_register_tokens": -1}, "num_register_tokens=-1"),
        ({"patch_size": 0}, "patch_size=0"),
        ({"patch_size": [16, 16, 16]}, "patch_size="),
        ({"image_size": [64, 0]}, "image_size="),
        ({"attention_dropout": 1.0}, "attention_dropout=1.0"),
        ({"drop_path_rate": -0.1}, "drop_path_rate=-0.1"),
        ({"rope_theta": 0.0}, "rope_theta=0.0"),
        ({"pos_embed_rescale": 0.0}, "pos_embed_rescale=0.0"),
        ({"use_tokenizer": True}, "use_tokenizer=True needs num_tokenizer_layers"),
        ({"rope_table_dtype": "float64"}, "rope_table_dtype='float64'"),
        ({"flip_pairs": [[1, 2, 3]]}, "flip_pairs"),
        ({"flip_pairs": [[-1, 0]]}, "flip_pairs"),
        ({"flip_pairs": [[0, 1], [1, 2]]}, "flip_pairs"),
        ({"flip_pairs": [["a", "b"]]}, "flip_pairs"),
        ({"flip_pairs": 5}, "flip_pairs=5"),
        ({"use_gated_mlp": "False"}, "use_gated_mlp='False' must be True or False"),
        ({"query_bias": 1}, "query_bias=1 must be True or False"),
        ({"patch_size": 16.0}, "patch_size=16.0"),
        ({"patch_size": "16"}, "patch_size='16'"),
        ({"patch_size": True}, "patch_size=True"),
        ({"patch_size": [16.5, 16]}, "patch_size="),
        ({"image_size": None}, "image_size=None"),
        ({"rope_theta": "x"}, "rope_theta='x' must be a number"),
        ({"rope_theta": float("inf")}, "rope_theta=inf"),
        ({"initializer_range": 0.0}, "initializer_range=0.0"),
        ({"initializer_range": float("nan")}, "initializer_range=nan"),
        ({"layerscale_value": float("nan")}, "layerscale_value=nan"),
        ({"layerscale_value": None}, "layerscale_value=None"),
        ({"attention_dropout": None}, "attention_dropout=None"),
        ({"rms_norm_eps": None}, "rms_norm_eps=None"),
        ({"hidden_act": "zzz"}, "hidden_act='zzz'"),
        ({"pos_embed_jitter": 0.5}, "pos_embed_jitter=0.5"),
        ({"pos_embed_shift": -1.0}, "pos_embed_shift=-1.0"),
        ({"pos_embed_shift": float("nan")}, "pos_embed_shift=nan"),
        ({"num_labels": 0}, "num_labels=0"),
        ({"num_key_value_heads_per_layer": 4}, "num_key_value_heads_per_layer=4"),
        ({"num_key_value_heads_per_layer": [4.0] * 24}, "num_key_value_heads_per_layer="),
        ({"head_config": "x"}, "head_config='x'"),
        ({"out_indices": [-99]}, "out_indices"),
    ],
    ids=str,
)
def test_errors__name_the_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Sapiens2Config(**fields)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"upsample_out_channels": [3, 4], "upsample_kernel_sizes": [4]}, "upsample_kernel_sizes has 1 .* has 2"),
        ({"conv_out_channels": [3], "conv_kernel_sizes": [1, 1]}, "conv_kernel_sizes has 2 .* has 1"),
        ({"scale_conv_out_channels": [3], "scale_conv_kernel_sizes": []}, "scale_conv_kernel_sizes has 0 .* has 1"),
        ({"upsample_out_channels": [3], "use_pixel_shuffle": True}, r"upsample_kernel_sizes=\[4\] must be .*odd"),
        (
            {"conv_out_channels": [3], "conv_kernel_sizes": [2], "use_pixel_shuffle": True},
            r"conv_kernel_sizes=\[2\] must be .*odd",
        ),
        ({"scale_conv_out_channels": [3], "scale_conv_kernel_sizes": [2]}, r"scale_conv_kernel_sizes=\[2\]"),
        ({"upsample_out_channels": [3, 0]}, r"upsample_out_channels=\[3, 0\]"),
        ({"conv_kernel_sizes": [1]}, "conv_kernel_sizes.*needs conv_out_channels"),
        ({"scale_final_hidden_sizes": []}, "scale_final_hidden_sizes"),
        ({"norm_type": "batch"}, "norm_type='batch'"),
        ({"upsample_out_channels": 8}, "upsample_out_channels=8"),
        ({"upsample_out_channels": [8.0]}, "upsample_out_channels="),
        ({"scale_final_input_size": 0}, "scale_final_input_size=0"),
    ],
    ids=str,
)
def test_head_errors__name_the_field(head: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Sapiens2HeadConfig(**head)
    with pytest.raises(ConfigurationError, match=message):
        Sapiens2Config(head_config=head)


def test_out_indices__impossible_stage() -> None:
    with pytest.raises(ValueError, match="out_indices"):
        Sapiens2Config(out_indices=[99])


@pytest.mark.parametrize("size", size_names())
@pytest.mark.parametrize("task", [None, *TASKS])
def test_from_size__heads_fit_the_image(size: str, task: Any) -> None:
    config = Sapiens2Config.from_size(size, task)
    assert config.intermediate_size == (352 if size == "nano" else 4 * config.hidden_size)
    if task is not None:
        stages = len(config.head.upsample_out_channels)
        quarter, nano = 2, {"seg": 3, "matting": 3}
        assert stages == (nano.get(task, quarter) if size == "nano" else quarter if task == "pose" else 4)
    assert Sapiens2Config(**config.to_dict()).to_dict() == config.to_dict()


def test_from_size__published_facts() -> None:
    large = Sapiens2Config.from_size("1b", "pose")
    assert large.num_key_value_heads_per_layer == [24] * 8 + [12] * 24 + [24] * 8
    assert large.head.upsample_out_channels == [1536, 1024]
    assert Sapiens2Config.from_size("5b", "pose").head.upsample_out_channels == [1024, 768]
    assert large.num_labels == 308
    assert len(large.flip_pairs) == 146
    assert Sapiens2Config.from_size("0.4b", "seg").id2label[3] == "Face_Neck"
    assert Sapiens2Config.from_size("0.4b", "pointmap").head.scale_final_input_size == 6144
    four_k = Sapiens2Config.from_size("1b-4k")
    assert (four_k.use_tokenizer, four_k.num_tokenizer_layers, four_k.image_size) == (True, 4, [4096, 3072])
    assert Sapiens2Config.from_size("1b_4k").to_dict() == four_k.to_dict()
    assert Sapiens2Config.from_size("0.4b", "albedo").head.norm_type == "rms"


def test_from_size__overrides_win() -> None:
    config = Sapiens2Config.from_size("nano", "seg", num_labels=5, pos_embed_rescale=2.0)
    assert config.num_labels == 5
    assert config.pos_embed_rescale == 2.0


@pytest.mark.parametrize("arguments", [("0.5b",), ("0.4b", "depth")])
def test_from_size__unknown(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="not known; choose one of"):
        Sapiens2Config.from_size(*arguments)


PARAMETERS = {  # computed from the original implementation
    "0.1b": 113_993_472,
    "0.4b": 395_450_368,
    "0.8b": 814_283_520,
    "1b": 1_455_474_176,
    "1b-4k": 1_606_588_928,
    "5b": 5_066_902_976,
}


@pytest.mark.parametrize("size", PARAMETERS)
def test_from_size__parameters_of_the_original(size: str) -> None:
    with torch.device("meta"):
        model = Sapiens2Model(Sapiens2Config.from_size(size))
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[size]


HEAD_MILLIONS = {
    "seg": {"0.4b": 11.2, "0.8b": 13.2, "1b": 15.3, "5b": 22.7},
    "pose": {"0.4b": 30.2, "0.8b": 34.4, "1b": 64.3, "5b": 53.3},
    "normal": {"0.4b": 57.9, "0.8b": 70.3, "1b": 83.9, "5b": 249.5},
    "pointmap": {"0.4b": 133.2, "0.8b": 153.1, "1b": 174.1, "5b": 281.4},
    "albedo": {"0.4b": 57.9, "0.8b": 70.3, "1b": 83.9, "5b": 249.2},
}


@pytest.mark.parametrize(("task", "size"), [(task, size) for task, sizes in HEAD_MILLIONS.items() for size in sizes])
def test_from_size__head_parameters_of_the_original(task: Any, size: str) -> None:
    config = Sapiens2Config.from_size(size, task, num_hidden_layers=1, num_key_value_heads_per_layer=None)
    with torch.device("meta"):
        model = TASK_MODELS[task](config)
    head = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("model."))
    assert head / 1e6 == pytest.approx(HEAD_MILLIONS[task][size], abs=0.06)


def test_default_configuration__builds_every_model() -> None:
    with torch.device("meta"):
        assert Sapiens2Model(Sapiens2Config()).config.hidden_size == 1024
        assert Sapiens2Backbone(Sapiens2Config()).channels == [1024]
        for task, model_class in TASK_MODELS.items():
            model = model_class(Sapiens2Config())
            assert model.config.num_labels == size_table()["heads"][task]["num_labels"]
            assert model.config.head.is_set


def test_for_task__keeps_the_callers_configuration() -> None:
    config = Sapiens2Config(hidden_size=1536, num_attention_heads=24, num_key_value_attention_heads=12)
    before = config.to_json_string()
    resolved = config.for_task("pose")
    assert config.to_json_string() == before
    assert resolved.head.upsample_out_channels == [1536, 1024]
    assert resolved.for_task("pose") is resolved


def test_for_task__given_labels_stay() -> None:
    assert Sapiens2Config(num_labels=5).for_task("seg").num_labels == 5
    head = {"upsample_out_channels": [4], "conv_out_channels": [4]}
    assert Sapiens2Config(head_config=head).for_task("seg").num_labels == 2
    changed = Sapiens2Config()
    changed.num_labels = 7
    assert changed.for_task("pose").num_labels == 7
    with pytest.raises(ConfigurationError, match="num_labels=3: Sapiens2ForImageMatting predicts 4"):
        TASK_MODELS["matting"](Sapiens2Config(num_labels=3, num_hidden_layers=1))


def test_whole_numbers__become_floats_where_floats_are_meant() -> None:
    config = Sapiens2Config(layerscale_value=1, rope_theta=100, attention_dropout=0)
    assert isinstance(config.layerscale_value, float)
    with torch.device("meta"):
        Sapiens2Model(config)


@pytest.mark.parametrize(
    "head", [{"norm_type": "rms"}, {"conv_kernel_size": 3}, {"scale_conv_out_channels": [8]}], ids=str
)
def test_for_task__head_without_layers_is_not_thrown_away(head: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(head))}.*describes no layers"):
        Sapiens2Config(head_config=head).for_task("normal")
