"""``sapiens2 convert``: checkpoints from one layout to the other."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapiens2.cli.arguments import given_name, require_folder
from sapiens2.cli.console import ExitCode, UsageError, quiet_libraries, say
from sapiens2.errors import Sapiens2Error
from sapiens2.types import TASKS

if TYPE_CHECKING:
    from sapiens2.checkpoints import ConversionReport, TreeOutcome

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Convert checkpoints between the layout of the original repository (one .safetensors file) and that of transformers (a
folder with config.json, model.safetensors and preprocessor_config.json). What was written is read back and compared
before it is put in place; nothing is overwritten. A folder with many checkpoints is converted as a tree: one that fails
does not stop the others, and what is there already is skipped, so that the same command again completes the rest.
"""
EPILOG = """\
exit codes:
  0  all converted, or there already
  1  some checkpoints of a tree could not be converted; they are named on stderr
  2  nothing was done: IN cannot be read or is of another task, or OUT exists or cannot be made
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "convert",
        help="checkpoints from one layout to the other",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        type=given_name,
        metavar="IN",
        help="checkpoint (folder, .safetensors, hub id), or folder of checkpoints",
    )
    parser.add_argument("destination", type=given_name, metavar="OUT", help="file or folder to make")
    parser.add_argument(
        "--to", choices=("transformers", "original"), default="transformers", help="layout (default: transformers)"
    )
    parser.add_argument("--task", choices=TASKS, help="task that the one checkpoint must have")
    return parser


def run(options: argparse.Namespace) -> int:
    """Convert and print a line for each checkpoint."""
    _check_destination(Path(options.destination), options.to)
    quiet_libraries()
    try:
        outcomes = _outcomes(options)
    except Sapiens2Error as error:  # of a single checkpoint, or of the tree as a whole
        raise UsageError(str(error)) from error
    failed = 0
    for outcome in outcomes:
        if outcome.report is not None:
            print(_summary(outcome.report), flush=True)
        elif outcome.error is None:
            say(f"{outcome.destination} exists already and is left alone")
        else:
            failed += 1
            shown = str(outcome.source)
            say(f"error: {outcome.error}" if shown in outcome.error else f"error: {shown}: {outcome.error}")
    if failed:
        say(f"{failed} checkpoints could not be converted")
    return ExitCode.FAILED if failed else ExitCode.OK


def _check_destination(destination: Path, layout: str) -> None:
    if layout == "transformers" and destination.suffix == ".safetensors":
        raise UsageError(
            f"{destination} names a file, and transformers' layout is a folder; name a folder, or add --to original"
        )
    require_folder(destination.parent)


def _outcomes(options: argparse.Namespace) -> Iterator[TreeOutcome]:
    from sapiens2.checkpoints import TreeOutcome, convert_checkpoint, convert_tree
    from sapiens2.checkpoints.tree import require_outside

    source, destination = Path(options.source), Path(options.destination)
    if source.is_dir() and options.task is None:
        return convert_tree(source, destination, layout=options.to)
    require_outside(destination, source)
    report = convert_checkpoint(options.source, destination, layout=options.to, task=options.task)
    return iter([TreeOutcome(source, destination, report)])


def _summary(report: ConversionReport) -> str:
    return (
        f"{report.destination}: {report.task or 'backbone'} {report.size}, {report.num_parameters:,} parameters, "
        f"{report.num_tensors} tensors read back and equal"
    )
