"""The model that a training begins with, and what of it learns."""

from __future__ import annotations

import difflib
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sapiens2._optional import require
from sapiens2.assets.sizes import size_names
from sapiens2.checkpoints import default_processor, load_model, load_processor, published_id
from sapiens2.data.augment import flip_pairs_by_name
from sapiens2.errors import CheckpointError, ConfigurationError
from sapiens2.inference.sources import packaged_checkpoint
from sapiens2.models import TASK_MODELS, Sapiens2Config, Sapiens2PreTrainedModel
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.training.measure import label_names
from sapiens2.training.recipe import FreezeSection, LoraSection, ModelSection
from sapiens2.types import Task

__all__ = ["StartingModel", "add_lora", "freeze", "starting_model", "with_labels"]

logger = logging.getLogger(__name__)

_PREDICTOR = "decode_head.predictor."
_HEADS = ("decode_head", "scale_head")


@dataclass(frozen=True)
class StartingModel:
    """A model, its processor, and what was done to get it.

    Attributes:
        model: A task model in float32.
        processor: Prepares pictures for it.
        notes: Sentences for the log and the report: what is new in it.
    """

    model: Sapiens2PreTrainedModel
    processor: Sapiens2ImageProcessor
    notes: tuple[str, ...]


def starting_model(
    section: ModelSection, task: Task, *, labels: Sequence[str] | None = None, seed: int = 0
) -> StartingModel:
    """Load or make the model of a recipe.

    Args:
        section: The recipe's section.
        task: The task.
        labels: Names of the classes or keypoints; None keeps the model's.
        seed: Of what is new.

    Raises:
        CheckpointError: The checkpoint is not there, or is of another task.
        ConfigurationError: What is asked for does not exist, or does not fit the model.
    """
    notes: list[str] = []
    _require_size(section.source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = _load(section, task, notes)
        names = label_names(task, model)
        if labels is not None and tuple(labels) != names:
            model = with_labels(model, labels, mirror_pairs=section.mirror_pairs)
            notes.append(f"the predictor is new: {len(labels)} labels instead of {len(names or ())}")
    _set_rope_rescale(model, section.rope_rescale)
    if section.image_size is not None:
        _set_image_size(model, processor, section.image_size)
    if hasattr(model.config, "sapiens2_weights"):
        del model.config.sapiens2_weights  # it says that weights are random, which they will not be
    return StartingModel(model, processor, tuple(notes))


def with_labels(
    model: Sapiens2PreTrainedModel, labels: Sequence[str], *, mirror_pairs: Sequence[tuple[str, str]] = ()
) -> Sapiens2PreTrainedModel:
    """A model of other classes or keypoints: all weights are those of the given one, except a new predictor.

    Args:
        model: For pose or parts.
        labels: Unique names in order.
        mirror_pairs: Names that mirror each other and do not say so.
    """
    fields = model.config.to_dict()
    fields.pop("num_labels", None)
    fields |= {"id2label": dict(enumerate(labels)), "label2id": {name: index for index, name in enumerate(labels)}}
    if model.task == "pose":
        fields["flip_pairs"] = [list(pair) for pair in flip_pairs_by_name(labels, pairs=mirror_pairs)]
    new: Sapiens2PreTrainedModel = type(model)(Sapiens2Config(**fields)).to(model.dtype)
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(_PREDICTOR)}
    found = new.load_state_dict(kept, strict=False)
    lacking = [name for name in found.missing_keys if not name.startswith(_PREDICTOR)]
    if lacking or found.unexpected_keys:
        raise CheckpointError(f"weights that do not fit the new labels: {lacking + list(found.unexpected_keys)}")
    return new


def freeze(model: Sapiens2PreTrainedModel, section: FreezeSection) -> None:
    """Keep a part of the trunk as it is.

    Raises:
        ConfigurationError: More layers than there are.
    """
    trunk: Any = model.model
    layers = trunk.model.layer
    if section.layers > len(layers):
        raise ConfigurationError(f"freeze.layers is {section.layers}, and the trunk has {len(layers)} layers")
    if section.backbone:
        trunk.requires_grad_(False)
    elif section.layers:
        parts: list[nn.Module | None] = [trunk.embeddings, trunk.tokenizer, *layers[: section.layers]]
        parts += [trunk.norm] if section.layers == len(layers) else []
        for part in parts:
            if part is not None:
                part.requires_grad_(False)


