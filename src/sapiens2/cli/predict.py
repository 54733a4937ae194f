"""``sapiens2 predict``: pictures in, files with results out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapiens2.assets.sizes import size_names
from sapiens2.cli.arguments import add_compute_options, add_task_option, given_name, require_folder
from sapiens2.cli.console import ExitCode, UsageError, print_json_line, quiet_libraries, say
from sapiens2.errors import Sapiens2Error
from sapiens2.types import TASKS, Task

if TYPE_CHECKING:
    from sapiens2.inference import Predictor
    from sapiens2.services.box_file import PictureBoxes
    from sapiens2.services.picture_files import PictureFile
    from sapiens2.services.predict_files import Outcome

__all__ = ["add_command", "run"]

DEFAULT_OUTPUT = "sapiens2-output"
MIN_PICTURES_FOR_PROGRESS = 5

DESCRIPTION = f"""\
Predict tasks for pictures and save the results: for each picture and task a picture to look at, <name>_<task>.png, and
the data beside it (pose JSON, class PNG, normals as 16-bit PNG and NPZ, pointmap as NPZ and PLY, matte as RGBA PNG,
albedo as NPZ); with several tasks also <name>_overview.png.

tasks: {", ".join(TASKS)}
"""
EPILOG = """\
examples:
  sapiens2 predict photo.jpg --size 0.4b -o out
  sapiens2 predict shoot/ "more/*.png" --task pose --task seg --size 1b -o out
  sapiens2 predict photo.jpg --model my-checkpoints/ --task all --json > results.jsonl

boxes.json holds COCO boxes (x_min, y_min, width, height) in pixels of the displayed picture, as
  {"photo.jpg": [[10, 20, 200, 400]], "empty.jpg": []}
or a COCO document or a COCO list of detections. Without it the whole picture is taken as one person.

