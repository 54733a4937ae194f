"""Names of weights on disk and in the modules: one table, read in both directions.

Files hold the *original* names (``backbone.blocks.0.attn.wq.weight``, gate and up projection joined as ``ffn.w12``), be
they the original repository's or saved by transformers. Module names are those of the reference
(``model.model.layer.0.attention.q_proj.weight``). Both are read; what is written is the original name wherever
transformers' own reader knows it, and the module name elsewhere (a fifth upsampling stage, say), which it reads as it
is.

Source: layouts of facebookresearch/sapiens2 and transformers 5.24, section 2 of the specification.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformers.core_model_loading import Chunk, WeightConverter, WeightRenaming, WeightTransform

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.types import Task

__all__ = ["KeyMap"]

_INDEX = re.compile(r"\{(\d*)n([+-]\d+)?\}")
_REFINEMENT_NORM = re.compile(r"decode_head\.conv_layers\.\d+\.norm\.weight")


@dataclass(frozen=True)
class _Name:
    """A name with one index, written ``{n}``, ``{3n}`` or ``{3n+1}``, and ``{p}`` for weight or bias."""

    text: str

    @cached_property
    def _index(self) -> tuple[int, int]:
        match = _INDEX.search(self.text)
        if match is None:
            return 1, 0
        return int(match[1] or 1), int(match[2] or 0)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        pattern = re.escape(_INDEX.sub("<n>", self.text).replace("{p}", "<p>"))
        pattern = pattern.replace("<n>", r"(?P<n>\d+)").replace("<p>", "(?P<p>weight|bias)")
        return re.compile(pattern)

    def read(self, key: str) -> tuple[int, str] | None:
        """Index n and ``weight``/``bias`` of a key, or ``None`` when the key is not of this kind."""
        match = self._regex.fullmatch(key)
        if match is None:
            return None
        groups = match.groupdict()
        factor, offset = self._index
        steps, rest = divmod(int(groups.get("n") or 0) - offset if "n" in groups else 0, factor)
        return (steps, groups.get("p") or "") if rest == 0 else None

    def write(self, index: int, parameter: str) -> str:
        """The key with that index."""
        factor, offset = self._index
        return _INDEX.sub(str(factor * index + offset), self.text).replace("{p}", parameter)


@dataclass(frozen=True)
class _Rule:
    """Two names of one weight; transformers' reader knows the original one for the first ``known`` indices."""

    module: _Name
    original: _Name
    known: int = 10_000


def _rules(*rows: tuple[str, str] | tuple[str, str, int]) -> list[_Rule]:
    return [_Rule(_Name(row[0]), _Name(row[1]), *row[2:]) for row in rows]


def _layer_rows(module: str, original: str) -> list[tuple[str, str]]:
    rows = [
        ("norm1.weight", "ln1.weight"),
        ("attention.q_proj.{p}", "attn.wq.{p}"),
        ("attention.k_proj.{p}", "attn.wk.{p}"),
        ("attention.v_proj.{p}", "attn.wv.{p}"),
        ("attention.o_proj.{p}", "attn.proj.{p}"),
        ("attention.q_norm.weight", "attn.q_norm.weight"),
        ("attention.k_norm.weight", "attn.k_norm.weight"),
        ("layer_scale1.lambda1", "attn.gamma.weight"),
        ("norm2.weight", "ln2.weight"),
        ("mlp.w12.{p}", "ffn.w12.{p}"),  # gate and up projection, one after the other; split by a converter
        ("mlp.down_proj.{p}", "ffn.w3.{p}"),
    ]
    return [(f"{module}.{{n}}.{inner}", f"{original}.{{n}}.{outer}") for inner, outer in rows]


_TRUNK = _rules(
    ("embeddings.cls_token", "cls_token"),
    ("embeddings.register_tokens", "storage_tokens"),
    ("embeddings.patch_embeddings.{p}", "patch_embed.projection.{p}"),
    *_layer_rows("model.layer", "blocks"),
    ("norm.weight", "ln1.weight"),
    ("tokenizer.cls_token", "tokenizer.w_cls"),
    ("tokenizer.position_embeddings", "tokenizer.local_pos_embed"),
    *_layer_rows("tokenizer.layer", "tokenizer.blocks"),
)

_PREDICTORS: dict[Task, str] = {
    "pose": "conv_pose",
    "seg": "conv_seg",
    "normal": "conv_normal",
    "pointmap": "conv_pointmap",
    "matting": "conv_matting",
    "albedo": "conv_albedo",
}


def _head_rules(task: Task, config: Sapiens2Config) -> list[_Rule]:
    transposed_known = {"seg": 4, "pose": 2}.get(task, 0)
    shuffled_known = 0 if task in ("seg", "pose") else 10_000
    convs_known = 2 if task == "seg" else 3
    final = 2 * len(config.head.scale_final_hidden_sizes or []) + 1
    rows: list[tuple[str, str] | tuple[str, str, int]] = [
        ("input_conv.convolution.{p}", "input_conv.0.{p}", shuffled_known),
        ("input_conv.norm.weight", "input_conv.1.norm.weight"),
        ("conv_layers.{n}.convolution.{p}", "conv_layers.{3n}.{p}", convs_known),
        ("conv_layers.{n}.norm.weight", "conv_layers.{3n+1}.norm.weight"),
        ("predictor.{p}", f"{_PREDICTORS[task]}.{{p}}"),
    ]
    transposed = ("upsample_layers.{n}.convolution.{p}", "deconv_layers.{3n}.{p}", transposed_known)
    shuffled = ("upsample_layers.{n}.convolution.{p}", "upsample_blocks.{n}.0.{p}", shuffled_known)
    # both are read; the first that fits is written
    rows += [shuffled, transposed] if config.head.use_pixel_shuffle else [transposed, shuffled]
    rows += [
        ("upsample_layers.{n}.norm.weight", "upsample_blocks.{n}.2.norm.weight"),
        ("upsample_layers.{n}.norm.weight", "deconv_layers.{3n+1}.norm.weight"),
    ]
    rows = [(f"decode_head.{row[0]}", f"decode_head.{row[1]}", *row[2:]) for row in rows]
    rows += [
        ("scale_head.conv_layers.{n}.convolution.{p}", "decode_head.scale_conv_layers.{3n}.{p}", 3),
        ("scale_head.conv_layers.{n}.norm.weight", "decode_head.scale_conv_layers.{3n+1}.norm.weight"),
        ("scale_head.predictor.proj.{p}", f"decode_head.scale_final_layer.{final}.{{p}}", 10_000 if final == 5 else 0),
        ("scale_head.predictor.block{n}.layers.0.{p}", "decode_head.scale_final_layer.{2n-1}.{p}", 3),
    ]
    return _rules(*rows)


