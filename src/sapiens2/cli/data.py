"""``sapiens2 data check``: a look through training data."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from sapiens2.cli.arguments import given_name
from sapiens2.cli.console import ExitCode, UsageError, print_json_line, say
from sapiens2.errors import InputError

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Look through a folder of training data: which kinds of truth there are, how much, and every fault with its file.

  images/ or rgb/          the pictures
  parts/ or labels/        class maps, with classes.txt (29 body parts without it)
  normals/                 8- or 16-bit PNG, NPY, NPZ, EXR
  depth/ with intrinsics/  in metres; a 3x3 matrix for each picture, or intrinsics.json
  alpha/ with foreground/  or trimap/
  albedo/  masks/
  keypoints.json           COCO; or annotations/*.json
"""
EPILOG = """\
exit codes: 0 no faults; 1 faults; 2 no such folder, or no data that is recognised
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "data",
        help="check training data",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=["check"], help="what to do")
    parser.add_argument("folder", type=given_name, metavar="DIR", help="the folder")
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON")
    return parser


def run(options: argparse.Namespace) -> int:
    """Check the data and print the report."""
    from tqdm import tqdm

    from sapiens2.services.check_data import check_data

    with tqdm(unit="picture", disable=not sys.stderr.isatty(), leave=False) as bar:

        def show(done: int, whole: int) -> None:
            bar.total = whole
            bar.update(done - bar.n)

        try:
            report = check_data(options.folder, on_read=show)
        except InputError as error:
            raise UsageError(str(error)) from error
    if options.json:
        print_json_line(report.to_dict())
    else:
        print(f"{report.root}: {', '.join(report.kinds) or 'nothing that can be read'}")
        for what, count in report.counts.items():
            print(f"  {count:>9,}  {what}")
        for note in report.notes:
            print(f"note: {note}")
        for fault in report.faults:
            print(f"fault: {fault}")
        print(f"{len(report.faults)} faults" if report.faults else "no faults")
    if report.faults:
        say(f"sapiens2 data: {len(report.faults)} faults in {report.root}")
        return ExitCode.FAILED
    return ExitCode.OK
