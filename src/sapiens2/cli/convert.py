"""``sapiens2 convert``: checkpoints from one layout to the other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sapiens2.cli.console import ExitCode, quiet_libraries
from sapiens2.types import TASKS

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Convert checkpoints between the layout of the original repository (one .safetensors file) and that of transformers (a
folder with config.json, model.safetensors and preprocessor_config.json). What was written is read back and compared
before it is put in place; nothing is overwritten. A folder with many checkpoints is converted as a tree.
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "convert",
        help="checkpoints from one layout to the other",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="IN", help="checkpoint (folder, .safetensors, hub id), or folder of checkpoints"
    )
    parser.add_argument("destination", metavar="OUT", help="file or folder to make")
    parser.add_argument(
        "--to", choices=("transformers", "original"), default="transformers", help="layout (default: transformers)"
    )
    parser.add_argument("--task", choices=TASKS, help="task that the one checkpoint must have")
    return parser


def run(options: argparse.Namespace) -> int:
    """Convert and print a line for each checkpoint."""
    from sapiens2.checkpoints.convert import convert_checkpoint, convert_tree

    quiet_libraries()
    if options.task is None and Path(options.source).is_dir():
        reports = convert_tree(options.source, options.destination, layout=options.to)
    else:
        reports = [convert_checkpoint(options.source, options.destination, layout=options.to, task=options.task)]
    for report in reports:
        print(
            f"{report.destination}: {report.task or 'backbone'} {report.size}, {report.num_parameters:,} parameters, "
            f"{report.num_tensors} tensors read back and equal"
        )
    return ExitCode.OK
