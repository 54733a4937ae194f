"""What all Sapiens2 models share: capabilities, initialisation, strict loading, original names on disk."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import PreTrainedModel, initialization as init
from transformers.utils.output_capturing import OutputRecorder

from sapiens2.errors import CheckpointError
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.heads.conv_layer import Sapiens2PixelRMSNorm
from sapiens2.models.heads.head_init import init_head_layer, is_head_layer
from sapiens2.models.key_map import KeyMap
from sapiens2.models.layers.attention import Sapiens2Attention
from sapiens2.models.layers.embeddings import Sapiens2Embeddings
from sapiens2.models.layers.layer import Sapiens2Layer
from sapiens2.models.layers.residual import Sapiens2LayerScale
from sapiens2.models.layers.rms_norm import Sapiens2RMSNorm
from sapiens2.models.layers.window_tokenizer import Sapiens2WindowTokenizer
from sapiens2.types import Task

__all__ = ["Sapiens2PreTrainedModel"]

logger = logging.getLogger(__name__)


class Sapiens2PreTrainedModel(PreTrainedModel):
    """Base class of the Sapiens2 models.

    ``from_pretrained`` reads original and module names, from safetensors only, and is strict: weights that are
    missing or unexpected are an error that lists them. Four things are not errors: the original's ``periods`` table; a
    missing mask token (both as in the reference); a trunk file in a task model (the new head is initialised, with a
    warning); a task file in a bare trunk (the head is left out).
    """

    config_class = Sapiens2Config
    base_model_prefix = "model"
    main_input_name = "pixel_values"
    input_modalities = ("image",)
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = False  # the losses are means: Trainer has to divide by the accumulation steps
    task: ClassVar[Task | None] = None

    _no_split_modules: ClassVar[list[str]] = ["Sapiens2Embeddings", "Sapiens2Layer", "Sapiens2ConvLayer"]
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True
    _can_record_outputs: ClassVar[dict[str, OutputRecorder]] = {
        # `model` names the encoder: the tokenizer's layers are not recorded
        "hidden_states": OutputRecorder(Sapiens2Layer, index=0, layer_name="model.layer"),
        "attentions": OutputRecorder(Sapiens2Attention, index=1, layer_name="model.layer"),
    }
    _input_embed_layer = "patch_embeddings"
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"rope_embed\.periods$"]
    _keys_to_ignore_on_load_missing: ClassVar[list[str]] = [r"embeddings\.mask_token$"]

    def __init__(self, config: Sapiens2Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.register_load_state_dict_pre_hook(_read_names_on_disk)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        std = self.config.initializer_range
        match module:
            case _ if is_head_layer(module):
                init_head_layer(module)
            case nn.Linear() | nn.Conv2d():
                init.trunc_normal_(module.weight, std=std)
                if module.bias is not None:
                    init.zeros_(module.bias)
            case Sapiens2RMSNorm() | Sapiens2PixelRMSNorm():
                init.ones_(module.weight)
            case Sapiens2LayerScale():
                init.constant_(module.lambda1, module.value)
            case Sapiens2Embeddings():
                init.trunc_normal_(module.cls_token, std=std)
                init.trunc_normal_(module.register_tokens, std=std)
                if module.mask_token is not None:
                    init.zeros_(module.mask_token)
            case Sapiens2WindowTokenizer():
                init.trunc_normal_(module.cls_token, std=std)
                init.trunc_normal_(module.position_embeddings, std=std)

    @property
    def key_map(self) -> KeyMap:
        """Names of this model's weights on disk."""
        return KeyMap(self.config, self.task)

    @property
    def _weight_conversions(self) -> list[Any]:
        """What ``save_pretrained`` undoes: always the whole table, whichever names the weights were read under."""
        return self.key_map.transforms()

    @_weight_conversions.setter
    def _weight_conversions(self, _used: list[Any]) -> None:
        """The loader reports the transforms that it used; the table does not depend on them."""

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | os.PathLike[str] | None, *args: Any, **kwargs: Any
    ) -> Any:
        """Load a checkpoint: a folder, or a hub id. Arguments as in transformers.

        Raises:
            CheckpointError: Weights that are missing, unexpected or of another shape; weights that are not safetensors.
        """
        if kwargs.get("state_dict") is None:
            if kwargs.get("use_safetensors", True) is False:
                raise CheckpointError("use_safetensors=False: only safetensors are read, since pickles can run code")
            kwargs["use_safetensors"] = True
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)

    @staticmethod
    def _load_pretrained_model(
        model: PreTrainedModel,
        state_dict: dict[str, Any] | None,
        checkpoint_files: list[str] | None,
        load_config: Any,
        expected_keys: list[str] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        transforms = model.key_map.transforms()
        if load_config.hf_quantizer is not None:
            transforms = load_config.hf_quantizer.update_weight_conversions(transforms, model)
        load_config = replace(load_config, weight_mapping=[*(load_config.weight_mapping or []), *transforms])
        result: tuple[Any, dict[str, Any]] = PreTrainedModel._load_pretrained_model(
            model, state_dict, checkpoint_files, load_config, expected_keys
        )
        return result

    @staticmethod
    def _finalize_model_loading(model: PreTrainedModel, load_config: Any, loading_info: Any) -> Any:
        source = str(load_config.pretrained_model_name_or_path or "the state dict")
        if loading_info.mismatched_keys and not load_config.ignore_mismatched_sizes:
            lines = [f"{key}: {tuple(got)}, expected {tuple(want)}" for key, got, want in loading_info.mismatched_keys]
            raise CheckpointError(
                f"{source} holds weights of other shapes than {type(model).__name__} with this configuration: "
                f"{'; '.join(sorted(lines)[:20])}. Give the configuration that belongs to the file, or pass "
                "ignore_mismatched_sizes=True to initialise them anew"
            )
        info = PreTrainedModel._finalize_model_loading(model, load_config, loading_info)
        model._check_loaded(info, source)
        return info

    def _check_loaded(self, info: Any, source: str) -> None:
        """Raise for weights that are missing or unexpected, save what the class docstring names."""
        heads = ("decode_head.", "scale_head.")
        missing, unexpected = sorted(info.missing_keys), sorted(info.unexpected_keys)
        if self.task is None:
            unexpected = [key for key in unexpected if not key.startswith(heads)]
        elif missing and all(key.startswith(heads) for key in missing) and not unexpected:
            head_keys = [key for key in self.state_dict() if key.startswith(heads)]
            if len(head_keys) == len(missing):
                logger.warning(
                    "%s holds a trunk without head: the head of %s is newly initialised; train it before use",
                    source,
                    type(self).__name__,
                )
                missing = []
        problems = [
            f"{len(keys)} {kind}: {', '.join(keys[:20])}{', ...' if len(keys) > 20 else ''}"
            for kind, keys in (("missing", missing), ("unexpected", unexpected))
            if keys
        ]
        if problems:
            raise CheckpointError(
                f"{source} does not hold the weights of {type(self).__name__} with this configuration. "
                f"{'; '.join(problems)}. Check that the task, size and head_config fit the file"
            )


def _read_names_on_disk(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Let ``load_state_dict`` take names as they are on disk, in place.

    ``Trainer`` resumes by loading the saved file straight into ``load_state_dict(strict=False)``: names that it did not
    know would leave the weights as they were, without a word.
    """
    assert isinstance(module, Sapiens2PreTrainedModel)
    module.key_map.translate_state_dict(state_dict, prefix)
