"""What an evaluation found, as files for programs and for people."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.io import atomic_path, write_bytes, write_json
from sapiens2.services.evaluation.figures import HEADLINES, Figure, finite
from sapiens2.services.evaluation.report_folder import PAGE_TITLE, require_replaceable
from sapiens2.types import PathLike, Task

__all__ = ["EvaluationReport", "TaskReport", "WorstCase"]

_DIGITS = 4
_PICTURE_NAME = re.compile(r"\d\d_.*\.jpg")


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A sample on which the model did badly.

    Attributes:
        name: Of the sample.
        value: The figure that samples are ranked by.
        picture: ``(H, W, 3)`` uint8: input, truth and prediction side by side.
    """

    name: str
    value: float
    picture: NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, eq=False)
class TaskReport:
    """What was found for one task.

    Attributes:
        task: The task.
        model: Name of the checkpoint; it says when weights are random.
        protocol: How it was measured.
        baseline: What the baselines are.
        figures: Every figure with its baseline.
        notes: What a reader has to know.
        settings: Metrics and their arguments, masks and alignments among them.
        ranked_by: Figure that the worst cases are ranked by.
        worst: The worst first.
    """

    task: Task
    model: str
    protocol: str
    baseline: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]
    settings: tuple[dict[str, Any], ...]
    ranked_by: str
    worst: tuple[WorstCase, ...]

    def __iter__(self) -> Iterator[str]:
        """The names of the figures."""
        return (figure.name for figure in self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __contains__(self, name: object) -> bool:
        return any(figure.name == name for figure in self.figures)

    def __getitem__(self, name: str) -> Figure:
        """The figure of a name.

        Raises:
            KeyError: There is none.
        """
        found = next((figure for figure in self.figures if figure.name == name), None)
        if found is None:
            raise KeyError(f"{name}; there are {', '.join(self)}")
        return found

    @property
    def headlines(self) -> list[tuple[str, Figure]]:
        """The main figures, each with what people call it."""
        there = {figure.name: figure for figure in self.figures}
        return [(label, there[name]) for name, label in HEADLINES[self.task] if name in there]

    def to_dict(self) -> dict[str, Any]:
        """Everything but pictures, as strict JSON can hold it: figures that are NaN or infinite are None."""
        return {
            "model": self.model,
            "protocol": self.protocol,
            "figures": {figure.name: finite(figure.value) for figure in self.figures},
            "baselines": {own.name: finite(own.baseline) for own in self.figures if own.baseline is not None},
            "baseline": self.baseline,
            "notes": list(self.notes),
            "metrics": list(self.settings),
            "ranked_by": self.ranked_by,
            "worst": [{"name": case.name, self.ranked_by: case.value} for case in self.worst],
        }


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """What was found for all tasks.

    Attributes:
        tasks: Task -> what was found.
        samples: For each sample its ``index``, ``name`` and ``figures`` by task; NaN is None.
        about: Model, data, device, versions and times.
        notes: What concerns all tasks.
    """

    tasks: Mapping[Task, TaskReport]
    samples: tuple[dict[str, Any], ...]
    about: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Task]:
        """The tasks."""
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __contains__(self, task: object) -> bool:
        return task in self.tasks

    def __getitem__(self, task: Task) -> TaskReport:
        """What was found for a task.

        Raises:
            KeyError: The task was not evaluated.
        """
        if task not in self.tasks:
            raise KeyError(f"{task}; evaluated were {', '.join(self.tasks)}")
        return self.tasks[task]

    def to_dict(self) -> dict[str, Any]:
        """The report as strict JSON can hold it, without samples and pictures."""
        return {
            **self.about,
            "notes": list(self.notes),
            "tasks": {task: report.to_dict() for task, report in self.tasks.items()},
        }

    def to_markdown(self) -> str:
        """The report as a page to read."""
        about = self.about
        settings = f"{about['device']}, {about['dtype']}, batch size {about['batch_size']}"
        times = f"{about['seconds_predicting']:.1f} s predicting, {about['seconds']:.1f} s in all"
        lines = [
            PAGE_TITLE,
            "",
            f"Model {_code(about['model'])} on {_code(about['data'])}: {about['samples']} pictures.",
            f"{settings}; {times}.",
            "",
            *[f"- {note}" for note in self.notes],
        ]
        for report in self.tasks.values():
            lines += _task_page(report)
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        return "\n".join([*lines, "", f"Versions: {versions}.", ""])

    def save(self, folder: PathLike) -> list[Path]:
        """Write ``report.json``, ``report.md``, ``samples.jsonl`` and the pictures of the worst cases.

        With one task these are ``worst/01_<name>_<value>.jpg``, with several ``worst/<task>/01_...``. Pictures of an
        earlier report in the folder are removed.

        Args:
            folder: Made when it does not exist.

        Returns:
            The files, the readable page first.

        Raises:
            InputError: One of these is there and not of an earlier report; nothing is written.
        """
        root = Path(folder)
        require_replaceable(root)
        root.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(sample, ensure_ascii=False, allow_nan=False) + "\n" for sample in self.samples]
        # First of all: by it a report that was interrupted is known, and may be replaced.
        document = write_json(root / "report.json", self.to_dict(), indent=2)
        files = [
            write_bytes(root / "report.md", self.to_markdown().encode()),
            document,
            write_bytes(root / "samples.jsonl", "".join(lines).encode()),
        ]
        for old in (root / "worst").rglob("*.jpg"):
            if _PICTURE_NAME.fullmatch(old.name):
                old.unlink()
        for task, report in self.tasks.items():
            place = root / "worst" / task if len(self.tasks) > 1 else root / "worst"
            for rank, case in enumerate(report.worst, start=1):
                place.mkdir(parents=True, exist_ok=True)
                files.append(_write_jpeg(place / f"{rank:02d}_{_file_name(case.name)}_{case.value:.3g}.jpg", case))
        return files


