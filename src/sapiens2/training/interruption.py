"""Ctrl-C during training: finish the step, save, stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from torch import distributed

__all__ = ["StopRequest"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Catches SIGINT and SIGTERM while it is entered; a second SIGINT interrupts at once.

    Outside the main thread nothing is caught.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def anywhere(self, device: torch.device) -> bool:
        """Whether any process was asked to stop; all processes have to call this together."""
        if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
            return self.requested
        flag = torch.tensor(int(self.requested), device=device)
        distributed.all_reduce(flag, op=distributed.ReduceOp.MAX)
        return bool(flag.item())

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # A launcher passes Ctrl-C on as SIGTERM, to processes that may have had the SIGINT already.
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
