"""What model a file of weights in the original layout holds, told from names and shapes alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from sapiens2.assets.sizes import size_of_hidden_size, trunk_fields
from sapiens2.errors import CheckpointError
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.types import TASKS, Task

__all__ = ["CONFIG_METADATA", "infer_config", "read_metadata", "read_shapes"]

CONFIG_METADATA = "sapiens2_config"
"""Key under which files in the original layout carry the configuration, which names and shapes tell in part only."""

Shape = tuple[int, ...]


def read_shapes(path: Path) -> dict[str, Shape]:
    """Names and shapes of the weights of a safetensors file, without reading them.

    Raises:
        CheckpointError: The file is missing, or no whole safetensors file.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118  no mapping
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist") from error
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a whole safetensors file ({error}); download or copy it again") from error


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file that :func:`read_shapes` could read."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def infer_config(
    shapes: Mapping[str, Shape], *, source: str = "the file", metadata: Mapping[str, str] | None = None
) -> tuple[Sapiens2Config, Task | None]:
    """Configuration and task of weights in the original layout.

    Args:
        shapes: Names and shapes of all weights.
        source: What error messages call the weights.
        metadata: Of the file. A configuration in it, as :mod:`sapiens2.checkpoints.convert` writes it, is taken.

    Returns:
        The configuration, and the task (``None`` for a bare backbone). Without metadata, what weights do not tell is
        taken to be as published: image size, RoPE base, epsilon, activation, names of labels.

    Raises:
        CheckpointError: The names are not those of the original layout.
    """
    trunk = {
        name.removeprefix("backbone."): shape for name, shape in shapes.items() if not name.startswith("decode_head.")
    }
    head = {
        name.removeprefix("decode_head."): shape for name, shape in shapes.items() if name.startswith("decode_head.")
    }
    if "cls_token" not in trunk or "patch_embed.projection.weight" not in trunk:
        raise CheckpointError(
            f"{source} does not hold weights in the original layout (no cls_token, no patch_embed among "
            f"{len(shapes)} names, {', '.join(sorted(shapes)[:3])}, ...); a checkpoint in transformers' layout needs "
            "its config.json beside it"
        )
    task = _task_of(head, source)
    if metadata is not None and CONFIG_METADATA in metadata:
        return Sapiens2Config(**json.loads(metadata[CONFIG_METADATA])), task
    try:
        return Sapiens2Config(**_inferred_fields(trunk, head, task, source)), task
    except KeyError as error:
        raise CheckpointError(f"{source} lacks {error.args[0]}; is the file whole, and of one model?") from error


def _inferred_fields(
    trunk: Mapping[str, Shape], head: Mapping[str, Shape], task: Task | None, source: str
) -> dict[str, Any]:
    fields = _trunk(trunk, source)
    if task is not None:
        predictor = next(
            shape
            for name, shape in head.items()
            if name.startswith("conv_") and name.endswith("weight") and not name.startswith("conv_layers")
        )
        fields["head_config"] = _head(head)
        published = Sapiens2Config._published_labels(task, predictor[0])
        names = published.get("id2label")
        fields |= published if names is None or len(names) == predictor[0] else {"num_labels": predictor[0]}
    return fields


def _task_of(head: Mapping[str, Shape], source: str) -> Task | None:
    if not head:
        return None
    for task in TASKS:
        if f"conv_{task}.weight" in head:
            return task
    raise CheckpointError(f"{source} has a decode head of no known task: {', '.join(sorted(head)[:5])}, ...")


def _count(names: Mapping[str, Shape], pattern: str) -> int:
    found = [int(match[1]) for name in names if (match := re.match(pattern, name))]
    return max(found, default=-1) + 1


