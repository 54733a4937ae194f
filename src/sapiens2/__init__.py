"""Sapiens2: human-centric vision transformers for pose, parts, normals, pointmaps, matting and albedo.

Public names load on first use (PEP 562): importing the package loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]

if TYPE_CHECKING:
    from sapiens2.errors import (
        CheckpointError as CheckpointError,
    )
    from sapiens2.errors import (
        ConfigurationError as ConfigurationError,
    )
    from sapiens2.errors import (
        InputError as InputError,
    )
    from sapiens2.errors import (
        MissingDependencyError as MissingDependencyError,
    )
    from sapiens2.errors import (
        Sapiens2Error as Sapiens2Error,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sapiens2' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
