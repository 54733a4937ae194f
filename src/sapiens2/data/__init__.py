"""Data: samples with the truth of any task, loaders, augmentation, and targets for training."""

from sapiens2.data.datasets import AugmentedSamples, SampleSource, TargetSamples
from sapiens2.data.sample import IGNORE_LABEL, Sample, check_values
from sapiens2.data.targets import REQUIRED_TRUTH, Targets, collate_targets

__all__ = [
    "IGNORE_LABEL",
    "REQUIRED_TRUTH",
    "AugmentedSamples",
    "Sample",
    "SampleSource",
    "TargetSamples",
    "Targets",
    "check_values",
    "collate_targets",
]
