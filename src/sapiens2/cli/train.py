"""``sapiens2 train``: train a model as a recipe says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapiens2.cli.arguments import given_name, require_folder
from sapiens2.cli.console import ExitCode, UsageError, print_table, quiet_libraries, say
from sapiens2.errors import ConfigurationError, InputError, Sapiens2Error

if TYPE_CHECKING:
    from sapiens2.training import Recipe

__all__ = ["add_command", "run"]

DESCRIPTION = """\
Train a model of any of the six tasks as a recipe (YAML) says; docs/guide/training.md has all of its keys.

  task: seg
  model: {from: nano, labels: data}
  data: {train: pictures/train, eval: pictures/eval}
  training: {steps: 500, batch_size: 8}

The output folder gets recipe.yaml (with every key), checkpoints, log.jsonl, pictures, tensorboard, report.md,
report.json, and the model: `sapiens2 predict --model DIR/model --task seg photo.jpg`.
Ctrl-C saves a checkpoint after the present step; --resume goes on from it, with the same weights as without it.
Several processes: accelerate launch --num_processes 2 -m sapiens2 train RECIPE.yaml
"""
EPILOG = """\
exit codes: 0 trained; 1 the training stopped, or the overfit check failed; 2 nothing was done: recipe, model, data or
folder cannot be used as given; 130 interrupted, and saved
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="train a model as a recipe says",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recipe", type=given_name, nargs="?", metavar="RECIPE", help="the recipe, a YAML file")
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key, such as optimizer.lr=1e-4; repeatable",
    )
    parser.add_argument(
        "-o", "--output", type=given_name, metavar="DIR", help="folder to fill (default: runs/<name of the recipe>)"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--overfit", action="store_true", help="only check that one batch can be learnt by heart")
    parser.add_argument("--list", action="store_true", help="how the published models were trained (key: defaults)")
    return parser


def run(options: argparse.Namespace) -> int:
    """Train, or check, or list."""
    if options.list:
        return _list()
    if options.recipe is None:
        raise UsageError("name a recipe; `sapiens2 train --help` shows one")
    from sapiens2.training import read_recipe

    try:
        recipe = read_recipe(options.recipe, options.changes)
    except (ConfigurationError, InputError) as error:
        raise UsageError(str(error)) from error
    quiet_libraries()
    return _check_overfit(recipe) if options.overfit else _train(recipe, options)


def _train(recipe: Recipe, options: argparse.Namespace) -> int:
    from sapiens2.training.run import TrainingRun

    output = Path(options.output) if options.output else Path("runs") / Path(options.recipe).stem
    require_folder(output)
    try:
        prepared = TrainingRun(recipe, output, resume=options.resume, say=say)
    except Sapiens2Error as error:
        raise UsageError(str(error)) from error
    outcome = prepared.run()
    print(f"{outcome.model}: {recipe.task}, {outcome.report['steps']} steps; report in {outcome.folder / 'report.md'}")
    return ExitCode.OK


def _check_overfit(recipe: Recipe) -> int:
    from sapiens2.training import check_overfit
    from sapiens2.training.parts import TrainingParts

    try:
        parts = TrainingParts.of(recipe)
    except Sapiens2Error as error:
        raise UsageError(str(error)) from error
    return ExitCode.OK if check_overfit(recipe, parts=parts, say=say).passed else ExitCode.FAILED


def _list() -> int:
    from sapiens2.training.published import published_recipes

    header = ("task", "defaults", "steps ", "lr ", "layer decay ", "clip ", "precision", "batch per process ")
    rows = []
    for task, size, recipe in published_recipes():
        optimizer, training = recipe["optimizer"], recipe["training"]
        numbers = [f"{training['steps']}", f"{optimizer['lr']:g}", f"{optimizer['layer_decay']:.2f}"]
        rows.append([task, size, *numbers, f"{optimizer['clip']}", training["precision"], f"{training['batch_size']}"])
    print_table(header, rows)
    return ExitCode.OK
