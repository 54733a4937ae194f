"""The task models of whole images, and the list of all task models."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.modeling_outputs import SemanticSegmenterOutput
from transformers.utils.generic import can_return_tuple

from sapiens2 import losses
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.heads import Sapiens2PointmapScaleHead
from sapiens2.models.outputs import (
    Sapiens2AlbedoEstimatorOutput,
    Sapiens2ImageMattingOutput,
    Sapiens2NormalEstimatorOutput,
    Sapiens2PointmapEstimatorOutput,
)
from sapiens2.models.pose import Sapiens2ForPoseEstimation
from sapiens2.models.task_model import Fields, Sapiens2TaskModel
from sapiens2.types import Task

__all__ = [
    "TASK_MODELS",
    "Sapiens2ForAlbedoEstimation",
    "Sapiens2ForImageMatting",
    "Sapiens2ForNormalEstimation",
    "Sapiens2ForPointmapEstimation",
    "Sapiens2ForSemanticSegmentation",
]


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
