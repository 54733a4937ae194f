from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from sapiens2.inference import Predictor, load
from sapiens2.results import Result
from sapiens2.services.box_file import PictureBoxes
from sapiens2.services.picture_files import PictureFile
from sapiens2.services.predict_files import predict_files


@pytest.fixture(scope="module")
def predictor(nano_checkpoints: Path) -> Predictor:
    return load("pose", model=nano_checkpoints, device="cpu")


def make_pictures(folder: Path, *names: str) -> list[PictureFile]:
    for number, name in enumerate(names):
        if not name.startswith("bad"):
            Image.fromarray(np.full((20, 30, 3), 40 * number, np.uint8)).save(folder / name)
    return [PictureFile(folder / name, Path(), Path(name).stem) for name in names]


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_predict_files__a_bad_picture_does_not_stop_the_others(
    predictor: Predictor, tmp_path: Path, batch_size: int
) -> None:
    pictures = make_pictures(tmp_path, "a.png", "bad.png", "c.png", "d.png")
    outcomes = list(predict_files(predictor, pictures, output=tmp_path / "out", batch_size=batch_size))
    assert [own.picture for own in outcomes] == pictures
    assert [own.error is None for own in outcomes] == [True, False, True, True]
    assert "bad.png" in str(outcomes[1].error)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        f"{stem}_pose.{kind}" for stem in "acd" for kind in ("png", "json")
    )
    assert [set(own.files) for own in outcomes if own.files] == [
        {tmp_path / "out" / f"{stem}_pose.{kind}" for kind in ("png", "json")} for stem in "acd"
    ]


def test_predict_files__boxes_stay_with_their_pictures(predictor: Predictor, tmp_path: Path) -> None:
    pictures = make_pictures(tmp_path, "a.png", "bad.png", "c.png")
    boxes = [
        PictureBoxes(torch.tensor([[1.0, 2, 3, 4]]), None),
        PictureBoxes(torch.zeros((0, 4)), None),
        PictureBoxes(torch.tensor([[5.0, 6, 7, 8], [1, 1, 2, 2]]), np.array([0.9, 0.4], np.float32)),
    ]
    outcomes = list(predict_files(predictor, pictures, output=None, boxes=boxes, batch_size=3))
    assert outcomes[0].result.boxes_xyxy.tolist() == [[1, 2, 4, 6]]  # type: ignore[union-attr]
    assert outcomes[2].result.boxes_xyxy.tolist() == [[5, 6, 12, 14], [1, 1, 3, 3]]  # type: ignore[union-attr]
    assert outcomes[0].result.box_scores is None  # type: ignore[union-attr]
    np.testing.assert_allclose(outcomes[2].result.box_scores, [0.9, 0.4])  # type: ignore[union-attr]
    assert outcomes[1].to_dict() == {"input": str(tmp_path / "bad.png"), "error": outcomes[1].error}
    assert not any(own.files for own in outcomes)


def test_predict_files__results_that_cannot_be_saved_are_failures(predictor: Predictor, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    (outcome,) = predict_files(predictor, make_pictures(tmp_path, "a.png"), output=tmp_path / "out")
    assert outcome.error is not None
    assert outcome.error.startswith("the results cannot be saved")
    assert "error" in outcome.to_dict()


def test_predict_files__keeps_warnings_with_the_picture(predictor: Predictor, tmp_path: Path) -> None:
    class Odd(Predictor):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            warnings.warn("the scale is odd", UserWarning, stacklevel=2)
            return predictor(*args, **kwargs)

    odd = Odd({"pose": predictor.model}, {"pose": predictor.processor})
    outcomes = list(predict_files(odd, make_pictures(tmp_path, "a.png", "b.png"), output=None))
    assert [own.warnings for own in outcomes] == [("the scale is odd",)] * 2


def test_predict_files__other_warnings_go_their_way(predictor: Predictor, tmp_path: Path) -> None:
    class Deprecated(Predictor):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            warnings.warn("old", DeprecationWarning, stacklevel=2)
            return predictor(*args, **kwargs)

    old = Deprecated({"pose": predictor.model}, {"pose": predictor.processor})
    pictures = make_pictures(tmp_path, "a.png")
    with pytest.warns(DeprecationWarning, match="old"):
        list(predict_files(old, pictures, output=None))


def test_predict_files__faults_of_the_program_are_not_hidden(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any, **_kwargs: Any) -> list[Result]:
        raise AssertionError("a bug")

    monkeypatch.setattr(Predictor, "__call__", broken)
    with pytest.raises(AssertionError, match="a bug"):
        list(predict_files(predictor, make_pictures(tmp_path, "a.png"), output=None))


def test_predict_files__too_little_memory_for_a_batch_is_not_the_end(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Predictor.__call__

    def tight(self: Predictor, images: Any, *args: Any, **kwargs: Any) -> Any:
        if len(images) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, images, *args, **kwargs)

    monkeypatch.setattr(Predictor, "__call__", tight)
    outcomes = list(predict_files(predictor, make_pictures(tmp_path, "a.png", "b.png"), output=None, batch_size=2))
    assert [own.error for own in outcomes] == [None, None]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4])
def test_predict_files__warnings_stay_with_their_picture(predictor: Predictor, tmp_path: Path, batch_size: int) -> None:
    class Odd(Predictor):
        def __call__(self, images: Any, *args: Any, **kwargs: Any) -> Any:
            for index, path in enumerate(images):
                if path.name == "b.png":
                    warnings.warn(f"picture {index} is odd", UserWarning, stacklevel=2)
                    warnings.warn(f"picture {index} is odd", UserWarning, stacklevel=2)
            return predictor(images, *args, **kwargs)

    odd = Odd({"pose": predictor.model}, {"pose": predictor.processor})
    pictures = make_pictures(tmp_path, "a.png", "b.png", "bad.png", "d.png")
    outcomes = list(predict_files(odd, pictures, output=None, batch_size=batch_size))
    assert [own.warnings for own in outcomes] == [(), ("picture 0 is odd",), (), ()]
    assert [own.error is None for own in outcomes] == [True, True, False, True]


@pytest.mark.parametrize("kind", [RuntimeError, IndexError, KeyError])
def test_predict_files__a_decoder_that_raises_anything_fails_its_picture_only(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    load_pixels = PngImageFile.load

    def load_or_fail(image: PngImageFile) -> Any:
        if Path(str(image.filename)).name == "b.png":
            raise kind("corrupt stream")
        return load_pixels(image)

    monkeypatch.setattr(PngImageFile, "load", load_or_fail)
    pictures = make_pictures(tmp_path, "a.png", "b.png", "c.png")
    outcomes = list(predict_files(predictor, pictures, output=None, batch_size=3))
    assert [own.error is None for own in outcomes] == [True, False, True]
    assert "b.png" in str(outcomes[1].error)
