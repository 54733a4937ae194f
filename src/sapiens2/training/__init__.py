"""Training of the six tasks from strict recipes, on transformers' ``Trainer``."""

from sapiens2.training.measure import measure
from sapiens2.training.optimisers import MuonWithAdamW, build_optimizer, parameter_groups

__all__ = ["MuonWithAdamW", "build_optimizer", "measure", "parameter_groups"]
