"""``sapiens2 init``: checkpoints with random weights."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sapiens2.assets.sizes import size_names
from sapiens2.cli.arguments import add_task_option, given_name, require_folder, seed
from sapiens2.cli.console import ExitCode, UsageError, quiet_libraries
from sapiens2.types import TASKS, Task

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Make checkpoints with random weights, to train or to try things out: config.json, model.safetensors and
preprocessor_config.json. With several tasks, or 'all', each gets a folder <size>-<task> in the output.
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "init",
        help="make checkpoints with random weights",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--size", choices=size_names(), required=True, help="size of the trunk and the head")
    add_task_option(parser, f"{', '.join(TASKS)}, or all; repeatable", required=True)
    parser.add_argument("-o", "--output", type=given_name, metavar="DIR", required=True, help="folder to make")
    parser.add_argument("--seed", type=seed, default=0, help="same seed, same weights: 0 to 2**63 - 1 (default: 0)")
    return parser


def run(options: argparse.Namespace) -> int:
    """Make the checkpoints and print their folders."""
    from sapiens2.checkpoints import initialise_checkpoint

    tasks = [task for task in TASKS if task in options.tasks or "all" in options.tasks]
    folders: dict[Task, Path] = {task: Path(options.output) / f"{options.size}-{task}" for task in tasks}
    if len(tasks) == 1:
        folders = {tasks[0]: Path(options.output)}
    for folder in folders.values():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} exists already; name another folder or remove it")
        require_folder(folder)
    quiet_libraries()
    for task, folder in folders.items():
        print(f"{initialise_checkpoint(options.size, task, folder, seed=options.seed)}: {task}, random weights")
    return ExitCode.OK
