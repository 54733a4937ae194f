"""Fixtures that several parts of the suite share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def nano_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one nano checkpoint for each task, random weights."""
    from sapiens2.checkpoints import initialise_checkpoint
    from sapiens2.types import TASKS

    folder = tmp_path_factory.mktemp("nano")
    for task in TASKS:
        initialise_checkpoint("nano", task, folder / f"nano-{task}", seed=3)
    return folder


@pytest.fixture
def library_logging() -> Iterator[None]:
    """Undo what the command line does to the logging of transformers and the hub."""
    from huggingface_hub.utils import enable_progress_bars
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    yield
    logging.set_verbosity(verbosity)
    logging.enable_progress_bar()
    enable_progress_bars()
