from __future__ import annotations

import subprocess
import sys

import pytest

import sapiens2
from sapiens2.cli.main import COMMANDS, main

HEAVY = "{'torch', 'numpy', 'transformers', 'PIL'} & set(sys.modules)"


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import__loads_nothing_heavy() -> None:
    assert run_python(f"import sys, sapiens2; dir(sapiens2); print({HEAVY})") == "set()\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["predict", "--help"], ["predict"], ["predict", "x", "--size", "9b"]]
)
def test_help_and_usage__load_nothing_heavy(arguments: list[str]) -> None:
    code = f"import sys; from sapiens2.cli.main import main; main({arguments}); print('loaded', {HEAVY})"
    assert run_python(code).endswith("loaded set()\n")


def test_module__is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sapiens2", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"sapiens2 {sapiens2.__version__}\n")


def test_help__names_commands_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for word in ("predict", "demo", "models", "init", "convert", "exit codes", "130"):
        assert word in text


@pytest.mark.parametrize("command", ["predict", "demo", "models", "init", "convert", "data"])
def test_help__of_each_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--debug" in text
    assert max(len(line) for line in text.splitlines()) <= 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["predict", "a.jpg"], "one of the arguments --size --model is required"),
        (["predict", "--size", "1b"], "the following arguments are required: INPUT"),
        (["predict", "a.jpg", "--size", "1b", "--model", "x"], "not allowed with argument"),
        (["predict", "a.jpg", "--size", "7b"], "invalid choice: '7b'"),
        (["predict", "a.jpg", "--size", "1b", "--task", "face"], "invalid choice: 'face'"),
        (["predict", "a.jpg", "--size", "1b", "--batch-size", "0"], "expected a whole number of at least 1"),
        (
            ["predict", "a.jpg", "--size", "1b", "--batch-size", "x"],
            "argument --batch-size: expected a whole number of at least 1",
        ),
        (["init", "--size", "nano", "-o", "x"], "the following arguments are required: -t/--task"),
        (["convert", "a", "b", "--to", "onnx"], "invalid choice: 'onnx'"),
    ],
)
def test_usage_errors__exit_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""


def test_errors__are_one_line_unless_debug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_options: object) -> int:
        raise sapiens2.CheckpointError("the weights are torn")

    monkeypatch.setattr(COMMANDS[0], "run", fail)
    arguments = ["predict", "a.jpg", "--size", "1b"]
    assert main(arguments) == 1
    assert capsys.readouterr().err == "sapiens2 predict: the weights are torn\n"
    with pytest.raises(sapiens2.CheckpointError):
        main([*arguments, "--debug"])


def test_interrupt__exits_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(COMMANDS[0], "run", interrupt)
    assert main(["predict", "a.jpg", "--size", "1b"]) == 130
    assert capsys.readouterr().err == "interrupted; files that are there are whole\n"