class KeyMap:
    """Both directions for one model.

    Args:
        config: The model's configuration; it decides between joined and plain feed-forward and between head families.
        task: The model's task; ``None`` for the bare trunk.
    """

    def __init__(self, config: Sapiens2Config, task: Task | None = None) -> None:
        self.task = task
        self.gated = config.use_gated_mlp
        self._head = _head_rules(task, config) if task is not None else []

    def to_module(self, key: str) -> str:
        """Module name of a key as it stands in a file; names that are not known are returned as they are.

        A key of a joined gate and up projection becomes ``...mlp.w12...``, which no module has.
        """
        if key.startswith("backbone."):
            inner = key.removeprefix(
                "backbone."
            )  # what the original does not have keeps its own name behind the prefix
            name: str | None = f"model.{self._translate(_TRUNK, inner, to_module=True) or inner}"
        else:
            name = self._translate(_TRUNK, key, to_module=True)
            name = name if name is not None else self._translate(self._head, key, to_module=True)
        if name is None:
            return key
        return name if self.gated else name.replace(".mlp.w12.", ".mlp.up_proj.")

    def to_original(self, key: str, *, all_depths: bool = False) -> str:
        """Name to write for a module's key (gate and up projection already joined as ``...mlp.w12...``).

        Args:
            key: Name in the module.
            all_depths: Write the original name even where transformers' reader does not know it.
        """
        if self.task is None:
            return self._translate(_TRUNK, key, to_module=False) or key
        if key.startswith("model."):
            name = self._translate(_TRUNK, key.removeprefix("model."), to_module=False)
            return f"backbone.{name}" if name is not None else key
        return self._translate(self._head, key, to_module=False, all_depths=all_depths) or key

    def translate_state_dict(self, state_dict: dict[str, Any], prefix: str = "") -> None:
        """Rename the original names among a state dict's keys to module names, in place.

        Args:
            state_dict: Tensors by name; gate and up projections are split, ``rope_embed.periods`` is dropped.
            prefix: What stands before this model's names; other names are left alone.
        """
        # conv_layers.1.norm.weight is the first norm of the original and the second of the module; only the module
        # has one of index 0
        keeps_norms = f"{prefix}decode_head.conv_layers.0.norm.weight" in state_dict
        for key in [key for key in state_dict if key.startswith(prefix)]:
            name = key.removeprefix(prefix)
            if keeps_norms and _REFINEMENT_NORM.fullmatch(name):
                continue
            if name.removeprefix("backbone.") == "rope_embed.periods":
                del state_dict[key]
                continue
            module_name = self.to_module(name)
            if module_name == name:
                continue
            tensor = state_dict.pop(key)
            if ".mlp.w12." in module_name:
                for part, half in zip(("gate_proj", "up_proj"), tensor.chunk(2), strict=True):
                    state_dict[prefix + module_name.replace("w12", part)] = half
            else:
                state_dict[prefix + module_name] = tensor

    @staticmethod
    def _translate(rules: list[_Rule], key: str, *, to_module: bool, all_depths: bool = False) -> str | None:
        for rule in rules:
            source, target = (rule.original, rule.module) if to_module else (rule.module, rule.original)
            found = source.read(key)
            if found is not None:
                return key if not to_module and not all_depths and found[0] >= rule.known else target.write(*found)
        return None

    def transforms(self) -> list[WeightTransform]:
        """The table in the form that transformers' loading and saving applies."""
        transforms: list[WeightTransform] = [_TableRenaming(self)]
        if self.gated:
            transforms += [
                WeightConverter(
                    source_patterns=f"mlp.w12.{parameter}",
                    target_patterns=[f"mlp.gate_proj.{parameter}", f"mlp.up_proj.{parameter}"],
                    operations=[Chunk(dim=0)],
                )
                for parameter in ("weight", "bias")
            ]
        return transforms


class _TableRenaming(WeightRenaming):
    """All renamings of a :class:`KeyMap` as one transform: a lookup instead of one search for each pattern."""

    def __init__(self, key_map: KeyMap, writing: bool = False) -> None:
        super().__init__(source_patterns="$^", target_patterns="")
        self.key_map = key_map
        self.writing = writing

    def rename_source_key(self, source_key: str) -> tuple[str, str | None]:
        renamed = self.key_map.to_original(source_key) if self.writing else self.key_map.to_module(source_key)
        if renamed == source_key:
            return source_key, None
        self._was_used = True
        return renamed, self.source_patterns[0]

    def reverse_transform(self) -> WeightTransform:
        return _TableRenaming(self.key_map, writing=not self.writing)

    def copy(self, *_: Any, **__: Any) -> WeightTransform:
        return _TableRenaming(self.key_map, writing=self.writing)
