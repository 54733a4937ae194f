"""What a training leaves for people and programs: ``report.json`` and ``report.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapiens2._versions import package_versions
from sapiens2.io import write_bytes, write_json
from sapiens2.training.measure import figures_of
from sapiens2.training.recipe import Recipe
from sapiens2.training.recipe_files import recipe_text
from sapiens2.training.strict_fields import plain

__all__ = ["RunFacts", "report_markdown", "run_report", "write_report"]

_PACKAGES = ("torch", "transformers", "accelerate", "peft", "numpy", "safetensors")
_LOG_LINES = 20


@dataclass(frozen=True)
class RunFacts:
    """What a training was, apart from its recipe.

    Attributes:
        steps: Steps of the whole training.
        resumed_from: Step that this sitting began at, 0 at the beginning.
        seconds: Wall-clock time of this sitting's steps.
        device: Where it ran.
        processes: How many.
        train_samples: In the training data.
        parameters: Of the model.
        trained_parameters: Those that changed.
        notes: What was new in the model, and what was remarkable on the way.
        earlier_lengths: Where the length was changed, as :class:`~sapiens2.training.lengths.EarlierLength` says it.
    """

    steps: int
    resumed_from: int
    seconds: float
    device: str
    processes: int
    train_samples: int
    parameters: int
    trained_parameters: int
    notes: Sequence[str]
    earlier_lengths: Sequence[dict[str, Any]] = ()

    def samples_per_second(self, recipe: Recipe) -> float | None:
        """Of this sitting; None when it made no step."""
        made = (self.steps - self.resumed_from) * recipe.training.batch_size * recipe.training.accumulation
        return made * self.processes / self.seconds if made and self.seconds > 0 else None


def run_report(
    recipe: Recipe,
    facts: RunFacts,
    *,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    overfit: dict[str, Any] | None,
    log: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The report as strict JSON can hold it.

    Args:
        recipe: The recipe in effect.
        facts: What the training was.
        before: What :func:`sapiens2.training.measure.measure` gave at the beginning; None without evaluation data.
        after: The same of the final model.
        overfit: What the check of one batch found.
        log: Entries of the log; the last are kept.
    """
    return {
        "task": recipe.task,
        "model": "model",
        "steps": facts.steps,
        "resumed_from_step": facts.resumed_from,
        "seconds": round(facts.seconds, 3),
        "samples_per_second": facts.samples_per_second(recipe),
        "device": facts.device,
        "processes": facts.processes,
        "train_samples": facts.train_samples,
        "parameters": facts.parameters,
        "trained_parameters": facts.trained_parameters,
        "notes": list(facts.notes),
        "earlier_lengths": list(facts.earlier_lengths),
        "seed": recipe.training.seed,
        "versions": package_versions(*_PACKAGES),
        "before": before,
        "after": after,
        "overfit": overfit,
        "log": [entry for entry in log if "loss" in entry][-_LOG_LINES:],
        "recipe": plain(recipe),
    }


def report_markdown(report: dict[str, Any], recipe: Recipe) -> str:
    """The report for people."""
    speed = report["samples_per_second"]
    lines = [
        f"# Training of {report['task']}",
        "",
        f"{report['steps']} steps on {report['train_samples']} samples, {report['processes']} process(es) on "
        f"{report['device']}; {report['seconds']:.0f} s"
        + (f" from step {report['resumed_from_step']}" if report["resumed_from_step"] else "")
        + (f", {speed:.1f} samples/s" if speed else "")
        + f". {report['trained_parameters']:,} of {report['parameters']:,} parameters were trained. "
        f"Seed {report['seed']}.",
        "",
        *[f"- {note}" for note in report["notes"]],
        *([""] if report["notes"] else []),
        *_figures(report),
        "## The last of the log",
        "",
        "```text",
        *[_log_line(entry) for entry in report["log"]],
        "```",
        "",
        "## Recipe",
        "",
        "```yaml",
        recipe_text(recipe).rstrip(),
        "```",
        "",
        "## Versions",
        "",
        ", ".join(f"{name} {number}" for name, number in report["versions"].items()),
        "",
    ]
    return "\n".join(lines)


def write_report(folder: Path, report: dict[str, Any], recipe: Recipe) -> None:
    """Write ``report.json`` and ``report.md`` into a folder."""
    write_json(folder / "report.json", report, indent=2)
    write_bytes(folder / "report.md", report_markdown(report, recipe).encode())


def _figures(report: dict[str, Any]) -> list[str]:
    after = report["after"]
    if after is None:
        return ["No evaluation data was given (`data.eval`), so nothing was measured.", ""]
    first = {} if report["before"] is None else figures_of(report["before"])
    rows = [
        f"| {name} | {_number(first.get(name))} | {_number(value)} |"
        for name, value in figures_of(after).items()
        if name not in ("images", "pixels", "people", "detections", "keypoints")
    ]
    notes = [f"- {note}" for metric in after["metrics"] for note in metric["notes"]]
    head = [f"## Figures on {after['samples']} samples", "", "| figure | before | after |", "|---|---|---|"]
    return [*head, *rows, "", *notes, *([""] if notes else [])]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _log_line(entry: dict[str, Any]) -> str:
    numbers = (
        f"{name} {value:.4g}" for name, value in entry.items() if name not in ("step", "epoch") and value is not None
    )
    return f"step {entry['step']}: " + ", ".join(numbers)
