"""``sapiens2 models``: the published checkpoints."""

from __future__ import annotations

import argparse
from typing import Any

from sapiens2.cli.console import ExitCode, print_json_line, print_table

__all__ = ["add_command", "run"]

DESCRIPTION = """\
List the published checkpoints: task, size, id on the hub, parameters, cost of one picture, licence of the weights, and
whether they are in the hub's cache on this machine.
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "models",
        help="list the published checkpoints",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON for each checkpoint")
    return parser


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    from sapiens2.checkpoints.catalogue import entries

    if options.json:
        for entry in entries():
            print_json_line(entry.to_dict())
        return ExitCode.OK
    rows = [
        (
            entry.task,
            entry.size,
            entry.hub_id,
            f"{entry.parameters / 1e6:,.0f} M",
            "-" if entry.teraflops is None else f"{entry.teraflops:.3f} T",
            entry.licence,
            "yes" if entry.cached else "no",
        )
        for entry in entries()
    ]
    print_table(("TASK", "SIZE", "HUB ID", "PARAMETERS ", "FLOPS ", "LICENCE", "CACHED"), rows)
    return ExitCode.OK
