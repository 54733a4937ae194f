"""Results: one frozen, validated class per task, which draws, writes and describes itself.

Arrays are numpy, read-only and of the size of the image. Each result writes ``<stem>_<task>.png``, a picture to look
at, and its data beside it under names that begin the same way; the classes list them under "Files".
"""

from sapiens2.results.albedo import AlbedoResult
from sapiens2.results.base import Result
from sapiens2.results.matting import MattingResult
from sapiens2.results.naming import file_stem
from sapiens2.results.normal import NormalResult
from sapiens2.results.pointmap import PointmapResult
from sapiens2.results.pose import PoseResult
from sapiens2.results.prediction import Prediction
from sapiens2.results.segmentation import SegmentationResult

__all__ = [
    "AlbedoResult",
    "MattingResult",
    "NormalResult",
    "PointmapResult",
    "PoseResult",
    "Prediction",
    "Result",
    "SegmentationResult",
    "file_stem",
]
