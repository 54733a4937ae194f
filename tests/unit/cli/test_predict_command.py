from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sapiens2.cli.main import main
from sapiens2.inference import Predictor
from sapiens2.io import read_png

pytestmark = [pytest.mark.usefixtures("library_logging"), pytest.mark.filterwarnings("ignore:Predicted scales")]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("plain.png", "Ünï cödé.v2.PNG", "same.jpg", "same.png"):
        Image.fromarray(rng.integers(0, 256, (24, 40, 3), np.uint8)).save(folder / name)
    return folder


def predict(nano_checkpoints: Path, *arguments: Any, task: str | None = "seg") -> int:
    model = [] if "--size" in arguments else ["--model", str(nano_checkpoints)]
    return main(["predict", *map(str, arguments), *model, *(["--task", task] if task else [])])


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def strict_lines(text: str) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_predict__writes_files_and_a_summary(
    nano_checkpoints: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predict(nano_checkpoints, photos, "-o", tmp_path / "out") == 0
    stems = ("plain", "same.jpg", "same.png", "Ünï cödé.v2")
    assert names(tmp_path / "out") == sorted(f"{stem}_{kind}.png" for stem in stems for kind in ("seg", "seg_classes"))
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.splitlines()[0] == f"4 of 4 pictures done, 8 files in {tmp_path / 'out'}"
    assert "random weights" in read_png(tmp_path / "out" / "plain_seg.png").text["Comment"]


def test_predict__all_tasks_of_a_folder_of_checkpoints(nano_checkpoints: Path, photos: Path, tmp_path: Path) -> None:
    assert predict(nano_checkpoints, photos / "plain.png", "-o", tmp_path / "out", task=None) == 0
    assert set(names(tmp_path / "out")) == {
        f"plain_{kind}"
        for kind in (
            *("pose.png", "pose.json", "seg.png", "seg_classes.png", "normal.png", "normal_16bit.png", "normal.npz"),
            *("pointmap.png", "pointmap.npz", "pointmap.ply", "albedo.png", "albedo.npz", "overview.png"),
            *("matting.png", "matting_rgba.png", "matting_alpha.png"),
        )
    }


def test_predict__json_is_strict_and_writes_nothing_unless_told(
    nano_checkpoints: Path,
    photos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (photos / "bad.jpg").write_text("no picture")
    assert predict(nano_checkpoints, photos, "--json", task="pose") == 1
    output = capsys.readouterr()
    lines = {Path(line["input"]).name: line for line in strict_lines(output.out)}
    assert set(lines) == {"plain.png", "Ünï cödé.v2.PNG", "same.jpg", "same.png", "bad.jpg"}
    assert "bad.jpg" in lines["bad.jpg"]["error"]
    assert len(lines["plain.png"]["results"]["pose"]["people"][0]["keypoints"]) == 308
    assert lines["plain.png"]["files"] == []
    assert output.err.splitlines()[-1] == "1 of 5 inputs failed"
    assert names(tmp_path) == sorted(f"photos/{path.name}" for path in photos.iterdir())
    assert predict(nano_checkpoints, photos / "plain.png", "--json", "-o", "out", task="pose") == 0
    (line,) = strict_lines(capsys.readouterr().out)
    assert line["files"] == ["out/plain_pose.png", "out/plain_pose.json"]


def test_predict__json_holds_every_task(
    nano_checkpoints: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predict(nano_checkpoints, photos / "plain.png", "--json", task="all") == 0
    (line,) = strict_lines(capsys.readouterr().out)
    assert list(line["results"]) == ["pose", "seg", "normal", "pointmap", "matting", "albedo"]
    assert line["size_hw"] == [24, 40]


@pytest.mark.parametrize("kind", ["empty", "text", "truncated", "missing"])
def test_predict__one_bad_file_is_named_and_the_rest_go_on(
    nano_checkpoints: Path, photos: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / f"{kind}.jpg"
    content = {"empty": b"", "text": b"hello", "truncated": (photos / "same.jpg").read_bytes()[:500]}
    if kind in content:
        bad.write_bytes(content[kind])
    good = photos / "plain.png"
    assert predict(nano_checkpoints, bad, good, "-o", tmp_path / "out") == 1
    output = capsys.readouterr()
    errors = [line for line in output.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert str(bad) in errors[0]
    assert output.err.splitlines()[-1] == "1 of 2 inputs failed"
    assert "Traceback" not in output.err
    assert names(tmp_path / "out") == ["plain_seg.png", "plain_seg_classes.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.jpg"], "gone.jpg: there is no such file or folder"),
        (["nothing/"], "nothing: no pictures in this folder"),
        (["*.bmp", "gone.jpg"], "*.bmp: no picture matches this pattern; gone.jpg: there is no such"),
        (["photos/plain.png", "--boxes", "gone.json"], "cannot read the boxes in gone.json"),
        (["photos/plain.png", "--boxes", "area.json"], "area.json: plain.png: Box 1 is [5.0, 5.0, 0.0, 9.0]"),
        (["photos/plain.png", "--boxes", "strange.json"], "boxes for 'other.png', which is not among the inputs"),
        (["photos/plain.png", "--min-box-score", "0.5"], "--min-box-score needs --boxes"),
        (["photos/plain.png", "--device", "abacus"], "device='abacus' is not known"),
        (["photos/plain.png", "--dtype", "int8"], "dtype='int8' is not known"),
        (["photos/plain.png", "--model", "nowhere"], "'nowhere' was not found"),
        (["photos/plain.png", "--size", "0.1b"], "no pose weights of size 0.1b were published"),
        (["photos", "-o", "photos"], "photos is an input and the output"),
        (["photos/plain.png", "-o", "area.json/x"], "area.json is a file; name another folder"),
        (["photos/plain.png", "-o", ""], "is empty"),
        (["photos/plain.png", ""], "is empty"),
        (["photos/plain.png", "-o", "area.json"], "area.json is a file; name another folder"),
    ],
)
def test_predict__what_cannot_be_done_exits_2(
    nano_checkpoints: Path,
    photos: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(photos.parent)
    Path("nothing").mkdir()
    Path("area.json").write_text('{"plain.png": [[1, 2, 3, 4], [5, 5, 0, 9]]}')
    Path("strange.json").write_text('{"other.png": []}')
    before = names(photos.parent)
    if "--model" in arguments:
        code = main(["predict", *arguments, "--task", "pose"])
    else:
        code = predict(nano_checkpoints, *arguments, task="pose")
    output = capsys.readouterr()
    assert code == 2
    assert message in output.err
    assert output.out == ""
    assert names(photos.parent) == before


def test_predict__boxes_without_pose_exit_2(
    nano_checkpoints: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boxes.json").write_text('{"plain.png": []}')
    assert predict(nano_checkpoints, photos / "plain.png", "--boxes", tmp_path / "boxes.json") == 2
    assert "--boxes concerns the pose, and the tasks are seg; add --task pose" in capsys.readouterr().err
    assert predict(nano_checkpoints, photos / "plain.png", "--flip-test") == 2
    assert "--flip-test concerns" in capsys.readouterr().err


def test_predict__boxes_by_name_and_nobody(nano_checkpoints: Path, photos: Path, tmp_path: Path) -> None:
    boxes = {"plain.png": [[1, 2, 30, 20], [3, 4, 10, 15]], "same.jpg": []}
    (tmp_path / "boxes.json").write_text(json.dumps(boxes))
    arguments = [photos / "plain.png", photos / "same.jpg", "--boxes", tmp_path / "boxes.json", "--flip-test"]
    assert predict(nano_checkpoints, *arguments, "--batch-size", 2, "-o", tmp_path / "out", task="pose") == 0
    found = {
        stem: json.loads((tmp_path / "out" / f"{stem}_pose.json").read_text())["annotations"]
        for stem in ("plain", "same")
    }
    assert [person["bbox"] for person in found["plain"]] == [[1, 2, 30, 20], [3, 4, 10, 15]]
    assert found["same"] == []


def test_predict__scores_of_detections_reach_the_results(nano_checkpoints: Path, photos: Path, tmp_path: Path) -> None:
    detections = [{"image_id": "plain", "bbox": [1, 2, 30, 20], "score": score} for score in (0.75, 0.1)]
    (tmp_path / "boxes.json").write_text(json.dumps(detections))
    arguments = [photos / "plain.png", "--boxes", tmp_path / "boxes.json", "--min-box-score", 0.5]
    assert predict(nano_checkpoints, *arguments, "-o", tmp_path / "out", task="pose") == 0
    (person,) = json.loads((tmp_path / "out" / "plain_pose.json").read_text())["annotations"]
    assert person["bbox_score"] == 0.75


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not take bytes that are no UTF-8 as a name")
def test_predict__a_name_that_is_no_text(
    nano_checkpoints: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"caf\xe9")
    (photos / "plain.png").rename(photos / f"{name}.png")
    assert predict(nano_checkpoints, photos / f"{name}.png", "-o", tmp_path / "out", task="pose") == 0
    assert (tmp_path / "out" / f"{name}_pose.png").is_file()
    assert "caf" in capsys.readouterr().out
    assert predict(nano_checkpoints, photos / f"{name}.png", "--json", task="pose") == 0
    (line,) = strict_lines(capsys.readouterr().out)
    assert line["input"] == str(photos / f"{name}.png")


def test_predict__an_interrupt_leaves_whole_files_only(
    nano_checkpoints: Path,
    photos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    original = Predictor.__call__

    def interrupted(self: Predictor, images: Any, *args: Any, **kwargs: Any) -> Any:
        if images[0].name == "same.jpg":
            raise KeyboardInterrupt
        return original(self, images, *args, **kwargs)

    monkeypatch.setattr(Predictor, "__call__", interrupted)
    assert predict(nano_checkpoints, photos / "plain.png", photos / "same.jpg", "-o", tmp_path / "out") == 130
    assert names(tmp_path / "out") == ["plain_seg.png", "plain_seg_classes.png"]
    assert "Traceback" not in capsys.readouterr().err


def test_predict__turned_and_odd_pictures_come_out_as_displayed(nano_checkpoints: Path, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    odd = tmp_path / "odd"
    odd.mkdir()
    Image.new("RGB", (40, 20), "red").save(odd / "turned.jpg", exif=exif)
    Image.new("L", (1, 1)).save(odd / "pixel.png")
    Image.new("RGBA", (7, 5)).save(odd / "clear.png")
    Image.new("I;16", (5, 3), 40000).save(odd / "deep.png")
    assert predict(nano_checkpoints, odd, "-o", tmp_path / "out") == 0
    sizes = {
        stem: read_png(tmp_path / "out" / f"{stem}_seg_classes.png").pixels.shape
        for stem in ("turned", "pixel", "clear", "deep")
    }
    assert sizes == {"turned": (40, 20), "pixel": (1, 1), "clear": (5, 7), "deep": (3, 5)}


def test_predict__sub_folders_are_mirrored(nano_checkpoints: Path, photos: Path, tmp_path: Path) -> None:
    (photos / "sub").mkdir()
    (photos / "plain.png").rename(photos / "sub" / "plain.png")
    assert predict(nano_checkpoints, photos, "-r", "-o", tmp_path / "out", task="matting") == 0
    assert "sub/plain_matting.png" in names(tmp_path / "out")


def test_predict__prints_warnings_with_the_picture(
    nano_checkpoints: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sapiens2.models import Sapiens2ForPointmapEstimation

    model = Sapiens2ForPointmapEstimation.from_pretrained(nano_checkpoints / "nano-pointmap")
    model.scale_head.predictor.proj.bias.data.fill_(-1e3)
    model.save_pretrained(tmp_path / "model")
    assert (
        main(["predict", str(photos / "plain.png"), "--model", str(tmp_path / "model"), "-o", str(tmp_path / "o")]) == 0
    )
    assert f"warning: {photos / 'plain.png'}: Predicted scales" in capsys.readouterr().err


def test_predict__the_output_is_checked_before_the_model_is_loaded(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = photos / "same.jpg" / "out"
    assert main(["predict", str(photos / "plain.png"), "--model", "no/such", "-t", "seg", "-o", str(place)]) == 2
    assert f"{place} cannot be a folder, since {photos / 'same.jpg'} is a file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", " "])
def test_predict__an_empty_model_is_not_the_current_folder(
    photos: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(photos), "--model", name]) == 2
    assert "argument --model: is empty" in capsys.readouterr().err


def test_predict__a_model_that_is_nowhere_and_no_task(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(photos), "--model", "nope"]) == 2
    message = capsys.readouterr().err
    assert "'nope' was not found" in message
    assert "--task" in message
    assert "all" not in message.split()


def test_predict__files_of_others_stay_unless_overwritten(
    nano_checkpoints: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    Image.new("RGB", (5, 5)).save(out / "plain_seg.png")
    before = (out / "plain_seg.png").read_bytes()
    assert predict(nano_checkpoints, photos / "plain.png", "-o", out) == 2
    message = capsys.readouterr().err
    assert f"{out / 'plain_seg.png'}: there already, and not written by sapiens2" in message
    assert (out / "plain_seg.png").read_bytes() == before
    assert predict(nano_checkpoints, photos / "plain.png", "-o", out, "--overwrite") == 0
    assert predict(nano_checkpoints, photos / "plain.png", "-o", out) == 0  # its own
