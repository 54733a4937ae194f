"""From the name of a task to a predictor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sapiens2.checkpoints import load_model, load_processor
from sapiens2.errors import CheckpointError
from sapiens2.inference.placement import resolve_device, resolve_dtype
from sapiens2.inference.predictor import Predictor
from sapiens2.inference.sources import Tasks, checkpoint_sources
from sapiens2.types import PathLike, Task

if TYPE_CHECKING:
    import torch

__all__ = ["load"]


def load(
    task: Tasks,
    *,
    size: str | None = None,
    model: PathLike | Mapping[Task, PathLike] | None = None,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
) -> Predictor:
    """Load what one task or several need, ready to be called with pictures.

    Example:
        >>> predict = sapiens2.load("pose", size="0.4b")  # doctest: +SKIP
        >>> predict("photo.jpg").keypoints  # doctest: +SKIP

    Args:
        task: One task, which the predictor answers with that task's result; or a list of tasks, or ``"all"`` that
            ``size`` or ``model`` has, which it answers with a :class:`~sapiens2.results.Prediction`.
        size: Published size, such as ``"0.4b"``: the weights are those of ``facebook/sapiens2-<task>-<size>``, from the
            hub's cache or downloaded.
        model: Instead of ``size``: a checkpoint (folder, ``.safetensors`` file or hub id), a mapping from task to
            checkpoint, or a folder that holds one checkpoint for each task.
        device: ``"auto"`` takes CUDA, else MPS, else the CPU; or a device.
        dtype: ``"auto"`` takes bfloat16 on CUDA and float32 elsewhere; or ``"float32"``, ``"bfloat16"``, ``"float16"``
            (``"fp32"``, ``"bf16"``, ``"fp16"``), or torch's types.

    Raises:
        ConfigurationError: An unknown task, size, device or dtype; both ``size`` and ``model``, or neither.
        CheckpointError: A checkpoint is not there, or does not fit its task; the message says what was looked for.
    """
    sources = checkpoint_sources(task, size=size, model=model)
    place = resolve_device(device)
    precision = resolve_dtype(dtype, place)
    models, processors, names = {}, {}, {}
    for name, source in sources.items():
        try:
            models[name] = load_model(source, name, dtype=precision, device=place)
        except CheckpointError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            raise CheckpointError(_not_found(name, source, error)) from error
        processors[name] = load_processor(source, models[name])
        names[name] = Path(source).name if Path(source).exists() else source
    return Predictor(models, processors, names=names, bundled=not isinstance(task, str) or task == "all")


def _not_found(task: Task, source: str, error: CheckpointError) -> str:
    return (
        f"{error}. What to do: check the name; or fetch the weights once, with a connection: `hf download {source}` "
        "(accept the licence on the model's page first); or name a checkpoint that is here; or, to try things out, "
        f"make one with random weights: `sapiens2 init --size nano --task {task} -o FOLDER`"
    )
