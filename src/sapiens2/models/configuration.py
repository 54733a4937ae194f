"""Configuration of the Sapiens2 models.

Names, defaults and JSON are those of transformers' ``Sapiens2Config``, so that a ``config.json`` reads the same in
both; what is added here (4K window tokenizer, RoPE table dtype, head norm) is written only when it is used.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from transformers import PreTrainedConfig
from transformers.activations import ACT2FN
from transformers.backbone_utils import BackboneConfigMixin

from sapiens2.assets.sizes import head_fields, size_of_hidden_size, trunk_fields
from sapiens2.errors import ConfigurationError
from sapiens2.models.field_types import check_field_types
from sapiens2.models.head_configuration import Sapiens2HeadConfig, drop_defaults, require
from sapiens2.types import Task

__all__ = ["Sapiens2Config", "Sapiens2HeadConfig"]


class Sapiens2Config(BackboneConfigMixin, PreTrainedConfig):
    """Configuration of every Sapiens2 model; ``Sapiens2Config()`` is the 0.4B trunk.

    The fields are those of the reference. ``num_key_value_heads_per_layer`` is derived when it is not given: full
    attention in the first and last ``num_first/last_full_attention_layers`` layers, ``num_key_value_attention_heads``
    between. ``pos_embed_rescale`` (default 2.0, as in the reference) makes a model in train mode random; the published
    models were trained without, and :meth:`from_size` switches it off.

    Attributes:
        use_tokenizer: Put the 4K window tokenizer in front of the trunk (windows of patches become one token each).
        tokenizer_window_size: Patches along each side of a window.
        num_tokenizer_layers: Transformer layers of the tokenizer; needed with ``use_tokenizer``.
        rope_table_dtype: ``"float32"``, or ``"bfloat16"`` to compute the RoPE tables and the rotation as the original
            does.

    Raises:
        ConfigurationError: A value that no model can have; the message names the field.
    """

    model_type = "sapiens2"
    sub_configs_defaults = {"head_config": Sapiens2HeadConfig}  # noqa: RUF012  transformers resolves it in place
    additions: ClassVar[dict[str, Any]] = {
        "use_tokenizer": False,
        "tokenizer_window_size": 4,
        "num_tokenizer_layers": None,
        "rope_table_dtype": "float32",
    }

    patch_size: int | list[int] | tuple[int, int] = 16
    hidden_size: int = 1024
    intermediate_size: int = 4096
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    hidden_act: str = "silu"
    attention_dropout: float | int = 0.0
    initializer_range: float = 0.02
    rope_theta: float = 100.0
    image_size: int | list[int] | tuple[int, int] = 224
    num_channels: int = 3
    query_bias: bool = True
    key_bias: bool = True
    value_bias: bool = True
    proj_bias: bool = True
    mlp_bias: bool = True
    layerscale_value: float = 1.0
    drop_path_rate: float | int = 0.0
    use_gated_mlp: bool = True
    num_register_tokens: int = 8
    pos_embed_shift: float | None = None
    pos_embed_jitter: float | None = None
    pos_embed_rescale: float | None = 2.0
    _out_features: list[str] | None = None
    _out_indices: list[int] | None = None
    reshape_hidden_states: bool = True
    use_mask_token: bool = False
    rms_norm_eps: float = 1e-6
    normalize_backbone_outputs: bool = True
    use_qk_norm: bool = True
    num_key_value_heads_per_layer: list[int] | None = None
    num_key_value_attention_heads: int = 8
    num_first_full_attention_layers: int = 8
    num_last_full_attention_layers: int = 8
    semantic_loss_ignore_index: int = 255
    flip_pairs: list[list[int]] | None = None
    head_config: Sapiens2HeadConfig | dict[str, Any] | None = None
    use_tokenizer: bool = False
    tokenizer_window_size: int = 4
    num_tokenizer_layers: int | None = None
    rope_table_dtype: str = "float32"

    def __post_init__(self, **kwargs: Any) -> None:
        check_field_types(self, Sapiens2Config)
        self._labels_given = self.id2label is not None or kwargs.get("num_labels") is not None
        require(self.num_hidden_layers >= 1, f"num_hidden_layers={self.num_hidden_layers} must be 1 or more")
        if self.num_key_value_heads_per_layer is None:
            self.num_key_value_heads_per_layer = self._default_key_value_heads()
        self.stage_names = ["stem", *(f"stage{i}" for i in range(1, self.num_hidden_layers + 1))]
        kwargs.pop("stage_names", None)
        out_features = kwargs.pop("out_features", self._out_features)
        out_indices = kwargs.pop("out_indices", self._out_indices)
        try:
            self.set_output_features_output_indices(out_features=out_features, out_indices=out_indices)
        except (ValueError, IndexError, TypeError) as error:
            raise ConfigurationError(f"{out_features=}, {out_indices=}: {error}") from error
        super().__post_init__(**kwargs)
        self._check()
        if self.head.has_scale_branch and self.head.scale_final_input_size is None:
            self.head.scale_final_input_size = self.scale_feature_size(self.head)

    def _default_key_value_heads(self) -> list[int]:
        first, last = self.num_first_full_attention_layers, self.num_last_full_attention_layers
        return [
            self.num_attention_heads
            if layer < first or layer >= self.num_hidden_layers - last
            else self.num_key_value_attention_heads
            for layer in range(self.num_hidden_layers)
        ]

    def _check(self) -> None:
        width, heads = self.hidden_size, self.num_attention_heads
        require(heads >= 1, f"num_attention_heads={heads} must be 1 or more")
        require(
            width >= 1 and width % heads == 0,
            f"hidden_size={width} must be divisible by num_attention_heads={heads}",
        )
        require(
            width % (4 * heads) == 0,
            f"hidden_size={width} must be divisible by 4 * num_attention_heads = {4 * heads}: RoPE rotates the head "
            f"dimension ({width // heads}) in quarters (two axes, two halves)",
        )
        per_layer = self.num_key_value_heads_per_layer or []
        require(
            len(per_layer) == self.num_hidden_layers,
            f"num_key_value_heads_per_layer has {len(per_layer)} entries and num_hidden_layers is "
            f"{self.num_hidden_layers}; give one number for each layer",
        )
        for layer, kv_heads in enumerate(per_layer):
            require(
                1 <= kv_heads <= heads and heads % kv_heads == 0,
                f"num_key_value_heads_per_layer[{layer}]={kv_heads} must divide num_attention_heads={heads} "
                "(set num_key_value_attention_heads, or the list)",
            )
        for name in ("intermediate_size", "num_channels", "tokenizer_window_size"):
            require(getattr(self, name) >= 1, f"{name}={getattr(self, name)} must be 1 or more")
        for name in ("num_register_tokens", "num_first_full_attention_layers", "num_last_full_attention_layers"):
            require(getattr(self, name) >= 0, f"{name}={getattr(self, name)} must not be negative")
        for name in ("attention_dropout", "drop_path_rate"):
            require(0 <= getattr(self, name) < 1, f"{name}={getattr(self, name)} must be in [0, 1)")
        for name in ("rope_theta", "rms_norm_eps", "initializer_range"):
            value = getattr(self, name)
            require(0 < value < math.inf, f"{name}={value} must be positive and finite")
        require(math.isfinite(self.layerscale_value), f"layerscale_value={self.layerscale_value} must be finite")
        for name in ("pos_embed_jitter", "pos_embed_rescale"):
            value = getattr(self, name)
            require(
                value is None or 1 <= value < math.inf,
                f"{name}={value} must be 1 or more: it bounds a log-uniform factor in [1/x, x]",
            )
        shift = self.pos_embed_shift
        require(shift is None or 0 <= shift < math.inf, f"pos_embed_shift={shift} must be 0 or more, and finite")
        require(self.hidden_act in ACT2FN, f"hidden_act={self.hidden_act!r} is not an activation of transformers")
        require(self.num_labels >= 1, f"num_labels={self.num_labels} must be 1 or more")
        self._check_sizes()

    def _check_sizes(self) -> None:
        for name in ("patch_size", "image_size"):
            value = getattr(self, name)
            sides = [value] if isinstance(value, int) else list(value)
            require(
                (isinstance(value, int) or len(sides) == 2) and all(side >= 1 for side in sides),
                f"{name}={value} must be one number or (height, width), each 1 or more",
            )
        require(
            self.rope_table_dtype in ("float32", "bfloat16"),
            f"rope_table_dtype={self.rope_table_dtype!r} must be 'float32' or 'bfloat16'",
        )
        require(
            not self.use_tokenizer or (self.num_tokenizer_layers or 0) >= 1,
            f"use_tokenizer=True needs num_tokenizer_layers of 1 or more, got {self.num_tokenizer_layers}",
        )
        paired = [index for pair in self.flip_pairs or [] for index in pair]
        require(
            all(len(pair) == 2 for pair in self.flip_pairs or []),
            f"flip_pairs must hold pairs [left, right], got {self.flip_pairs}",
        )
        require(
            min(paired, default=0) >= 0 and len(set(paired)) == len(paired),
            f"flip_pairs={self.flip_pairs} must name keypoints from 0, each in one pair at most",
        )

    @classmethod
    def from_size(cls, size: str, task: Task | None = None, **overrides: Any) -> Sapiens2Config:
        """The published configuration of a size, with the head of a task.

        Args:
            size: ``"nano"``, ``"0.1b"``, ``"0.4b"``, ``"0.8b"``, ``"1b"``, ``"1b-4k"`` or ``"5b"``.
            task: ``"pose"``, ``"seg"``, ``"normal"``, ``"pointmap"``, ``"matting"``, ``"albedo"``, or ``None`` for
                the trunk.
            **overrides: Any field, given precedence.

        Raises:
            ConfigurationError: No such size or task.
        """
        fields: dict[str, Any] = {**trunk_fields(size), "layerscale_value": 1e-4, "pos_embed_rescale": None}
        if task is not None:
            head, num_labels = head_fields(task, size)
            fields |= {"head_config": head, **cls._published_labels(task, num_labels)}
            if "num_labels" in overrides or "id2label" in overrides:
                for name in ("num_labels", "id2label", "label2id"):
                    fields.pop(name, None)
        return cls(**{**fields, **overrides})

    @staticmethod
    def _published_labels(task: Task, num_labels: int) -> dict[str, Any]:
        from sapiens2.assets.tables import keypoint_table, part_table

        if task == "pose":
            names, pairs = keypoint_table().names, keypoint_table().flip_pairs
            labels: dict[str, Any] = {"flip_pairs": [list(pair) for pair in pairs]}
        elif task == "seg":
            names, labels = part_table().names, {}
        else:
            return {"num_labels": num_labels}
        return labels | {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}

    def for_task(self, task: Task) -> Sapiens2Config:
        """This configuration with everything that a model of ``task`` needs; itself when nothing lacks.

        A missing head becomes the task's published one, with the widths of the size whose trunk is as wide as this one.
        Labels that were not given become the published ones, except where a given pose or segmentation head says that
        the default two classes may be meant.
        """
        head, num_labels = head_fields(task, size_of_hidden_size(self.hidden_size))
        takes_head = not self.head.is_set
        require(
            not takes_head or not self.head.changed_fields,
            f"head_config={self.head.changed_fields} describes no layers: give upsample_out_channels and "
            "conv_out_channels too, or no head_config for the published one",
        )
        labels_given = (
            self._labels_given or self.num_labels != 2
        )  # two is what transformers assumes when nothing is said
        takes_labels = not labels_given and (takes_head or task not in ("pose", "seg"))
        if not takes_head and not (takes_labels and self.num_labels != num_labels):
            return self
        fields = self.to_dict()
        if takes_head:
            fields["head_config"] = head
        if takes_labels:
            fields = {key: value for key, value in fields.items() if key not in ("id2label", "label2id")}
            fields |= {k: v for k, v in self._published_labels(task, num_labels).items() if fields.get(k) is None}
        config = type(self)(**fields, attn_implementation=self._attn_implementation)
        config._name_or_path = self._name_or_path
        return config

    @property
    def head(self) -> Sapiens2HeadConfig:
        """The decode head's configuration as an object."""
        assert isinstance(self.head_config, Sapiens2HeadConfig)
        return self.head_config

    @property
    def patch_size_hw(self) -> tuple[int, int]:
        """Patch ``(height, width)`` in pixels."""
        return _pair(self.patch_size)

    @property
    def image_size_hw(self) -> tuple[int, int]:
        """Image ``(height, width)`` in pixels."""
        return _pair(self.image_size)

    @property
    def feature_stride_hw(self) -> tuple[int, int]:
        """Pixels for each cell of the trunk's token grid ``(height, width)``: patches, or windows of patches."""
        window = self.tokenizer_window_size if self.use_tokenizer else 1
        height, width = self.patch_size_hw
        return height * window, width * window

    def scale_grid_hw(self, head: Sapiens2HeadConfig) -> tuple[int, int]:
        """Grid ``(height, width)`` after the stride-2 convolutions of the scale branch, at ``image_size``."""
        sides = [size // stride for size, stride in zip(self.image_size_hw, self.feature_stride_hw, strict=True)]
        for _ in head.scale_conv_out_channels or []:
            sides = [math.ceil(side / 2) for side in sides]
        return sides[0], sides[1]

    def scale_feature_size(self, head: Sapiens2HeadConfig) -> int:
        """Length of the flattened feature that the scale MLP takes, at ``image_size``."""
        height, width = self.scale_grid_hw(head)
        channels = (head.scale_conv_out_channels or [self.hidden_size])[-1]
        return channels * height * width

    def to_dict(self) -> dict[str, Any]:
        """All fields; those that transformers does not know only where they differ from their default."""
        fields = super().to_dict()
        fields.pop("_labels_given", None)
        return drop_defaults(fields, self.additions)


def _pair(value: int | list[int] | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))
