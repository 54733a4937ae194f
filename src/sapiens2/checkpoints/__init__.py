"""Checkpoints: reading them from any layout, converting, initialising, and the list of published ones."""

from sapiens2.checkpoints.catalogue import CatalogueEntry, entries, published_id
from sapiens2.checkpoints.convert import ConversionReport, convert_checkpoint
from sapiens2.checkpoints.initialise import initialise_checkpoint
from sapiens2.checkpoints.inspect import infer_config, read_shapes
from sapiens2.checkpoints.load import default_processor, load_model, load_processor
from sapiens2.checkpoints.tree import TreeOutcome, convert_tree

__all__ = [
    "CatalogueEntry",
    "ConversionReport",
    "TreeOutcome",
    "convert_checkpoint",
    "convert_tree",
    "default_processor",
    "entries",
    "infer_config",
    "initialise_checkpoint",
    "load_model",
    "load_processor",
    "published_id",
    "read_shapes",
]
