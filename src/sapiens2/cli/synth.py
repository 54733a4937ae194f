"""``sapiens2 synth``: people made here, with exact truth for every task."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from sapiens2.cli.arguments import given_name, positive, require_folder, seed
from sapiens2.cli.console import ExitCode, UsageError
from sapiens2.errors import InputError, MissingDependencyError

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Make pictures of people with exact truth: 308 keypoints, 29 body parts, normals, depth with cameras, mattes with their
foreground, albedo. The same command makes the same files. In the folder of an earlier run it goes on: what is missing
or cut is made again, and a larger --count adds to it. A folder that holds other files is refused.
Needs the extra synth: pip install 'sapiens2[synth]'
"""
EPILOG = """\
  sapiens2 synth -o people --count 1000 --size 1024x768 --people 1-3 --seed 7 --workers 8
  sapiens2 synth -o nobody --count 100 --size 256x192 --people 0
  sapiens2 synth -o clips --count 4 --size 512x768 --people 2-3 --clip
  sapiens2 data check people

exit codes:
  0    everything was made, or was there
  1    something failed on the way; what is there is whole, and the same command goes on
  2    nothing was done: an option cannot be used, or the folder holds something else
  130  interrupted; the same command goes on
"""

DEFAULT_FRAMES = 24


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
    parser.add_argument("--count", type=positive, required=True, metavar="N", help="pictures, or clips with --clip")
    parser.add_argument(
        "--size", type=_size, default=(1024, 768), metavar="HxW", help="each 16 to 4096 (default: 1024x768)"
    )
    parser.add_argument(
        "--people", type=_range, default=(1, 1), metavar="N-M", help="in a picture, 0 to 6 (default: 1)"
    )
    parser.add_argument("--seed", type=seed, default=0, help="same seed, same pictures (default: 0)")
    parser.add_argument("--workers", type=positive, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--clip", action="store_true", help="people who walk past each other, ids stay the same")
    parser.add_argument(
        "--frames",
        type=positive,
        metavar="N",
        help=f"of each clip, 12 a second; with --clip (default: {DEFAULT_FRAMES})",
    )
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
    if options.frames and not options.clip:
        raise UsageError("--frames concerns clips; add --clip, or leave it out for single pictures")
    frames = (options.frames or DEFAULT_FRAMES) if options.clip else 0
    is_under_way = False
    with tqdm(unit="picture", disable=not sys.stderr.isatty(), leave=False) as bar:

        def show(done: int, whole: int) -> None:
            nonlocal is_under_way
            is_under_way = True
            bar.total = whole
            bar.update(done - bar.n)

        try:
            request = SynthesisRequest(options.count, options.size, options.people, options.seed, frames)
            report = synthesise(options.output, request, workers=options.workers, on_picture=show)
        except (InputError, MissingDependencyError) as error:
            if is_under_way:
                raise
            raise UsageError(str(error)) from error
    kept = f", {report.kept} were there" if report.kept else ""
    print(f"{report.folder}: {report.made} pictures made{kept}")
    return ExitCode.OK
