"""The task models: one trunk, one decode head, one forward path."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers.modeling_outputs import SemanticSegmenterOutput
from transformers.utils import ModelOutput
from transformers.utils.generic import can_return_tuple

from sapiens2 import losses
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.heads import Sapiens2Head, Sapiens2PointmapScaleHead
from sapiens2.models.model import Sapiens2Model
from sapiens2.models.outputs import (
    Sapiens2AlbedoEstimatorOutput,
    Sapiens2ImageMattingOutput,
    Sapiens2NormalEstimatorOutput,
    Sapiens2PointmapEstimatorOutput,
    Sapiens2PoseEstimatorOutput,
)
from sapiens2.models.pretrained import Sapiens2PreTrainedModel
from sapiens2.types import Task

__all__ = [
    "TASK_MODELS",
    "Sapiens2ForAlbedoEstimation",
    "Sapiens2ForImageMatting",
    "Sapiens2ForNormalEstimation",
    "Sapiens2ForPointmapEstimation",
    "Sapiens2ForPoseEstimation",
    "Sapiens2ForSemanticSegmentation",
    "Sapiens2TaskModel",
    "flip_back",
]

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


class Sapiens2ForPoseEstimation(Sapiens2TaskModel):
    """Keypoint heatmaps."""

    task = "pose"
    output_class = Sapiens2PoseEstimatorOutput

    def _fields(self, features: Tensor) -> Fields:
        return {"heatmaps": self.decode_head(features)}

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        flip_pairs: Tensor | list[list[int]] | None = None,
        labels: Tensor | None = None,
        label_weights: Tensor | None = None,
        **kwargs: Any,
    ) -> Sapiens2PoseEstimatorOutput:
        """Predict heatmaps.

        Args:
            pixel_values: ``(persons, channels, height, width)``, normalised crops.
            flip_pairs: ``(pairs, 2)`` keypoints that mirror each other. When given, ``pixel_values`` are taken to be
                mirrored and the heatmaps are turned back (left-right and in their order) before they are returned.
            labels: Target heatmaps ``(persons, num_keypoints, h, w)``, of any height and width.
            label_weights: ``(persons, num_keypoints)``, ``(persons, num_keypoints, 1, 1)`` or full size; 0 is
                invisible.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``heatmaps`` ``(persons, num_keypoints, h, w)`` and, with labels, the weighted mean squared error.

        Raises:
            InputError: Shapes that do not fit; a keypoint of ``flip_pairs`` that does not exist.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["heatmaps"] is not None
            assert labels is not None
            return losses.heatmap_mse_loss(fields["heatmaps"], labels, label_weights)

        output = self._predict(pixel_values, None if labels is None else loss, **kwargs)
        if flip_pairs is not None:
            output["heatmaps"] = flip_back(output["heatmaps"], flip_pairs)
        return output


def flip_back(heatmaps: Tensor, flip_pairs: Tensor | list[list[int]]) -> Tensor:
    """Heatmaps of a mirrored image as those of the image itself.

    Args:
        heatmaps: ``(persons, num_keypoints, h, w)``.
        flip_pairs: ``(pairs, 2)``; keypoints in no pair mirror to themselves.

    Raises:
        InputError: Not pairs, or a keypoint that does not exist.
    """
    num_keypoints = heatmaps.shape[1]
    pairs = torch.as_tensor(flip_pairs, dtype=torch.long, device=heatmaps.device)
    if pairs.numel() == 0:
        return heatmaps.flip(-1)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"flip_pairs must be (pairs, 2), got {tuple(pairs.shape)}")
    if not torch.compiler.is_compiling() and not (int(pairs.min()) >= 0 and int(pairs.max()) < num_keypoints):
        named = f"{int(pairs.min())} to {int(pairs.max())}"
        raise InputError(f"flip_pairs name keypoints {named}, and the model has 0 to {num_keypoints - 1}")
    order = torch.arange(num_keypoints, device=heatmaps.device)
    order = order.scatter(0, torch.cat((pairs[:, 0], pairs[:, 1])), torch.cat((pairs[:, 1], pairs[:, 0])))
    return heatmaps.index_select(1, order).flip(-1)


class Sapiens2ForSemanticSegmentation(Sapiens2TaskModel):
    """Body-part logits."""

    task = "seg"
    output_class = SemanticSegmenterOutput

    def _fields(self, features: Tensor) -> Fields:
        return {"logits": self.decode_head(features)}

    @can_return_tuple
    def forward(self, pixel_values: Tensor, labels: Tensor | None = None, **kwargs: Any) -> SemanticSegmenterOutput:
        """Predict class logits.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised.
            labels: Class ids ``(batch, h, w)``; ``config.semantic_loss_ignore_index`` is left out.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``logits`` ``(batch, num_labels, h, w)`` and, with labels, the cross-entropy.

        Raises:
            InputError: Shapes that do not fit, or a class that does not exist.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["logits"] is not None
            assert labels is not None
            return losses.cross_entropy_loss(
                fields["logits"], labels, ignore_index=self.config.semantic_loss_ignore_index
            )

        return self._predict(pixel_values, None if labels is None else loss, **kwargs)


class Sapiens2ForNormalEstimation(Sapiens2TaskModel):
    """Surface normals."""

    task = "normal"
    output_class = Sapiens2NormalEstimatorOutput

    def _fields(self, features: Tensor) -> Fields:
        return {"normals": self.decode_head(features)}

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        label_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Sapiens2NormalEstimatorOutput:
        """Predict normals.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised.
            labels: Normals ``(batch, 3, h, w)`` at the size of the output.
            label_mask: ``(batch, h, w)`` or ``(batch, 1, h, w)`` bool, true where the labels count.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``normals`` ``(batch, 3, h, w)``, not of unit length, and, with labels, the original recipe's loss.

        Raises:
            InputError: Shapes that do not fit.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["normals"] is not None
            assert labels is not None
            return losses.normal_recipe_loss(fields["normals"], labels, label_mask).total

        return self._predict(pixel_values, None if labels is None else loss, **kwargs)


