"""Checkpoints from one layout to the other, verified by reading them back."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import save_file

from sapiens2.assets.sizes import size_of_hidden_size
from sapiens2.checkpoints.inspect import CONFIG_METADATA
from sapiens2.checkpoints.load import load_model, load_processor
from sapiens2.errors import CheckpointError
from sapiens2.models.pretrained import Sapiens2PreTrainedModel
from sapiens2.types import PathLike, Task

__all__ = ["ConversionReport", "Layout", "convert_checkpoint", "original_state_dict"]

Layout = Literal["original", "transformers"]


@dataclass(frozen=True)
class ConversionReport:
    """What was written.

    Attributes:
        source: Where the weights came from.
        destination: The file (original layout) or folder (transformers layout).
        layout: The layout written.
        task: The task; ``None`` for a bare backbone.
        size: The published size whose trunk is as wide.
        num_parameters: Parameters of the model.
        num_tensors: Tensors, all of which were read back and compared bit for bit.
    """

    source: str
    destination: Path
    layout: Layout
    task: Task | None
    size: str
    num_parameters: int
    num_tensors: int


def original_state_dict(model: Sapiens2PreTrainedModel) -> dict[str, torch.Tensor]:
    """Weights under the original names at every depth, and the RoPE periods that the original loads (bfloat16)."""
    key_map = model.key_map
    weights: dict[str, torch.Tensor] = {}
    state = model.state_dict()
    for name, tensor in state.items():
        if key_map.gated and ".mlp.up_proj." in name:
            continue
        if key_map.gated and ".mlp.gate_proj." in name:
            tensor = torch.cat((tensor, state[name.replace("gate_proj", "up_proj")]))
            name = name.replace("gate_proj", "w12")
        name = name if key_map.gated else name.replace(".mlp.up_proj.", ".mlp.w12.")
        weights[key_map.to_original(name, all_depths=True)] = tensor.detach().cpu().contiguous()
    trunk = model if model.task is None else model.model
    trunk.rope_embeddings.table_dtype, kept = torch.bfloat16, trunk.rope_embeddings.table_dtype
    prefix = "" if model.task is None else "backbone."
    weights[f"{prefix}rope_embed.periods"] = trunk.rope_embeddings.periods(torch.device("cpu"))
    trunk.rope_embeddings.table_dtype = kept
    return weights


def convert_checkpoint(
    source: PathLike, destination: PathLike, *, layout: Layout = "transformers", task: Task | None = None
) -> ConversionReport:
    """Convert one checkpoint and read the result back.

    The result is put in place only once it was verified; an existing destination is left alone.

    Args:
        source: Anything that :func:`sapiens2.checkpoints.load.load_model` takes.
        destination: Folder to make (``"transformers"``), or ``.safetensors`` file, or folder to put
            ``sapiens2_<size>_<task>.safetensors`` in (``"original"``).
        layout: What to write.
        task: Task that the source must have.

    Raises:
        CheckpointError: The source cannot be read, the destination exists, or what was written differs when read back.
    """
    model = load_model(source, task)
    size = size_of_hidden_size(model.config.hidden_size) + ("_4k" if model.config.use_tokenizer else "")
    target = Path(destination)
    if layout == "original" and target.suffix != ".safetensors":
        target = target / f"sapiens2_{size}_{model.task or 'pretrain'}.safetensors"
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise CheckpointError(f"{target} exists already; name another destination or remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".converting-", dir=target.parent))
    try:
        staged = staging / target.name
        if layout == "original":
            # names and shapes tell a configuration in part only: the file carries it, which the original code ignores
            metadata = {"format": "pt", CONFIG_METADATA: model.config.to_json_string()}
            save_file(original_state_dict(model), staged, metadata=metadata)
        else:
            model.save_pretrained(staged)
            load_processor(source, model).save_pretrained(staged)
        _verify(model, load_model(staged), target)
        if target.is_dir():
            target.rmdir()
        staged.replace(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return ConversionReport(
        source=str(source),
        destination=target,
        layout=layout,
        task=model.task,
        size=size,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        num_tensors=len(model.state_dict()),
    )


def _verify(written: Sapiens2PreTrainedModel, read: Sapiens2PreTrainedModel, target: Path) -> None:
    if written.task != read.task:
        raise CheckpointError(f"{target}: written as {type(written).__name__}, read back as {type(read).__name__}")
    volatile = ("_name_or_path", "architectures", "dtype", "transformers_version")  # say where from, not what
    before, after = ({k: v for k, v in m.config.to_dict().items() if k not in volatile} for m in (written, read))
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise CheckpointError(f"{target}: the configuration differs when read back: {', '.join(changed)}")
    state = read.state_dict()
    differing = [name for name, tensor in written.state_dict().items() if not torch.equal(tensor.cpu(), state[name])]
    if differing:
        raise CheckpointError(f"{target}: {len(differing)} tensors differ when read back: {', '.join(differing[:5])}")
