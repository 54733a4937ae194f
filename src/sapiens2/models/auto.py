"""transformers' Auto classes, pointed at this library."""

from __future__ import annotations

import os
from typing import Any

from sapiens2.models.backbone import Sapiens2Backbone
from sapiens2.models.configuration import Sapiens2Config, Sapiens2HeadConfig
from sapiens2.models.model import Sapiens2Model
from sapiens2.models.pose import Sapiens2ForPoseEstimation
from sapiens2.models.pretrained import Sapiens2PreTrainedModel
from sapiens2.models.tasks import (
    TASK_MODELS,
    Sapiens2ForImageMatting,
    Sapiens2ForNormalEstimation,
    Sapiens2ForPointmapEstimation,
    Sapiens2ForSemanticSegmentation,
)

__all__ = ["Sapiens2AutoModel", "model_class_of", "register_auto_classes"]


def model_class_of(config: Sapiens2Config) -> type[Sapiens2PreTrainedModel]:
    """The class that ``config.architectures`` names; :class:`Sapiens2Model` when it names none of ours."""
    known: dict[str, type[Sapiens2PreTrainedModel]] = {model.__name__: model for model in TASK_MODELS.values()}
    known[Sapiens2Backbone.__name__] = Sapiens2Backbone
    for name in config.architectures or []:
        if name in known:
            return known[name]
    return Sapiens2Model


class Sapiens2AutoModel:
    """What ``AutoModel`` resolves to: the task model for a task checkpoint, the bare trunk otherwise.

    The reference's examples read ``outputs.heatmaps`` and the like from ``AutoModel``. A tuple of classes in
    transformers' mapping would do the same but fails when ``architectures`` is missing.
    """

    config_class = Sapiens2Config

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        *args: Any,
        config: Sapiens2Config | None = None,
        **kwargs: Any,
    ) -> Any:
        """Load a checkpoint with the class that its configuration names."""
        if config is None:
            config = Sapiens2Config.from_pretrained(pretrained_model_name_or_path)
        return model_class_of(config).from_pretrained(pretrained_model_name_or_path, *args, config=config, **kwargs)

    @classmethod
    def _from_config(cls, config: Sapiens2Config, **kwargs: Any) -> Any:
        return model_class_of(config)._from_config(config, **kwargs)


def register_auto_classes() -> None:
    """Make transformers' Auto classes give this library's Sapiens2 classes. Calling it again changes nothing more.

    ``AutoConfig``, ``AutoModel``, ``AutoBackbone``, ``AutoImageProcessor`` and the ``AutoModelFor...`` of every task,
    ``AutoModelForKeypointDetection`` included. Importing the library alone changes nothing in transformers.
    """
    from transformers import AutoConfig
    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING

    from sapiens2.processing import Sapiens2ImageProcessor

    AutoConfig.register(Sapiens2Config.model_type, Sapiens2Config, exist_ok=True)
    AutoConfig.register(Sapiens2HeadConfig.model_type, Sapiens2HeadConfig, exist_ok=True)
    models = (
        (auto.MODEL_MAPPING, Sapiens2AutoModel),
        (auto.MODEL_FOR_BACKBONE_MAPPING, Sapiens2Backbone),
        (auto.MODEL_FOR_POSE_ESTIMATION_MAPPING, Sapiens2ForPoseEstimation),
        (auto.MODEL_FOR_KEYPOINT_DETECTION_MAPPING, Sapiens2ForPoseEstimation),
        (auto.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING, Sapiens2ForSemanticSegmentation),
        (auto.MODEL_FOR_NORMAL_ESTIMATION_MAPPING, Sapiens2ForNormalEstimation),
        (auto.MODEL_FOR_POINTMAP_ESTIMATION_MAPPING, Sapiens2ForPointmapEstimation),
        (auto.MODEL_FOR_IMAGE_MATTING_MAPPING, Sapiens2ForImageMatting),
    )
    for mapping, model in models:
        mapping.register(Sapiens2Config, model, exist_ok=True)
    # under both backend names: transformers asks for "torchvision" or "pil", ours needs neither
    processors = {"torchvision": Sapiens2ImageProcessor, "pil": Sapiens2ImageProcessor}
    IMAGE_PROCESSOR_MAPPING.register(Sapiens2Config, processors, exist_ok=True)
