"""Where a model runs, and in which precision."""

from __future__ import annotations

import torch

from sapiens2.errors import ConfigurationError

__all__ = ["DTYPE_NAMES", "resolve_device", "resolve_dtype"]

DTYPE_NAMES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
    "float16": torch.float16,
    "fp16": torch.float16,
}


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """The device that a name stands for.

    Args:
        device: ``"auto"`` (CUDA if there is one, else Apple's MPS, else the CPU), or what torch calls a device.

    Raises:
        ConfigurationError: No such device, or it is not on this machine.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"device={device!r} is not known; use 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'"
        ) from error
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(
            f"device={str(device)!r} is not there: torch sees {torch.cuda.device_count()} CUDA devices; "
            "use 'cpu' or 'auto'"
        )
    if resolved.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigurationError("device='mps' is not there: torch sees no Apple GPU; use 'cpu' or 'auto'")
    return resolved


def resolve_dtype(dtype: str | torch.dtype, device: torch.device) -> torch.dtype:
    """The floating-point type that a name stands for.

    Args:
        dtype: ``"auto"`` (bfloat16 where CUDA computes in it, float32 elsewhere), one of :data:`DTYPE_NAMES`, or one
            of torch's types.
        device: Device that the model will run on.

    Raises:
        ConfigurationError: Another name, or a type that models cannot have.
    """
    if dtype == "auto":
        native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if native else torch.float32
    resolved = DTYPE_NAMES.get(dtype.lower()) if isinstance(dtype, str) else dtype
    if resolved is None or resolved not in DTYPE_NAMES.values():
        raise ConfigurationError(f"dtype={dtype!r} is not known; use 'auto', {', '.join(map(repr, DTYPE_NAMES))}")
    return resolved