exit codes:
  0    all pictures done
  1    some pictures failed; they are named on stderr, and the others are done
  2    nothing was done: no picture was found, the boxes, the model, the output or an argument cannot be used, or a
       file that sapiens2 did not write is where a result would go
  130  interrupted; files that are there are whole
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="pictures in, results out",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("inputs", nargs="+", type=given_name, metavar="INPUT", help="picture, folder, quoted pattern")
    parser.add_argument("-r", "--recursive", action="store_true", help="search folders to any depth")
    parser.add_argument(
        "-o",
        "--output",
        type=given_name,
        metavar="DIR",
        help=f"folder for the results (default: {DEFAULT_OUTPUT}; with --json nothing is saved unless this is given)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files that sapiens2 did not write (its own are always replaced)",
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON on stdout for each picture")
    _add_model_options(parser.add_argument_group("model"))
    _add_people_options(parser.add_argument_group("people, for the pose"))
    return parser


def _add_model_options(group: argparse._ArgumentGroup) -> None:
    weights = group.add_mutually_exclusive_group(required=True)
    weights.add_argument("--size", choices=size_names(), help="published weights of this size, see `sapiens2 models`")
    weights.add_argument(
        "--model",
        type=given_name,
        metavar="PATH",
        help="checkpoint (folder, .safetensors, hub id), or folder with one for each task",
    )
    add_task_option(
        group,
        "what to predict; repeatable, or 'all' that the size or model has "
        "(default: pose with --size, all with --model)",
    )
    add_compute_options(group)


def _add_people_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--boxes", type=given_name, metavar="FILE", help="where the people are (see below)")
    group.add_argument(
        "--min-box-score", type=float, default=0.0, metavar="S", help="leave out detections below this (default: 0)"
    )
    group.add_argument("--flip-test", action="store_true", help="average with the mirrored crops (twice the time)")


def run(options: argparse.Namespace) -> int:
    """Predict; see the command's help for the exit codes."""
    output = options.output if options.output or options.json else DEFAULT_OUTPUT
    pictures, problems = _pictures(options, output)
    predictor, boxes = _prepare(options, pictures)
    if output is not None and not options.overwrite:
        _require_replaceable(pictures, predictor.tasks, output)
    for problem in problems:
        say(f"error: {problem}")
    failed = len(problems)
    done: list[Path] = []
    for outcome in _outcomes(options, predictor, pictures, boxes, output):
        _report(outcome)
        if options.json:
            print_json_line(outcome.to_dict())
        failed += outcome.error is not None
        done += outcome.files
    if not options.json:
        _summarise(len(pictures) + len(problems), failed, done, str(output))
    elif failed:
        say(f"{failed} of {len(pictures) + len(problems)} inputs failed")
    return ExitCode.FAILED if failed else ExitCode.OK


def _pictures(options: argparse.Namespace, output: str | None) -> tuple[Sequence[PictureFile], Sequence[str]]:
    from sapiens2.services.picture_files import find_pictures

    try:
        found = find_pictures(options.inputs, recursive=options.recursive, output=output)
    except Sapiens2Error as error:
        raise UsageError(str(error)) from error
    if not found.pictures:
        raise UsageError("; ".join(found.problems))
    if output is not None:
        require_folder(output)
    return found.pictures, found.problems


def _require_replaceable(pictures: Sequence[PictureFile], tasks: Sequence[Task], output: str) -> None:
    from sapiens2.services.result_files import foreign_files

    foreign = foreign_files(pictures, tasks, output)
    if foreign:
        shown = ", ".join(map(str, foreign[:5])) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        raise UsageError(
            f"{shown}: there already, and not written by sapiens2; name another folder for the results, or add "
            "--overwrite to replace them"
        )


def _prepare(
    options: argparse.Namespace, pictures: Sequence[PictureFile]
) -> tuple[Predictor, Sequence[PictureBoxes] | None]:
    """The boxes first: they are read in no time, the model is not."""
    from sapiens2.inference import load
    from sapiens2.services.box_file import read_boxes

    quiet_libraries()
    tasks = options.tasks or (["all"] if options.model else ["pose"])
    if options.min_box_score and options.boxes is None:
        raise UsageError("--min-box-score needs --boxes")
    try:
        boxes = None
        if options.boxes is not None:
            boxes = read_boxes(options.boxes, pictures, min_score=options.min_box_score)
        predictor = load(
            "all" if "all" in tasks else tasks,
            size=options.size,
            model=options.model,
            device=options.device,
            dtype=options.dtype,
        )
    except Sapiens2Error as error:
        raise UsageError(str(error)) from error
    if "pose" not in predictor.tasks and (boxes is not None or options.flip_test):
        used = "--boxes" if boxes is not None else "--flip-test"
        raise UsageError(f"{used} concerns the pose, and the tasks are {', '.join(predictor.tasks)}; add --task pose")
    return predictor, boxes


def _outcomes(
    options: argparse.Namespace,
    predictor: Predictor,
    pictures: Sequence[PictureFile],
    boxes: Sequence[PictureBoxes] | None,
    output: str | None,
) -> Any:
    from tqdm import tqdm

    from sapiens2.services.predict_files import predict_files

    outcomes = predict_files(
        predictor, pictures, output=output, boxes=boxes, batch_size=options.batch_size, flip_test=options.flip_test
    )
    is_short = len(pictures) < MIN_PICTURES_FOR_PROGRESS
    return tqdm(outcomes, total=len(pictures), unit="picture", disable=is_short or not sys.stderr.isatty())


def _report(outcome: Outcome) -> None:
    path = str(outcome.picture.path)
    for kind, messages in (("warning", outcome.warnings), ("error", (outcome.error,) if outcome.error else ())):
        for message in messages:
            say(f"{kind}: {message}" if path in message else f"{kind}: {path}: {message}")


def _summarise(total: int, failed: int, files: Sequence[Path], output: str) -> None:
    done = total - failed
    if done:
        print(f"{done} of {total} pictures done, {len(files)} files in {output}")
    for path in files if len(files) <= 20 else []:
        print(f"  {path}")
    if failed:
        say(f"{failed} of {total} inputs failed")
