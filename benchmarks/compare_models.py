"""Time and peak memory of one forward pass, ours against transformers, interleaved in one run.

usage: python -m benchmarks.compare_models [--size 0.4b] [--layers 4] [--tasks pose seg ...] [--dtypes float32 bfloat16]
       [--repeats 5] [--output benchmarks/results]

Both arms hold the same random weights. Times alternate arm by arm after a warm-up of each, and the order within a pair
alternates too; the ratio is ours / transformers (below 1: ours is faster). Processor time (all threads) stands beside
wall time: it tells more on a machine that does other things too. Peak memory is the most that tensors held at
once during the forward pass, weights not counted, as torch's allocator saw it; the resident set of a fresh process for
each arm, less what it held before, stands beside it (some MiB of it are code that the first pass loads).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

from benchmarks.baselines import BASELINES
from sapiens2.models import Sapiens2Config

ARMS = ("transformers", "ours-torch")
TASKS = ("pose", "seg", "normal", "pointmap", "matting")


def fields_of(task: str, size: str, layers: int | None) -> dict[str, Any]:
    config = Sapiens2Config.from_size(size, task)  # type: ignore[arg-type]
    fields = config.to_dict()
    if layers is not None:
        fields |= {
            "num_hidden_layers": layers,
            "num_key_value_heads_per_layer": None,
            "num_first_full_attention_layers": 1,
            "num_last_full_attention_layers": 1,
        }
        for name in ("out_features", "out_indices", "stage_names"):
            fields.pop(name)
    return fields


def build(arm: str, task: str, fields: dict[str, Any], dtype: torch.dtype) -> Any:
    torch.manual_seed(0)
    baseline = BASELINES[arm](task, fields)
    baseline.model.to(dtype)
    return baseline


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


@torch.inference_mode()
def compare(task: str, size: str, layers: int | None, dtype: torch.dtype, repeats: int) -> dict[str, Any]:
    fields = fields_of(task, size, layers)
    arms = {arm: build(arm, task, fields, dtype) for arm in ARMS}
    arms["ours-torch"].model.load_state_dict(arms["transformers"].model.state_dict())
    height, width = arms["ours-torch"].model.config.image_size_hw
    x = torch.randn(1, 3, height, width).to(dtype)
    results = {arm: baseline.forward(x) for arm, baseline in arms.items()}  # warm-up
    difference = (results["transformers"].float() - results["ours-torch"].float()).abs().max().item()
    seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
    cpu_seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for repeat in range(repeats):
        for arm in ARMS if repeat % 2 == 0 else reversed(ARMS):
            start, cpu_start = time.perf_counter(), time.process_time()
            arms[arm].forward(x)
            seconds[arm].append(time.perf_counter() - start)
            cpu_seconds[arm].append(time.process_time() - cpu_start)
    return {
        "task": task,
        "dtype": str(dtype).removeprefix("torch."),
        "median_s": {arm: round(statistics.median(values), 4) for arm, values in seconds.items()},
        "seconds": {arm: [round(value, 4) for value in values] for arm, values in seconds.items()},
        "ratio": paired_ratio(seconds),
        "cpu_ratio": paired_ratio(cpu_seconds),
        "max_difference": difference,
    }


def paired_ratio(seconds: dict[str, list[float]]) -> float:
    """Median over the pairs of ours / transformers."""
    pairs = zip(seconds["ours-torch"], seconds["transformers"], strict=True)
    return round(statistics.median(mine / theirs for mine, theirs in pairs), 4)


def peak_mib(arm: str, task: str, size: str, layers: int | None, dtype: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.compare_models", "--memory-of", arm, "--tasks", task]
    command += ["--size", size, "--dtypes", dtype] + ([] if layers is None else ["--layers", str(layers)])
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peaks: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return peaks


@torch.inference_mode()
def print_peak(arm: str, task: str, size: str, layers: int | None, dtype: torch.dtype) -> None:
    baseline = build(arm, task, fields_of(task, size, layers), dtype)
    height, width = fields_of(task, size, layers)["image_size"]
    x = torch.randn(1, 3, height, width).to(dtype)
    page = os.sysconf("SC_PAGE_SIZE")
    before = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * page / 2**20
    # building leaves its own high-water mark: only what goes beyond it is seen, so the forward pass must be the peak
    baseline.forward(x)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    print(json.dumps({"tensors": round(tensor_peak(baseline, x), 1), "resident": round(resident, 1)}))


def tensor_peak(baseline: Any, x: torch.Tensor) -> float:
    """The most MiB that tensors made in a forward pass held at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        baseline.forward(x)
    held = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="0.4b")
    parser.add_argument("--layers", type=int, default=None, help="fewer layers than the size has")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory runs")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=None, help="folder for the JSON result")
    options = parser.parse_args()
    if options.memory_of:
        print_peak(options.memory_of, options.tasks[0], options.size, options.layers, getattr(torch, options.dtypes[0]))
        return
    rows = []
    for dtype in options.dtypes:
        for task in options.tasks:
            row = compare(task, options.size, options.layers, getattr(torch, dtype), options.repeats)
            if not options.no_memory:
                row["peak_mib"] = {arm: peak_mib(arm, task, options.size, options.layers, dtype) for arm in ARMS}
            rows.append(row)
            print(json.dumps({key: value for key, value in row.items() if key != "seconds"}), flush=True)
    report = {
        "size": options.size,
        "layers": options.layers,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
        "rows": rows,
    }
    if options.output is not None:
        depth = "full" if options.layers is None else f"{options.layers}layers"
        name = f"models-{options.size}-{depth}-torch{torch.__version__.split('+')[0]}-cpu.json"
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