class Sapiens2ForPointmapEstimation(Sapiens2TaskModel):
    """Pointmaps in the canonical camera, and the scale that makes them metric."""

    task = "pointmap"
    output_class = Sapiens2PointmapEstimatorOutput

    def _add_heads(self, config: Sapiens2Config) -> None:
        self.scale_head = Sapiens2PointmapScaleHead(config) if config.head.has_scale_branch else None

    def _fields(self, features: Tensor) -> Fields:
        scales = None if self.scale_head is None else self.scale_head(features)
        return {"pointmaps": self.decode_head(features), "scales": scales}

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        label_scales: Tensor | None = None,
        label_intrinsics: Tensor | None = None,
        label_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Sapiens2PointmapEstimatorOutput:
        """Predict pointmaps.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised.
            labels: Canonical pointmaps ``(batch, 3, h, w)`` at the size of the output; zero where there is nothing.
            label_scales: Canonical over real focal length, ``(batch, 1)``; without it the scale is not trained.
            label_intrinsics: Camera matrices ``(batch, 3, 3)`` of the network's input frame, in pixels.
            label_mask: ``(batch, h, w)`` or ``(batch, 1, h, w)`` bool, true where the labels count.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``pointmaps`` ``(batch, 3, h, w)``, ``scales`` ``(batch, 1)`` or ``None`` and, with labels, the original
            recipe's loss, less the terms whose labels are not given.

        Raises:
            InputError: Shapes that do not fit.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["pointmaps"] is not None
            assert labels is not None
            return losses.pointmap_recipe_loss(
                fields["pointmaps"],
                labels,
                scales=fields["scales"] if label_scales is not None else None,
                target_scales=label_scales,
                intrinsics=label_intrinsics,
                mask=label_mask,
            ).total

        return self._predict(pixel_values, None if labels is None else loss, **kwargs)


class Sapiens2ForImageMatting(Sapiens2TaskModel):
    """Alpha and premultiplied foreground."""

    task = "matting"
    output_class = Sapiens2ImageMattingOutput
    num_output_channels = 4

    def _fields(self, features: Tensor) -> Fields:
        maps = self.decode_head(features).sigmoid()
        return {"alphas": maps[:, 3:], "foregrounds": maps[:, :3]}

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        label_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Sapiens2ImageMattingOutput:
        """Predict mattes.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised.
            labels: ``(batch, 4, h, w)`` in [0, 1]: premultiplied RGB, then alpha, at the size of the output.
            label_mask: ``(batch, h, w)`` or ``(batch, 1, h, w)`` bool, true where the labels count.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``alphas`` ``(batch, 1, h, w)``, ``foregrounds`` ``(batch, 3, h, w)`` and, with labels, the matting loss.

        Raises:
            InputError: Shapes that do not fit.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["alphas"] is not None
            assert fields["foregrounds"] is not None
            assert labels is not None
            return losses.matting_recipe_loss(fields["alphas"], fields["foregrounds"], labels, mask=label_mask).total

        return self._predict(pixel_values, None if labels is None else loss, **kwargs)


class Sapiens2ForAlbedoEstimation(Sapiens2TaskModel):
    """Albedo: the colour of surfaces without light and shadow."""

    task = "albedo"
    output_class = Sapiens2AlbedoEstimatorOutput

    def _fields(self, features: Tensor) -> Fields:
        return {"albedos": self.decode_head(features)}

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        label_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Sapiens2AlbedoEstimatorOutput:
        """Predict albedo.

        Args:
            pixel_values: ``(batch, channels, height, width)``, normalised.
            labels: sRGB ``(batch, 3, h, w)`` in [0, 1] at the size of the output.
            label_mask: ``(batch, h, w)`` or ``(batch, 1, h, w)`` bool, true where the labels count.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``albedos`` ``(batch, 3, h, w)``, not bounded, and, with labels, the original recipe's loss.

        Raises:
            InputError: Shapes that do not fit.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["albedos"] is not None
            assert labels is not None
            return losses.albedo_recipe_loss(fields["albedos"], labels, label_mask).total

        return self._predict(pixel_values, None if labels is None else loss, **kwargs)


TASK_MODELS: dict[Task, type[Sapiens2TaskModel]] = {
    model.task: model
    for model in (
        Sapiens2ForPoseEstimation,
        Sapiens2ForSemanticSegmentation,
        Sapiens2ForNormalEstimation,
        Sapiens2ForPointmapEstimation,
        Sapiens2ForImageMatting,
        Sapiens2ForAlbedoEstimation,
    )
}
