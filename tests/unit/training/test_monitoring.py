from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import TrainerState

from sapiens2.training.interruption import StopRequest
from sapiens2.training.monitoring import Progress, RunLog


def test_progress__line_has_the_time_left() -> None:
    ticks = iter([0.0, 30.0])
    progress = Progress(lambda _: None, clock=lambda: next(ticks))
    state = TrainerState(global_step=10, max_steps=100)
    progress.on_train_begin(None, state, None)  # type: ignore[arg-type]
    state.global_step = 20
    line = progress.line(state, {"loss": 0.51234567, "learning_rate": 1e-4})
    assert line == "step 20/100  loss 0.5123  lr 0.0001  3.00 s/step  0:04:00 left"


def test_run_log__a_later_sitting_forgets_what_it_does_again(tmp_path: Path) -> None:
    log = RunLog(tmp_path, tensorboard=False)
    for step in (1, 2, 3):
        log.add(step, {"loss": float("nan") if step == 2 else step})
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')  # the machine went off
    again = RunLog(tmp_path, tensorboard=False, first_step=2)
    again.add(3, {"loss": 30.0})
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines == again.entries == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": None}, {"step": 3, "loss": 30.0}]


def test_run_log__pictures(tmp_path: Path) -> None:
    log = RunLog(tmp_path, tensorboard=False)
    path = log.add_picture(7, np.zeros((4, 5, 3), np.uint8))
    assert path.name == "step-000007.png"
    log.close()


def test_stop_request__first_signal_asks_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopRequest() as request:
        assert not request.anywhere(torch.device("cpu"))
        os.kill(os.getpid(), signal.SIGINT)
        assert request.anywhere(torch.device("cpu"))
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_stop_request__a_launcher_may_add_sigterm_to_sigint() -> None:
    with StopRequest() as request:
        for number in (signal.SIGTERM, signal.SIGTERM):
            os.kill(os.getpid(), number)
            assert request.requested


def test_stop_request__in_another_thread_nothing_is_caught() -> None:
    found = []

    def enter() -> None:
        with StopRequest():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
