"""Pictures in, files with results out; a picture that fails does not stop the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from sapiens2.errors import Sapiens2Error
from sapiens2.inference import Predictor
from sapiens2.results import PoseResult, Prediction, Result
from sapiens2.services.box_file import PictureBoxes
from sapiens2.services.picture_files import PictureFile
from sapiens2.types import PathLike

__all__ = ["Outcome", "predict_files"]

FAILURES = (Sapiens2Error, OSError, MemoryError, torch.OutOfMemoryError)
"""What one picture can be the reason of; anything else is a fault of the program and is not hidden."""


Answer: TypeAlias = tuple[Result | Prediction | Exception, tuple[str, ...]]
"""What was predicted for one picture, or why not, and what the prediction warned of."""


@dataclass(frozen=True)
class Outcome:
    """What became of one picture.

    Attributes:
        picture: The picture.
        result: What was predicted; None if that failed.
        files: Files that were written.
        warnings: What the prediction warned of.
        error: Why it failed, in plain words; None if it did not.
    """

    picture: PictureFile
    result: Result | Prediction | None = None
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON can hold it: ``input``, and ``error``, or ``files``, ``warnings`` and the result."""
        if self.result is None or self.error is not None:
            return {"input": str(self.picture.path), "error": self.error}
        files = [str(path) for path in self.files]
        return {
            "input": str(self.picture.path),
            "files": files,
            "warnings": list(self.warnings),
            **self.result.to_dict(),
        }


def predict_files(
    predictor: Predictor,
    pictures: Sequence[PictureFile],
    *,
    output: PathLike | None,
    boxes: Sequence[PictureBoxes] | None = None,
    batch_size: int = 1,
    flip_test: bool = False,
) -> Iterator[Outcome]:
    """Predict pictures and save the results, one batch after the other.

    Args:
        predictor: The tasks.
        pictures: As :func:`~sapiens2.services.picture_files.find_pictures` gives them.
        output: Folder to write to; None writes nothing.
        boxes: The people of each picture, as :func:`~sapiens2.services.box_file.read_boxes` gives them; their scores go
            into the results. None takes every whole picture as one person.
        batch_size: Pictures, or people, in one pass through a model. A batch that fails or warns is predicted again,
            picture by picture, so that errors and warnings are those of one picture.
        flip_test: Whether poses are averaged with those of the mirrored crops.

    Yields:
        One outcome for each picture, in order, as soon as its files are written. Each file is written at once.
    """
    for start in range(0, len(pictures), batch_size):
        batch = pictures[start : start + batch_size]
        own_boxes = None if boxes is None else boxes[start : start + batch_size]
        answers = _predict(predictor, batch, own_boxes, batch_size=batch_size, flip_test=flip_test)
        for picture, (result, messages) in zip(batch, answers, strict=True):
            yield _saved(picture, result, output, messages)


def _predict(
    predictor: Predictor, batch: Sequence[PictureFile], people: Sequence[PictureBoxes] | None, **options: Any
) -> list[Answer]:
    """An answer for each picture; a batch that fails or warns is taken apart to find the picture at fault."""
    boxes = None if people is None else [own.boxes for own in people]
    results: Sequence[Result | Prediction | Exception]
    with _collected_warnings() as messages:
        try:
            results = predictor([own.path for own in batch], boxes, **options)
        except FAILURES as error:
            results = [error]
    if len(batch) > 1 and (messages or isinstance(results[0], Exception)):
        singles = [None] * len(batch) if people is None else [[own] for own in people]
        return [
            answer
            for picture, own in zip(batch, singles, strict=True)
            for answer in _predict(predictor, [picture], own, **options)
        ]
    if people is not None:
        results = [_with_box_scores(result, own) for result, own in zip(results, people, strict=True)]
    noted = tuple(dict.fromkeys(messages))  # several tasks warn of the same
    return [(result, noted) for result in results]


def _with_box_scores(result: Any, people: PictureBoxes) -> Any:
    if people.scores is None or isinstance(result, Exception):
        return result
    if isinstance(result, PoseResult):
        return replace(result, box_scores=people.scores)
    return replace(result, pose=replace(result.pose, box_scores=people.scores))


def _saved(
    picture: PictureFile, result: Result | Prediction | Exception, output: PathLike | None, messages: tuple[str, ...]
) -> Outcome:
    if isinstance(result, Exception):
        return Outcome(picture, error=_plain(result), warnings=messages)
    if output is None:
        return Outcome(picture, result, warnings=messages)
    try:
        files = result.save(Path(output) / picture.folder, picture.stem)
    except FAILURES as error:
        return Outcome(picture, result, warnings=messages, error=f"the results cannot be saved: {_plain(error)}")
    return Outcome(picture, result, tuple(files), messages)


def _plain(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Texts of the warnings for users; others go their usual way."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
