"""Warp on the CPU: quiet, and the only place that imports it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2._optional import require

__all__ = ["DEVICE", "array", "launch", "to_numpy", "wp", "zeros"]

DEVICE = "cpu"


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Warp's native part says on stderr that no GPU driver was found, which is no news here."""
    try:
        kept = os.dup(2)
    except OSError:  # no stderr to silence
        yield
        return
    with Path(os.devnull).open("wb") as nowhere:
        sys.stderr.flush()
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _start() -> Any:
    module = require("warp", extra="synth")
    module.config.log_level = module.LOG_ERROR
    module.config.enable_backward = False  # nothing is differentiated, and kernels compile in half the time
    with _silent_stderr():
        module.init()
    return module


wp: Any = _start()


def array(values: NDArray[Any], kind: Any) -> Any:
    """A Warp array that shares the memory of a contiguous numpy array; ``kind`` is its Warp type."""
    return wp.from_numpy(np.ascontiguousarray(values), dtype=kind, device=DEVICE)


def zeros(shape: int | tuple[int, ...], kind: Any) -> Any:
    """A Warp array of zeros."""
    return wp.zeros(shape, dtype=kind, device=DEVICE)


def to_numpy(values: Any) -> NDArray[Any]:
    """The numpy view of a Warp array."""
    result: NDArray[Any] = values.numpy()
    return result


def launch(kernel: Any, size: int | tuple[int, ...], *arguments: Any) -> None:
    """Run a kernel on the CPU."""
    wp.launch(kernel, dim=size, inputs=list(arguments), device=DEVICE)
