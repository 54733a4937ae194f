"""What all task models share: one trunk, one decode head, one forward path."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor
from transformers.utils import ModelOutput

from sapiens2.errors import ConfigurationError
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.heads import Sapiens2Head
from sapiens2.models.model import Sapiens2Model
from sapiens2.models.pretrained import Sapiens2PreTrainedModel
from sapiens2.types import Task

__all__ = ["Fields", "Sapiens2TaskModel"]

Fields = dict[str, Tensor | None]


class Sapiens2TaskModel(Sapiens2PreTrainedModel):
    """Trunk and decode head.

    A configuration without a head gets the published one of the task (:meth:`Sapiens2Config.for_task`).
    Subclasses say what becomes of the head's maps (:meth:`_fields`) and which loss the labels ask for.
    """

    task: ClassVar[Task]
    output_class: ClassVar[type[ModelOutput]]
    num_output_channels: ClassVar[int | None] = None

    def __init__(self, config: Sapiens2Config) -> None:
        config = config.for_task(self.task)
        if self.num_output_channels not in (None, config.num_labels):
            raise ConfigurationError(
                f"num_labels={config.num_labels}: {type(self).__name__} predicts {self.num_output_channels} channels"
            )
        super().__init__(config)
        self.model = Sapiens2Model(config)
        self.decode_head = Sapiens2Head(config)
        self._add_heads(config)
        self.post_init()

    def _add_heads(self, config: Sapiens2Config) -> None:
        """Further heads of the task."""

    @abstractmethod
    def _fields(self, features: Tensor) -> Fields:
        """Output fields from the trunk's features ``(batch, hidden_size, h, w)``."""

    def _predict(self, pixel_values: Tensor, loss: Callable[[Fields], Tensor] | None, **kwargs: Any) -> ModelOutput:
        """The forward path of all tasks."""
        encoded = self.model(pixel_values, **kwargs, return_dict=True)
        patches = encoded.last_hidden_state[:, self.model.num_prefix_tokens :]
        features = patches.transpose(1, 2).unflatten(2, self.model.grid_hw(pixel_values))
        fields = self._fields(features)
        return self.output_class(
            loss=None if loss is None else loss(fields),
            **fields,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