def _task_page(report: TaskReport) -> list[str]:
    lines = ["", f"## {report.task}", "", f"{report.model}. {report.protocol}", f"Baseline: {report.baseline}.", ""]
    lines += _table([(label, figure) for label, figure in report.headlines])
    lines += ["", *[f"- {note}" for note in report.notes]]
    if report.worst:
        lines += ["", f"Worst by {_code(report.ranked_by)}:", ""]
        lines += [f"{rank}. {case.name}: {_number(case.value)}" for rank, case in enumerate(report.worst, start=1)]
    rest = [(figure.name, figure) for figure in report.figures]
    return [*lines, "", "<details><summary>All figures</summary>", "", *_table(rest), "", "</details>"]


def _table(rows: list[tuple[str, Figure]]) -> list[str]:
    header = ["| figure | value | baseline | better than the baseline |", "|---|---:|---:|---|"]
    return header + [
        f"| {label} | {_number(own.value)} | {_number(own.baseline)} | {_verdict(own)} |" for label, own in rows
    ]


def _verdict(figure: Figure) -> str:
    """Whether the baseline is beaten, and of errors by how much."""
    if figure.beats_baseline is None:
        return ""
    if not figure.beats_baseline:
        return "no"
    if figure.better == "higher" or not figure.baseline:
        return "yes"
    return f"yes, {100 * (1 - figure.value / figure.baseline):.0f} % lower"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if math.isnan(value):
        return "not measured"
    if math.isinf(value):
        return "infinite"
    return f"{value:.0f}" if value == round(value) and abs(value) >= 10**_DIGITS else f"{value:.{_DIGITS}g}"


def _code(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text}`"


def _file_name(name: str) -> str:
    """The name of a sample as part of a file's name: of a path its last component."""
    last = re.split(r"[\\/]", name)[-1]
    return re.sub(r"[^\w-]+", "-", re.sub(r"\.\w{1,5}(?=$|,)", "", last)).strip("-")[:60] or "sample"


def _write_jpeg(path: Path, case: WorstCase) -> Path:
    from PIL import Image

    with atomic_path(path) as temporary:
        Image.fromarray(case.picture).save(temporary, quality=90)
    return path
