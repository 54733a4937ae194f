"""The model cards and the figures of the guide, from ``scripts/nano/report.json``: ``python -m scripts.nano.pages``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.nano.export import CHECKPOINTS
from scripts.nano.report import REPORT
from scripts.nano.train import HELD_OUT, POOL_COUNT, PROCESSES, SHARED, STAGES, Stage

from sapiens2.services.evaluation.figures import HEADLINES
from sapiens2.types import TASKS, Task

__all__ = ["GUIDE", "card", "guide"]

GUIDE = Path(__file__).parents[2] / "docs/guide/nano-models.md"
TEMPLATE = Path(__file__).parent / "card.md"
NOBODY_SHARE = "empty_images_below_0.02_percent"
"""A figure that needs pictures of nobody."""

LEARNT: Mapping[Task, str] = {
    "pose": "308 keypoints of one person in a crop",
    "seg": "29 body-part classes",
    "normal": "surface normals of people",
    "pointmap": "a pointmap of people",
    "matting": "alpha and premultiplied foreground of people",
    "albedo": "albedo of people",
}
LIMITS: Mapping[Task, str] = {
    "pose": """\
It expects one person, about as large as the box or the picture. In full figures, fingers and points of the face lie
within a pixel of its heatmaps, so they are rough there.""",
    "seg": "Lips, teeth, tongue and glasses are seldom found; left and right are confused in unusual poses.",
    "normal": "Folds and faces come out smooth.",
    "pointmap": """\
It learnt shape. The distance in metres is a guess from how large people appear, since the norms of its head hide
absolute values: mind the scale error above.""",
    "matting": """\
Hair comes out as soft regions, not as strands, and the colours of the foreground as greys: take those of the picture.
Things that stand out from the background are sometimes taken for people.""",
    "albedo": "Bright light and bright surfaces cannot be told apart: it takes likely colours.",
}
IN_GUIDE: Mapping[Task, tuple[str, ...]] = {
    "pose": (
        "body/pck_0.05_percent",
        "body/pck_0.1_percent",
        "full_figures/body/pck_0.1_percent",
        "whole/pck_0.1_percent",
        "body/oks_ap",
    ),
    "seg": ("foreground_class_agreement", "mean_iou_sides_merged_above_0.1_percent", "mean_iou", "foreground_iou"),
    "normal": ("mean_angular_error_deg", "median_angular_error_deg"),
    "pointmap": ("relief_abs_rel", "relief_gain_percent", "scale_error", "abs_rel_depth"),
    "matting": ("mad", "mask_iou", NOBODY_SHARE),
    "albedo": ("mae", "psnr_db", "ssim"),
}
"""Which figures the guide shows; the cards show all headlines."""


def card(task: Task, report: Mapping[str, Any]) -> str:
    """The model card of a task."""
    people = report["people"]
    return TEMPLATE.read_text(encoding="utf-8").format(
        task=task,
        learnt=LEARNT[task],
        pool=f"{POOL_COUNT - HELD_OUT:,}",
        shared_pictures=_pictures(STAGES[SHARED]),
        own_pictures=_pictures(STAGES[task]),
        samples=people["samples"],
        data=people["data"],
        baseline=people["tasks"][task]["baseline"],
        figures="\n".join(f"| {label} | {_cells(task, name, report)} |" for name, label in HEADLINES[task]),
        limits=LIMITS[task],
    )


def guide(text: str, report: Mapping[str, Any]) -> str:
    """The guide with the report's figures between its markers."""
    rows = [
        f"| {task} | {dict(HEADLINES[task])[name]} | {_cells(task, name, report)} |"
        for task in TASKS
        for name in IN_GUIDE[task]
    ]
    table = "\n".join(["| task | figure | value | baseline |", "|---|---|---:|---:|", *rows])
    return _between(_between(text, "figures", table), "photograph", _photograph(report["photo"]))


def _pictures(stage: Stage) -> str:
    return f"{stage.steps * stage.batch * PROCESSES:,}"


def _cells(task: Task, name: str, report: Mapping[str, Any]) -> str:
    measured = report["nobody" if name == NOBODY_SHARE else "people"]["tasks"][task]
    return f"{_number(measured['figures'][name])} | {_number(measured['baselines'].get(name))}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _photograph(photo: Mapping[str, Any]) -> str:
    shares = {
        name.lower().replace("face_", "face and ").replace("_", " "): share
        for name, share in photo["part_agreement_by_class"].items()
    }
    seen = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.005)
    unseen = ", ".join(name for name, share in shares.items() if share < 0.005)
    none = f"; none of {unseen}" if unseen else ""
    text = f"""\
The matte of the crop overlaps the [outline drawn by hand](../../tests/golden/sample_photo_outline.json) with an IoU of
{photo["matte_iou_with_helmet"]:.2f} when the helmet before her counts as hers, of
{photo["matte_iou_helmet_left_out"]:.2f} when nothing is said about it, and of {photo["matte_iou"]:.2f} when it does not
count. Of the pixels whose part was drawn, {photo["part_agreement"]:.0%} get it: {seen}{none}.
"""
    return textwrap.fill(text.replace("\n", " "), 126, break_long_words=False, break_on_hyphens=False)


def _between(text: str, marker: str, content: str) -> str:
    before, rest = text.split(f"<!-- {marker} -->\n")
    _, after = rest.split("\n<!-- end -->", 1)
    return f"{before}<!-- {marker} -->\n{content}\n<!-- end -->{after}"


def main() -> None:
    """Write all cards and the guide."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    for task in TASKS:
        (CHECKPOINTS / f"nano-{task}" / "README.md").write_text(card(task, report), encoding="utf-8")
    GUIDE.write_text(guide(GUIDE.read_text(encoding="utf-8"), report), encoding="utf-8")


if __name__ == "__main__":
    main()