def _trunk(trunk: Mapping[str, Shape], source: str) -> dict[str, Any]:
    width = trunk["cls_token"][-1]
    layers = _count(trunk, r"blocks\.(\d+)\.")
    if layers == 0:
        raise CheckpointError(f"{source} holds no transformer blocks")
    size = size_of_hidden_size(width)
    known = trunk_fields("1b-4k" if "tokenizer.w_cls" in trunk and size == "1b" else size)
    if "blocks.0.attn.q_norm.weight" in trunk:
        head_dim = trunk["blocks.0.attn.q_norm.weight"][0]
    elif "rope_embed.periods" in trunk:
        head_dim = 4 * trunk["rope_embed.periods"][0]
    else:
        head_dim = width // known["num_attention_heads"]
    joined, down = trunk["blocks.0.ffn.w12.weight"], trunk["blocks.0.ffn.w3.weight"]
    patch = trunk["patch_embed.projection.weight"]
    fields: dict[str, Any] = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // head_dim,
        "intermediate_size": down[1],
        "use_gated_mlp": joined[0] == 2 * down[1],
        "num_key_value_heads_per_layer": [trunk[f"blocks.{i}.attn.wk.weight"][0] // head_dim for i in range(layers)],
        "num_register_tokens": trunk["storage_tokens"][1] if "storage_tokens" in trunk else 0,
        "num_channels": patch[1],
        "patch_size": patch[2] if patch[2] == patch[3] else list(patch[2:]),
        "image_size": known["image_size"],
        "use_mask_token": "embeddings.mask_token" in trunk,
        "use_qk_norm": "blocks.0.attn.q_norm.weight" in trunk,
        "query_bias": "blocks.0.attn.wq.bias" in trunk,
        "key_bias": "blocks.0.attn.wk.bias" in trunk,
        "value_bias": "blocks.0.attn.wv.bias" in trunk,
        "proj_bias": "blocks.0.attn.proj.bias" in trunk,
        "mlp_bias": "blocks.0.ffn.w12.bias" in trunk,
        "layerscale_value": 1e-4,
        "pos_embed_rescale": None,
    }
    grouped = [n for n in fields["num_key_value_heads_per_layer"] if n != fields["num_attention_heads"]]
    fields["num_key_value_attention_heads"] = grouped[0] if grouped else fields["num_attention_heads"]
    if "tokenizer.w_cls" in trunk:
        fields["use_tokenizer"] = True
        fields["num_tokenizer_layers"] = _count(trunk, r"tokenizer\.blocks\.(\d+)\.")
        fields["tokenizer_window_size"] = math.isqrt(trunk["tokenizer.local_pos_embed"][1] - 1)
        fields["image_size"] = trunk_fields("1b-4k")["image_size"]
    return fields


def _head(head: Mapping[str, Shape]) -> dict[str, Any]:
    shuffled = _count(head, r"upsample_blocks\.(\d+)\.0\.weight")
    if shuffled:
        stages = [head[f"upsample_blocks.{i}.0.weight"] for i in range(shuffled)]
        channels = [stage[0] // 4 for stage in stages]
    else:
        stages = _stack(head, "deconv_layers")
        channels = [stage[1] for stage in stages]
    convolutions, scale = _stack(head, "conv_layers"), _stack(head, "scale_conv_layers")
    fields: dict[str, Any] = {
        "use_pixel_shuffle": bool(shuffled),
        "upsample_out_channels": channels,
        "upsample_kernel_sizes": [stage[2] for stage in stages],
        "conv_out_channels": [shape[0] for shape in convolutions],
        "conv_kernel_sizes": [shape[2] for shape in convolutions],
    }
    if scale:
        fields["scale_conv_out_channels"] = [shape[0] for shape in scale]
        fields["scale_conv_kernel_sizes"] = [shape[2] for shape in scale]
        last = _count(head, r"scale_final_layer\.(\d+)\.weight") - 1
        fields["scale_final_hidden_sizes"] = [head[f"scale_final_layer.{i}.weight"][0] for i in range(1, last, 2)]
    if "conv_layers.1.norm.weight" in head or "input_conv.1.norm.weight" in head:
        fields["norm_type"] = "rms"
    return fields


def _stack(head: Mapping[str, Shape], name: str) -> list[Shape]:
    """Shapes of the convolutions of a flat stack (convolution, norm, activation)."""
    count = _count(head, rf"{name}\.(\d+)\.weight")
    return [head[f"{name}.{i}.weight"] for i in range(0, count, 3)]