def add_lora(model: Sapiens2PreTrainedModel, section: LoraSection, *, seed: int = 0) -> Any:
    """Wrap a model in a peft model: small matrices learn beside those of the trunk, and the heads in full.

    Raises:
        ConfigurationError: A target that is no matrix of the trunk's layers.
        MissingDependencyError: peft is not installed.
    """
    peft = require("peft", extra="train")
    trunk: Any = model.model
    linear = {name.rpartition(".")[2] for name, part in trunk.model.named_modules() if isinstance(part, nn.Linear)}
    if unknown := sorted(set(section.targets) - linear):
        raise ConfigurationError(f"lora.targets names {unknown}; expected some of {', '.join(sorted(linear))}")
    heads = [name for name in _HEADS if getattr(model, name, None) is not None]
    settings = peft.LoraConfig(
        r=section.rank,
        lora_alpha=2 * section.rank if section.alpha is None else section.alpha,
        lora_dropout=section.dropout,
        target_modules=rf"model\.model\.layer\.\d+\..*\.({'|'.join(section.targets)})",
        modules_to_save=heads,
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`is_gradient_checkpointing`", FutureWarning)  # peft asks by the old name
        torch.manual_seed(seed)
        return peft.get_peft_model(model, settings)


def _load(
    section: ModelSection, task: Task, notes: list[str]
) -> tuple[Sapiens2PreTrainedModel, Sapiens2ImageProcessor]:
    if section.weights == "random":
        return _random(section, task, notes)
    source = _place(section, task)
    loaded = load_model(source, dtype=torch.float32)
    if loaded.task == task and not section.trunk_only:
        return loaded, load_processor(source, loaded)
    if loaded.task not in (None, task) and not section.trunk_only:
        raise CheckpointError(
            f"model.from is {section.source}, a {loaded.task} checkpoint, and the task is {task}; "
            "give model.trunk_only: true to take its trunk, with a new head"
        )
    trunk = loaded if loaded.task is None else loaded.model
    config = _headless(loaded.config).for_task(task)
    model = TASK_MODELS[task](config)
    model.model.load_state_dict(trunk.state_dict())
    notes.append(f"the head is new; the trunk is that of {section.source}")
    return model, default_processor(config, task)


def _random(
    section: ModelSection, task: Task, notes: list[str]
) -> tuple[Sapiens2PreTrainedModel, Sapiens2ImageProcessor]:
    notes.append("all weights are new")
    if section.source in size_names():
        config = Sapiens2Config.from_size(section.source, task)
        return TASK_MODELS[task](config), default_processor(config, task)
    given = load_model(section.source)
    config = (given.config if given.task == task else _headless(given.config)).for_task(task)
    model = TASK_MODELS[task](config)
    processor = load_processor(section.source, given) if given.task == task else default_processor(config, task)
    return model, processor


def _require_size(source: str) -> None:
    """Refuse what is close to a size and no file, before the hub is asked for it."""
    sizes = size_names()
    if source in sizes or "/" in source or Path(source).exists():
        return
    if near := difflib.get_close_matches(source.lower(), sizes, n=1):
        raise ConfigurationError(
            f"model.from is {source}, which is no file and no size. Did you mean {near[0]}? Sizes are "
            f"{', '.join(sizes)}; a repository of the hub is called owner/name"
        )


def _place(section: ModelSection, task: Task) -> str:
    """Folder, file or hub id."""
    if section.source not in size_names():
        return section.source
    packaged = packaged_checkpoint(section.source, task)
    if packaged is not None:
        return str(packaged)
    try:
        return published_id("pretrain" if section.trunk_only else task, section.source)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"model.from is {section.source}: {error}; or begin anew with model.weights: random"
        ) from error


def _headless(config: Sapiens2Config) -> Sapiens2Config:
    """The configuration of a trunk alone."""
    of_heads = ("head_config", "num_labels", "id2label", "label2id", "flip_pairs", "architectures")
    return Sapiens2Config(**{name: value for name, value in config.to_dict().items() if name not in of_heads})


def _set_rope_rescale(model: Sapiens2PreTrainedModel, factor: float | None) -> None:
    if factor is None and model.config.pos_embed_rescale is not None:
        logger.info("pos_embed_rescale of the checkpoint is switched off; model.rope_rescale switches it on")
    model.config.pos_embed_rescale = factor
    trunk: Any = model.model
    trunk.rope_embeddings.rescale = factor


def _set_image_size(
    model: Sapiens2PreTrainedModel, processor: Sapiens2ImageProcessor, size_hw: tuple[int, int]
) -> None:
    stride = model.config.feature_stride_hw
    if any(side % step for side, step in zip(size_hw, stride, strict=True)):
        raise ConfigurationError(f"model.image_size is {list(size_hw)}; expected multiples of {list(stride)}")
    if tuple(size_hw) != model.config.image_size_hw and getattr(model, "scale_head", None) is not None:
        raise ConfigurationError(
            f"model.image_size is {list(size_hw)}, and the scale head of this model is made for "
            f"{list(model.config.image_size_hw)}; leave the key out"
        )
    model.config.image_size = list(size_hw)
    processor.size = {"height": size_hw[0], "width": size_hw[1]}
