"""The trunk as a backbone: feature maps of chosen stages."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.backbone_utils import BackboneMixin
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import resolve_hidden_states_indices, selected_hidden_states

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
        selected = selected_hidden_states(asked)
        wanted = None if selected is None else resolve_hidden_states_indices(self, selected, num_states)
        keep: Any = True if asked is True else sorted({*stages, *(wanted or ())})
        encoded = self.encode(pixel_values, output_hidden_states=keep, **kwargs, return_dict=True)
        chosen = [encoded.hidden_states[index] for index in stages]
        returned = encoded.hidden_states if asked is True else None
        if selected and wanted is not None:
            returned = tuple(state if i in wanted else None for i, state in enumerate(encoded.hidden_states))
        return Sapiens2BackboneOutput(
            feature_maps=tuple(self._feature_map(tokens, pixel_values) for tokens in chosen),
            hidden_states=returned,
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
