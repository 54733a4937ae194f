"""``sapiens2 eval``: a model measured on samples with truth."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sapiens2.cli.arguments import add_compute_options, add_task_option, count, given_name, positive, require_folder
from sapiens2.cli.console import ExitCode, UsageError, print_json_line, print_table, quiet_libraries
from sapiens2.errors import CheckpointError, ConfigurationError, InputError, MissingDependencyError
from sapiens2.types import TASKS

if TYPE_CHECKING:
    from sapiens2.services.evaluate import EvaluationReport

__all__ = ["add_command", "run"]

DEFAULT_OUTPUT = "sapiens2-evaluation"

DESCRIPTION = """\
Measure a model on pictures whose truth is known, with the literature's metrics and trivial baselines beside them.
Predictions are those of `sapiens2 predict`, compared at each picture's own size; poses in the true boxes.

The report folder gets report.md to read, report.json with every figure, baseline, setting and version, samples.jsonl
with the figures of each picture, and worst/ with the pictures on which the model does worst.
"""
EPILOG = """\
MODEL is a size such as nano, a checkpoint, a folder with one for each task, or a hub id. DATA is a folder as
`sapiens2 synth` writes it, a COCO keypoint file, a .yaml file, or a description (see docs/guide/data.md):

  sapiens2 eval nano people/ -o report
  sapiens2 eval my-seg/ synthetic:count=500,seed=9,size=256x192 --task seg
  sapiens2 eval my-pose/ coco/annotations/person_keypoints_val2017.json --task pose --limit 100

exit codes:
  0    measured
  1    something failed on the way, such as a damaged picture; nothing was written
  2    nothing was done: the model, the data, the output or an argument cannot be used
  130  interrupted
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "eval",
        help="measure a model",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=given_name, metavar="MODEL", help="what to measure")
    parser.add_argument("data", type=given_name, metavar="DATA", help="what to measure it on")
    add_task_option(parser, f"repeatable: {', '.join(TASKS)}, or all that model and data have (default)")
    parser.add_argument(
        "-o",
        "--output",
        type=given_name,
        default=DEFAULT_OUTPUT,
        metavar="DIR",
        help=f"folder of the report; an earlier report there is replaced (default: {DEFAULT_OUTPUT})",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N samples")
    parser.add_argument("--worst", type=count, default=8, metavar="N", help="worst cases to draw (default: 8)")
    parser.add_argument("--flip-test", action="store_true", help="average poses with those of the mirrored crops")
    add_compute_options(parser)
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON on stdout")
    return parser


def run(options: argparse.Namespace) -> int:
    """Measure, write the report and show the main figures."""
    from tqdm import tqdm

    from sapiens2.services.evaluate import evaluate
    from sapiens2.services.evaluation.report_folder import require_replaceable

    quiet_libraries()
    require_folder(options.output)
    tasks = options.tasks or ["all"]
    is_under_way = False
    with tqdm(unit="picture", disable=not sys.stderr.isatty(), leave=False) as bar:

        def show(done: int, whole: int) -> None:
            nonlocal is_under_way
            is_under_way = True
            bar.total = whole
            bar.update(done - bar.n)

        try:
            require_replaceable(options.output)
            report = evaluate(
                options.model,
                options.data,
                "all" if "all" in tasks else tasks,
                limit=options.limit,
                batch_size=options.batch_size,
                device=options.device,
                dtype=options.dtype,
                flip_test=options.flip_test,
                worst=options.worst,
                on_sample=show,
            )
        except (ConfigurationError, CheckpointError, MissingDependencyError) as error:
            raise UsageError(str(error)) from error
        except InputError as error:
            if is_under_way:
                raise
            raise UsageError(str(error)) from error
    files = report.save(options.output)
    if options.json:
        print_json_line(report.to_dict())
    else:
        _print(report)
        print(f"{files[0]} and {len(files) - 1} more files")
    return ExitCode.OK


def _print(report: EvaluationReport) -> None:
    for task, own in report.tasks.items():
        print(f"{task}: {own.model}, {report.about['samples']} pictures")
        rows = [
            (label, f"{figure.value:.4g}", "" if figure.baseline is None else f"{figure.baseline:.4g}")
            for label, figure in own.headlines
        ]
        print_table((f"  {'figure'}", "value ", "baseline "), [(f"  {name}", *values) for name, *values in rows])
        for note in own.notes:
            print(f"  note: {note}")
    for note in report.notes:
        print(f"note: {note}")
