"""Models and processors from any place a checkpoint can be."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from sapiens2.checkpoints.inspect import Shape, infer_config, read_metadata, read_shapes
from sapiens2.errors import CheckpointError
from sapiens2.models.auto import model_class_of
from sapiens2.models.configuration import Sapiens2Config
from sapiens2.models.model import Sapiens2Model
from sapiens2.models.pretrained import Sapiens2PreTrainedModel
from sapiens2.models.tasks import TASK_MODELS
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.types import PathLike, Task

__all__ = ["LETTERBOX_TASKS", "default_processor", "load_model", "load_processor", "weight_files"]

LETTERBOX_TASKS: frozenset[Task] = frozenset({"normal", "pointmap", "albedo"})
"""Tasks whose published models were trained on padded images; the others stretch the whole image (or crop people)."""


def weight_files(source: Path) -> list[Path]:
    """The safetensors files of one checkpoint: a file, or a folder with one file or one set of shards.

    Raises:
        CheckpointError: Nothing there, only pickles there, several checkpoints there, or shards missing.
    """
    if source.is_file():
        if source.suffix != ".safetensors":
            raise CheckpointError(
                f"{source}: only safetensors are read, since pickles can run code; convert the file first"
            )
        return [source]
    if not source.is_dir():
        raise CheckpointError(f"{source} does not exist")
    indices = sorted(source.glob("*.safetensors.index.json"))
    if len(indices) == 1:
        names = sorted(set(json.loads(indices[0].read_text(encoding="utf-8"))["weight_map"].values()))
        lacking = [name for name in names if not (source / name).is_file()]
        if lacking:
            raise CheckpointError(f"{indices[0]} names shards that are not there: {', '.join(lacking)}")
        return [source / name for name in names]
    files = sorted(source.glob("*.safetensors"))
    if len(files) == 1:
        return files
    if not files:
        pickles = sorted(path.name for suffix in ("*.bin", "*.pth", "*.pt") for path in source.glob(suffix))
        hint = f"; {', '.join(pickles)} are pickles, which are not read" if pickles else ""
        raise CheckpointError(f"{source} holds no .safetensors file{hint}")
    raise CheckpointError(f"{source} holds {len(files)} .safetensors files without an index; name one of them")


def load_model(
    source: PathLike,
    task: Task | None = None,
    *,
    dtype: torch.dtype | None = None,
    device: str | torch.device = "cpu",
) -> Sapiens2PreTrainedModel:
    """Load a checkpoint strictly, in evaluation mode.

    Args:
        source: Folder with ``config.json`` (ours or transformers'), folder or ``.safetensors`` file in the original
            layout, or a hub id.
        task: Task that the checkpoint must have; ``None`` takes what it is (a bare trunk gives :class:`Sapiens2Model`).
        dtype: Of the weights; ``None`` keeps the stored one.
        device: Where to put the model.

    Raises:
        CheckpointError: Not found, another task, or weights that do not fit.
    """
    path = Path(source)
    if path.is_file() or (path.is_dir() and not (path / "config.json").is_file()):
        model = _load_original(path, task, dtype)
    else:
        model = _load_pretrained(str(source), task, dtype)
    return model.to(device).eval()


def _load_pretrained(source: str, task: Task | None, dtype: torch.dtype | None) -> Sapiens2PreTrainedModel:
    try:
        config: Sapiens2Config = Sapiens2Config.from_pretrained(source)
        model_class = model_class_of(config)
        _check_task(model_class.task, task, source)
        model: Sapiens2PreTrainedModel = model_class.from_pretrained(source, config=config, dtype=dtype or "auto")
    except SafetensorError as error:
        raise CheckpointError(
            f"{source} holds weights that are no whole safetensors file ({error}); download or copy them again"
        ) from error
    except OSError as error:
        if Path(source).is_dir():
            raise CheckpointError(f"{source} cannot be read: {str(error).splitlines()[0]}") from error
        raise CheckpointError(
            f"{source!r} was not found: it is no local folder, and it is neither in the hub's cache nor can it be "
            f"downloaded now ({str(error).splitlines()[0]})"
        ) from error
    return model


def _load_original(path: Path, task: Task | None, dtype: torch.dtype | None) -> Sapiens2PreTrainedModel:
    files = weight_files(path)
    shapes: dict[str, Shape] = {}
    for file in files:
        shapes |= read_shapes(file)
    config, found = infer_config(shapes, source=str(path), metadata=read_metadata(files[0]))
    _check_task(found, task, str(path))
    model_class = Sapiens2Model if found is None else TASK_MODELS[found]
    state: dict[str, Any] = {}
    for file in files:
        state |= load_file(file)
    if dtype is None:
        # one dtype for the model: the widest, so that nothing is rounded
        stored = (tensor.dtype for name, tensor in state.items() if not name.endswith("rope_embed.periods"))
        dtype = functools.reduce(torch.promote_types, stored)
    model: Sapiens2PreTrainedModel = model_class.from_pretrained(None, config=config, state_dict=state, dtype=dtype)
    return model


def _check_task(found: Task | None, wanted: Task | None, source: str) -> None:
    if wanted is not None and found != wanted:
        raise CheckpointError(
            f"{source} is a {'bare backbone' if found is None else found + ' checkpoint'}, and the task asked for is "
            f"{wanted}; give a {wanted} checkpoint"
        )


def default_processor(config: Sapiens2Config, task: Task | None) -> Sapiens2ImageProcessor:
    """The processor that a task's published models use, at the configuration's image size."""
    height, width = config.image_size_hw
    return Sapiens2ImageProcessor(size={"height": height, "width": width}, do_pad=task in LETTERBOX_TASKS)


def load_processor(source: PathLike, model: Sapiens2PreTrainedModel) -> Sapiens2ImageProcessor:
    """The processor saved with a checkpoint, or its task's default.

    Raises:
        CheckpointError: There is one, and it cannot be read.
    """
    path = Path(source)
    if path.exists() and not (path / "preprocessor_config.json").is_file():
        return default_processor(model.config, model.task)
    try:
        processor: Sapiens2ImageProcessor = Sapiens2ImageProcessor.from_pretrained(source)
    except OSError as error:
        if path.exists():
            raise CheckpointError(f"{path / 'preprocessor_config.json'} cannot be read: {error}") from error
        return default_processor(model.config, model.task)  # a hub repository without one
    return processor
