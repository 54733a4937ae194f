"""Sapiens2: human-centric vision transformers for pose, parts, normals, pointmaps, matting and albedo.

Public names load on first use (PEP 562): importing the package loads neither torch nor transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapiens2._lazy import lazy_names

__version__ = "0.1.0"

_HOMES = {
    "sapiens2.errors": (
        "CheckpointError",
        "ConfigurationError",
        "InputError",
        "MissingDependencyError",
        "Sapiens2Error",
    ),
    "sapiens2.inference": ("Predictor", "load"),
    "sapiens2.models": (
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
    ),
    "sapiens2.models.auto": ("register_auto_classes",),
    "sapiens2.processing": ("Sapiens2ImageProcessor",),
    "sapiens2.results": (
        "AlbedoResult",
        "MattingResult",
        "NormalResult",
        "PointmapResult",
        "PoseResult",
        "Prediction",
        "SegmentationResult",
    ),
    "sapiens2.services.evaluate": ("EvaluationReport", "evaluate"),
}

__all__ = ["__version__", *sorted(name for names in _HOMES.values() for name in names)]

if TYPE_CHECKING:
    from sapiens2.errors import (
        CheckpointError as CheckpointError,
        ConfigurationError as ConfigurationError,
        InputError as InputError,
        MissingDependencyError as MissingDependencyError,
        Sapiens2Error as Sapiens2Error,
    )
    from sapiens2.inference import (
        Predictor as Predictor,
        load as load,
    )
    from sapiens2.models import (
        Sapiens2AlbedoEstimatorOutput as Sapiens2AlbedoEstimatorOutput,
        Sapiens2Backbone as Sapiens2Backbone,
        Sapiens2BackboneOutput as Sapiens2BackboneOutput,
        Sapiens2Config as Sapiens2Config,
        Sapiens2ForAlbedoEstimation as Sapiens2ForAlbedoEstimation,
        Sapiens2ForImageMatting as Sapiens2ForImageMatting,
        Sapiens2ForNormalEstimation as Sapiens2ForNormalEstimation,
        Sapiens2ForPointmapEstimation as Sapiens2ForPointmapEstimation,
        Sapiens2ForPoseEstimation as Sapiens2ForPoseEstimation,
        Sapiens2ForSemanticSegmentation as Sapiens2ForSemanticSegmentation,
        Sapiens2HeadConfig as Sapiens2HeadConfig,
        Sapiens2ImageMattingOutput as Sapiens2ImageMattingOutput,
        Sapiens2Model as Sapiens2Model,
        Sapiens2NormalEstimatorOutput as Sapiens2NormalEstimatorOutput,
        Sapiens2PointmapEstimatorOutput as Sapiens2PointmapEstimatorOutput,
        Sapiens2PoseEstimatorOutput as Sapiens2PoseEstimatorOutput,
        Sapiens2PreTrainedModel as Sapiens2PreTrainedModel,
    )
    from sapiens2.models.auto import (
        register_auto_classes as register_auto_classes,
    )
    from sapiens2.processing import (
        Sapiens2ImageProcessor as Sapiens2ImageProcessor,
    )
    from sapiens2.results import (
        AlbedoResult as AlbedoResult,
        MattingResult as MattingResult,
        NormalResult as NormalResult,
        PointmapResult as PointmapResult,
        PoseResult as PoseResult,
        Prediction as Prediction,
        SegmentationResult as SegmentationResult,
    )
    from sapiens2.services.evaluate import (
        EvaluationReport as EvaluationReport,
        evaluate as evaluate,
    )

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES)
