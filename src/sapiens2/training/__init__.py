"""Training of the six tasks from strict recipes, on transformers' ``Trainer``."""

from sapiens2.training.failures import TrainingError
from sapiens2.training.measure import measure
from sapiens2.training.optimisers import MuonWithAdamW, build_optimizer, parameter_groups
from sapiens2.training.overfit import OverfitReport
from sapiens2.training.recipe import Recipe
from sapiens2.training.recipe_files import build_recipe, read_recipe, write_recipe
from sapiens2.training.run import TrainingOutcome, check_overfit, train

__all__ = [
    "MuonWithAdamW",
    "OverfitReport",
    "Recipe",
    "TrainingError",
    "TrainingOutcome",
    "build_optimizer",
    "build_recipe",
    "check_overfit",
    "measure",
    "parameter_groups",
    "read_recipe",
    "train",
    "write_recipe",
]
