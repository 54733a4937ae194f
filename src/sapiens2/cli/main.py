"""The ``sapiens2`` command."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from sapiens2 import __version__
from sapiens2.cli import convert, data, demo, evaluate, init, models, predict, synth, train
from sapiens2.cli.console import ExitCode, UsageError, say
from sapiens2.errors import Sapiens2Error

__all__ = ["build_parser", "main"]

COMMANDS = (predict, demo, models, init, convert, data, synth, train, evaluate)

DESCRIPTION = """\
Pose, body parts, surface normals, pointmaps, matting and albedo of people in pictures, with Sapiens2 models.
"""
EPILOG = """\
exit codes:
  0    everything was done
  1    something failed; what could be done was done
  2    nothing was done: the command line, an input, the boxes or the model cannot be used as given
  130  interrupted; files that are there are whole
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="sapiens2", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"sapiens2 {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for module in COMMANDS:
        command = module.add_command(commands)
        command.add_argument("--debug", action="store_true", help="show where an error came from")
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Command line without the program's name; that of the process when left out.

    Returns:
        The exit code, see ``sapiens2 --help``.
    """
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show must not end the run
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        say("interrupted; files that are there are whole")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of stdout has had enough; the interpreter must not write to it on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except (UsageError, Sapiens2Error, OSError) as error:
        if options.debug:
            raise
        say(f"sapiens2 {options.command}: {error}")
        return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.FAILED


if __name__ == "__main__":
    sys.exit(main())
