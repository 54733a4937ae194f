"""The trunk as a backbone: feature maps of chosen stages."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.backbone_utils import BackboneMixin
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import selected_hidden_states

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.model import Sapiens2Model
from sapiens2.models.outputs import Sapiens2BackboneOutput

__all__ = ["Sapiens2Backbone"]


class Sapiens2Backbone(BackboneMixin, Sapiens2Model):
    """Feature maps of the stages that ``out_features`` or ``out_indices`` name: ``stem``, ``stage1``, ..."""

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__(config)
        self.num_features = [config.hidden_size] * (config.num_hidden_layers + 1)

    @can_return_tuple
    def forward(
        self, pixel_values: Tensor, return_class_token: bool | None = None, **kwargs: Any
    ) -> Sapiens2BackboneOutput:
        """Encode images and pick stages. Only what is returned is normalised and kept.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised; sides multiples of the patch size.
            return_class_token: Return the class token of each stage too; defaults to the configuration's field.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``feature_maps``, one for each stage, ``(batch, hidden_size, h, w)``, or ``(batch, h * w, hidden_size)``
            with ``reshape_hidden_states=False``; ``cls_tokens``; ``hidden_states`` and ``attentions`` when asked for.
        """
        if return_class_token is None:
            return_class_token = bool(getattr(self.config, "return_class_token", False))
        asked = kwargs.pop("output_hidden_states", None)
        asked = self.config.output_hidden_states if asked is None else asked
        num_states = self.config.num_hidden_layers + 1
        stages = [index % num_states for index in self.out_indices]
        wanted = selected_hidden_states(asked)
        keep: Any = True if asked is True else sorted({*stages, *(i % num_states for i in wanted or [])})
        encoded = self.encode(pixel_values, output_hidden_states=keep, **kwargs, return_dict=True)
        chosen = [encoded.hidden_states[index] for index in stages]
        return Sapiens2BackboneOutput(
            feature_maps=tuple(self._feature_map(tokens, pixel_values) for tokens in chosen),
            hidden_states=self._returned_states(encoded.hidden_states, asked, wanted),
            attentions=encoded.attentions,
            cls_tokens=tuple(self._normalised(tokens[:, 0]) for tokens in chosen) if return_class_token else None,
        )

    def _normalised(self, tokens: Tensor) -> Tensor:
        output: Tensor = self.norm(tokens) if self.config.normalize_backbone_outputs else tokens
        return output

    def _feature_map(self, tokens: Tensor, pixel_values: Tensor) -> Tensor:
        patches = self._normalised(tokens[:, self.num_prefix_tokens :])
        if not self.config.reshape_hidden_states:
            return patches
        return patches.transpose(1, 2).unflatten(2, self.grid_hw(pixel_values)).contiguous()

    @staticmethod
    def _returned_states(
        states: tuple[Tensor | None, ...], asked: Any, wanted: list[int] | None
    ) -> tuple[Tensor | None, ...] | None:
        if not asked and wanted is None:
            return None
        if wanted is None:
            return states
        kept = {index % len(states) for index in wanted}
        return tuple(state if i in kept else None for i, state in enumerate(states))
