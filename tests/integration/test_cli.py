"""The command as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sapiens2.io import read_png

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sapiens2", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=None if os.name == "nt" else heed_ctrl_c,
    )


def heed_ctrl_c() -> None:
    """A shell that runs the tests in the background has its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_predict__stdout_is_data_and_stderr_is_talk(nano_checkpoints: Path, tmp_path: Path) -> None:
    Image.new("RGB", (30, 20)).save(tmp_path / "a.b ü.jpg")
    (tmp_path / "bad.png").touch()
    process = start("predict", tmp_path, "--model", nano_checkpoints / "nano-pose", "--json", "-o", tmp_path / "out")
    out, err = process.communicate()
    assert process.returncode == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [Path(line["input"]).name for line in lines] == ["a.b ü.jpg", "bad.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.b ü_pose.json", "a.b ü_pose.png"]
    assert [line.partition(":")[0] for line in err.splitlines()] == ["error", "1 of 2 inputs failed"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_predict__ctrl_c_exits_130_and_leaves_whole_files(nano_checkpoints: Path, tmp_path: Path) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    for number in range(400):
        Image.fromarray(np.full((64, 48, 3), number % 256, np.uint8)).save(photos / f"{number:03d}.png")
    process = start("predict", photos, "--model", nano_checkpoints / "nano-seg", "--json", "-o", out)
    assert process.stdout is not None
    first = process.stdout.readline()  # the run is under way
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted; files that are there are whole"
    assert "Traceback" not in err
    for line in [first, *rest.splitlines()]:
        for path in json.loads(line)["files"]:
            read_png(path)
    left = [path.name for path in out.iterdir()]
    assert not any(name.startswith(".") for name in left)
    assert 2 <= len(left) < 800


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE to begin with")
def test_json__a_reader_that_leaves_is_no_traceback() -> None:
    code = (
        "import itertools, sys; from sapiens2.cli import predict; from sapiens2.cli.console import print_json_line;"
        "predict.run = lambda options: [print_json_line(number) for number in itertools.count()];"
        "from sapiens2.cli.main import main; sys.exit(main(['predict', 'x', '--size', '1b', '--json']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    process.stdout.close()
    process.stdout = None  # communicate() would read from it
    _, err = process.communicate()
    assert process.returncode == 1
    assert err == ""
