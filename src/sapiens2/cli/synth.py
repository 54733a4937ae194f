"""``sapiens2 synth``: people made here, with exact truth for every task."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from sapiens2.cli.arguments import given_name, require_folder, seed
from sapiens2.cli.console import ExitCode

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Make pictures of people with exact truth: 308 keypoints, 29 body parts, normals, depth with cameras, mattes with their
foreground, albedo. The same command makes the same files; an interrupted run goes on where it stopped.
Needs the extra synth: pip install 'sapiens2[synth]'
"""
EPILOG = """\
  sapiens2 synth -o people --count 1000 --size 1024x768 --people 1-3 --seed 7 --workers 8
  sapiens2 synth -o nobody --count 100 --size 256x192 --people 0
  sapiens2 synth -o clips --count 4 --size 512x768 --people 2-3 --clip
  sapiens2 data check people
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "synth",
        help="make labelled people",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", type=given_name, metavar="DIR", required=True, help="folder to fill")
    parser.add_argument("--count", type=int, required=True, metavar="N", help="pictures, or clips with --clip")
    parser.add_argument("--size", type=_size, default=(1024, 768), metavar="HxW", help="default: 1024x768")
    parser.add_argument("--people", type=_range, default=(1, 1), metavar="N-M", help="in a picture (default: 1)")
    parser.add_argument("--seed", type=seed, default=0, help="same seed, same pictures (default: 0)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--clip", action="store_true", help="people who walk past each other, ids stay the same")
    parser.add_argument("--frames", type=int, default=24, metavar="N", help="of each clip, 12 a second (default: 24)")
    return parser


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected HEIGHTxWIDTH such as 1024x768, got {text!r}")
    return int(match[1]), int(match[2])


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a number or a range such as 1-3, got {text!r}")
    return int(match[1]), int(match[2] or match[1])


def run(options: argparse.Namespace) -> int:
    """Make the pictures and say where they are."""
    from tqdm import tqdm

    from sapiens2.services.synthesise import SynthesisRequest, synthesise

    require_folder(options.output)
    request = SynthesisRequest(
        options.count, options.size, options.people, options.seed, options.frames if options.clip else 0
    )
    with tqdm(unit="picture", disable=not sys.stderr.isatty(), leave=False) as bar:

        def show(done: int, whole: int) -> None:
            bar.total = whole
            bar.update(done - bar.n)

        report = synthesise(options.output, request, workers=options.workers, on_picture=show)
    kept = f", {report.kept} were there" if report.kept else ""
    print(f"{report.folder}: {report.made} pictures made{kept}")
    return ExitCode.OK
