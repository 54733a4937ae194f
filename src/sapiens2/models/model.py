"""The trunk: pixels to tokens."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPooling
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.layers.embeddings import Sapiens2Embeddings
from sapiens2.models.layers.layer import Sapiens2Layer
from sapiens2.models.layers.rms_norm import Sapiens2RMSNorm
from sapiens2.models.layers.rope import RopeTables, Sapiens2RopePositionEmbedding
from sapiens2.models.layers.window_tokenizer import Sapiens2WindowTokenizer
from sapiens2.models.pretrained import Sapiens2PreTrainedModel

__all__ = ["Sapiens2Encoder", "Sapiens2Model"]


class Sapiens2Encoder(nn.Module):
    """The stack of transformer layers."""

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__()
        assert config.num_key_value_heads_per_layer is not None
        self.layer = nn.ModuleList(
            Sapiens2Layer(config, kv_heads, use_qk_norm=config.use_qk_norm)
            for kv_heads in config.num_key_value_heads_per_layer
        )

    def forward(self, hidden_states: Tensor, position_embeddings: RopeTables, **kwargs: Any) -> Tensor:
        """``(batch, tokens, hidden_size)`` to the same shape."""
        for layer in self.layer:
            hidden_states = layer(hidden_states, position_embeddings, **kwargs)
        return hidden_states


class Sapiens2Model(Sapiens2PreTrainedModel):
    """The bare trunk. Tokens are class, registers, then patches row by row."""

    def __init__(self, config: Sapiens2Config) -> None:
        super().__init__(config)
        self.embeddings = Sapiens2Embeddings(config)
        self.tokenizer = Sapiens2WindowTokenizer(config) if config.use_tokenizer else None
        self.rope_embeddings = Sapiens2RopePositionEmbedding(config)
        self.model = Sapiens2Encoder(config)
        self.norm = Sapiens2RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.num_prefix_tokens = 1 + config.num_register_tokens
        self.post_init()

    @capture_outputs(tie_last_hidden_states=False)
    def encode(self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None, **kwargs: Any) -> BaseModelOutput:
        """Tokens of the last layer, before the final norm; hidden states and attentions where asked for."""
        kwargs.pop("output_hidden_states", None)
        kwargs.pop("output_attentions", None)
        tokens = self.embeddings(pixel_values, bool_masked_pos, self.tokenizer, **kwargs)
        tables = self.rope_embeddings(self.grid_hw(pixel_values), like=tokens)
        return BaseModelOutput(last_hidden_state=self.model(tokens, tables, **kwargs))

    def grid_hw(self, pixel_values: Tensor) -> tuple[int, int]:
        """Rows and columns of the token grid of ``(batch, channels, height, width)``."""
        height, width = self.config.feature_stride_hw
        return pixel_values.shape[2] // height, pixel_values.shape[3] // width

    @can_return_tuple
    def forward(
        self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None, **kwargs: Any
    ) -> BaseModelOutputWithPooling:
        """Encode images.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised; sides multiples of the patch size.
            bool_masked_pos: ``(batch, patches)``, true where the mask token replaces the patch (``use_mask_token``).
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``last_hidden_state`` ``(batch, tokens, hidden_size)`` after the final norm, ``pooler_output`` its class
            token, ``hidden_states`` before the norm (embeddings and every layer), ``attentions``.

        Raises:
            InputError: Pixels or mask of a shape that the model cannot take.
        """
        encoded = self.encode(pixel_values, bool_masked_pos, **kwargs, return_dict=True)
        tokens = self.norm(encoded.last_hidden_state)
        return BaseModelOutputWithPooling(
            last_hidden_state=tokens,
            pooler_output=tokens[:, 0],
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
