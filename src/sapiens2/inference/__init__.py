"""From pictures to results: checkpoints are found, put on a device, and called like a function."""

from sapiens2.inference.loading import load
from sapiens2.inference.predictor import Predictor

__all__ = ["Predictor", "load"]
