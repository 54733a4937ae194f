"""The results of several tasks for one image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.png import write_png
from sapiens2.results.albedo import AlbedoResult
from sapiens2.results.base import Result
from sapiens2.results.matting import MattingResult
from sapiens2.results.naming import checked_stem
from sapiens2.results.normal import NormalResult
from sapiens2.results.pointmap import PointmapResult
from sapiens2.results.pose import PoseResult
from sapiens2.results.segmentation import SegmentationResult
from sapiens2.types import TASKS, PathLike, SizeHW, Task
from sapiens2.visualization.contact_sheet import draw_contact_sheet

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["Prediction"]

CAPTIONS: dict[Task, str] = {
    "pose": "Pose",
    "seg": "Body parts",
    "normal": "Surface normals",
    "pointmap": "Depth of the pointmap",
    "matting": "Matting",
    "albedo": "Albedo",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Prediction:
    """What was asked about one image: at least one task, each at most once.

    Iterating yields the results in the order of :data:`sapiens2.types.TASKS`; ``prediction["seg"]`` is one of them.
    When body parts are among them, pictures and point clouds of normals, points and albedo show people alone, unless
    these results have a mask of their own; numbers and arrays are never masked for that.

    Attributes:
        pose: None when it was not asked for; so are the others.
        seg: Body parts.
        normal: Surface normals.
        pointmap: Points of the scene.
        matting: Matte and foreground.
        albedo: Colour without light.

    Raises:
        InputError: No result, or results of different images.
    """

    pose: PoseResult | None = None
    seg: SegmentationResult | None = None
    normal: NormalResult | None = None
    pointmap: PointmapResult | None = None
    matting: MattingResult | None = None
    albedo: AlbedoResult | None = None

    def __post_init__(self) -> None:
        results = list(self)
        if not results:
            raise InputError("a prediction needs the result of at least one task")
        kinds = {(result.size_hw, result.source) for result in results}
        if len(kinds) > 1:
            found = "; ".join(f"{result.task}: {result.source} {result.size_hw}" for result in results)
            raise InputError(f"the results of a prediction must belong to one image, got {found}")

    def __iter__(self) -> Iterator[Result]:
        return (self[task] for task in self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __contains__(self, task: object) -> bool:
        return task in self.tasks

    def __getitem__(self, task: Task) -> Result:
        """The result of a task.

        Raises:
            InputError: The task was not asked for.
        """
        result: Result | None = getattr(self, task) if task in TASKS else None
        if result is None:
            raise InputError(f"there is no result for {task!r}; the tasks are {', '.join(self.tasks)}")
        return result

    def __repr__(self) -> str:
        return f"Prediction(tasks={list(self.tasks)}, size_hw={self.size_hw}, source={self.source!r})"

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that have a result."""
        return tuple(task for task in TASKS if getattr(self, task) is not None)

    @property
    def image(self) -> NDArray[np.uint8]:
        """``(H, W, 3)`` uint8: the input as it is displayed."""
        return next(iter(self)).image

    @property
    def source(self) -> str | None:
        """Where the image came from."""
        return next(iter(self)).source

    @property
    def size_hw(self) -> SizeHW:
        """``(height, width)`` of the image in pixels."""
        return next(iter(self)).size_hw

    @property
    def provenance(self) -> dict[str, str]:
        """The text that the sheet carries as metadata."""
        models = {result.model: None for result in self if result.model is not None}
        text = next(iter(self)).provenance
        if models:
            text["Comment"] = f"models: {', '.join(models)}"
        return text

    def plot(self, task: Task | None = None) -> Image.Image:
        """One task's picture; left out, that of the only task, or a sheet with the input and all tasks.

        Raises:
            InputError: The task was not asked for.
        """
        from PIL import Image

        if task is not None or len(self) == 1:
            return self._shown(task or self.tasks[0]).plot()
        return Image.fromarray(self._sheet())

    def save(self, directory: PathLike, stem: str | None = None) -> list[Path]:
        """Write the files of every task and, when there are several, the sheet ``<stem>_overview.png``.

        Args:
            directory: Folder to write to; it is made when it does not exist.
            stem: Beginning of the file names; left out, the name of the source without its suffix, or ``image``.

        Returns:
            The files that were written.

        Raises:
            InputError: The stem is not a plain file name.
        """
        name = checked_stem(stem, self.source)
        paths = [path for task in self.tasks for path in self._shown(task).save(directory, name)]
        if len(self) > 1:
            paths.append(write_png(Path(directory) / f"{name}_overview.png", self._sheet(), text=self.provenance))
        return paths

    def to_dict(self) -> dict[str, Any]:
        """``source``, ``size_hw`` and ``results``: task -> the result's own ``to_dict()``."""
        results = {result.task: result.to_dict() for result in self}
        return {"source": self.source, "size_hw": list(self.size_hw), "results": results}

    def _sheet(self) -> NDArray[np.uint8]:
        panels = [(CAPTIONS[task], np.asarray(self._shown(task).plot())) for task in self.tasks]
        return draw_contact_sheet([("Input", self.image), *panels])

    def _shown(self, task: Task) -> Result:
        """A task's result, with the mask of people when that is known from the body parts alone."""
        result = self[task]
        if self.seg is None or not isinstance(result, NormalResult | PointmapResult | AlbedoResult):
            return result
        return (
            result if result.foreground_mask is not None else replace(result, foreground_mask=self.seg.foreground_mask)
        )
