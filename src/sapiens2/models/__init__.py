"""Sapiens2 models on transformers' base classes, with the reference's names, fields and outputs."""

from sapiens2.models.backbone import Sapiens2Backbone
from sapiens2.models.configuration import Sapiens2Config, Sapiens2HeadConfig
from sapiens2.models.model import Sapiens2Model
from sapiens2.models.outputs import (
    Sapiens2AlbedoEstimatorOutput,
    Sapiens2BackboneOutput,
    Sapiens2ImageMattingOutput,
    Sapiens2NormalEstimatorOutput,
    Sapiens2PointmapEstimatorOutput,
    Sapiens2PoseEstimatorOutput,
)
from sapiens2.models.pose import Sapiens2ForPoseEstimation
from sapiens2.models.pretrained import Sapiens2PreTrainedModel
from sapiens2.models.task_model import Sapiens2TaskModel
from sapiens2.models.tasks import (
    TASK_MODELS,
    Sapiens2ForAlbedoEstimation,
    Sapiens2ForImageMatting,
    Sapiens2ForNormalEstimation,
    Sapiens2ForPointmapEstimation,
    Sapiens2ForSemanticSegmentation,
)

__all__ = [
    "TASK_MODELS",
    "Sapiens2AlbedoEstimatorOutput",
    "Sapiens2Backbone",
    "Sapiens2BackboneOutput",
    "Sapiens2Config",
    "Sapiens2ForAlbedoEstimation",
    "Sapiens2ForImageMatting",
    "Sapiens2ForNormalEstimation",
    "Sapiens2ForPointmapEstimation",
    "Sapiens2ForPoseEstimation",
    "Sapiens2ForSemanticSegmentation",
    "Sapiens2HeadConfig",
    "Sapiens2ImageMattingOutput",
    "Sapiens2Model",
    "Sapiens2NormalEstimatorOutput",
    "Sapiens2PointmapEstimatorOutput",
    "Sapiens2PoseEstimatorOutput",
    "Sapiens2PreTrainedModel",
    "Sapiens2TaskModel",
]
