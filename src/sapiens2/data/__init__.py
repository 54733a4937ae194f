"""Data: samples with the truth of any task, loaders, augmentation, and targets for training.

Public names load on first use (PEP 562), so that :mod:`sapiens2.data.synthetic`, whose worker processes start often,
loads neither torch nor transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapiens2._lazy import lazy_names

_HOMES = {
    "sapiens2.data.datasets": ("AugmentedSamples", "SampleSource", "TargetSamples"),
    "sapiens2.data.sample": ("IGNORE_LABEL", "Sample", "check_values"),
    "sapiens2.data.sources": ("SampleRange", "SampleSpec", "open_samples", "read_sample_spec"),
    "sapiens2.data.targets": ("REQUIRED_TRUTH", "Targets", "collate_targets"),
}

__all__ = [
    "IGNORE_LABEL",
    "REQUIRED_TRUTH",
    "AugmentedSamples",
    "Sample",
    "SampleRange",
    "SampleSource",
    "SampleSpec",
    "TargetSamples",
    "Targets",
    "check_values",
    "collate_targets",
    "open_samples",
    "read_sample_spec",
]

if TYPE_CHECKING:
    from sapiens2.data.datasets import (
        AugmentedSamples as AugmentedSamples,
        SampleSource as SampleSource,
        TargetSamples as TargetSamples,
    )
    from sapiens2.data.sample import (
        IGNORE_LABEL as IGNORE_LABEL,
        Sample as Sample,
        check_values as check_values,
    )
    from sapiens2.data.sources import (
        SampleRange as SampleRange,
        SampleSpec as SampleSpec,
        open_samples as open_samples,
        read_sample_spec as read_sample_spec,
    )
    from sapiens2.data.targets import (
        REQUIRED_TRUTH as REQUIRED_TRUTH,
        Targets as Targets,
        collate_targets as collate_targets,
    )

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES)
