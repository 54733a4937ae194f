"""``sapiens2 demo``: all tasks on the photo that comes with the package."""

from __future__ import annotations

import argparse
from typing import Any

from sapiens2.cli.arguments import given_name, require_folder
from sapiens2.cli.console import ExitCode, quiet_libraries

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Predict all six tasks for the photo that comes with the package (astronaut Eileen Collins; NASA, public domain) with the
smallest models, and print where the pictures are. Tasks without trained weights in the package get random ones: their
pictures show that everything runs, and nothing else.
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="all tasks on the photo that comes with the package",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-o",
        "--output",
        type=given_name,
        default="sapiens2-demo",
        metavar="DIR",
        help="folder for the pictures (default: sapiens2-demo)",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, mps")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the demo and print the paths of what it wrote."""
    import warnings

    from sapiens2.services.demo import run_demo

    require_folder(options.output)
    quiet_libraries()
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Predicted scales", category=UserWarning
        )  # random weights, said below
        report = run_demo(options.output, device=options.device)
    if report.untrained:
        print(
            f"RANDOM WEIGHTS, nothing was learnt: {', '.join(report.untrained)}. No trained weights come with this "
            "version; the pictures show that everything runs, not what the models can do."
        )
    for path in report.files:
        print(path)
    return ExitCode.OK
