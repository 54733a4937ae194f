"""What the results of all tasks have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import InputError
from sapiens2.io.arrays import checked_array, checked_image
from sapiens2.io.png import write_png
from sapiens2.results.naming import checked_stem
from sapiens2.types import PathLike, SizeHW, Task

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["Result", "frozen", "unit_range"]

Scalar = TypeVar("Scalar", bound=np.generic)
RANGE_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(ABC):
    """One task's result for one image, at the size of the image.

    Arrays are read-only. A writable array is copied, so that the caller may reuse its buffer; one that is read-only
    already (``array.flags.writeable = False``) is taken as it is.

    Attributes:
        image: ``(H, W, 3)`` uint8 RGB: the input as it is displayed, EXIF orientation applied.
        source: Where the image came from: a path or an address; None when it came as an array.
        model: What made the result, and where its weights came from ("random weights" must not be left unsaid). It is
            written into every file.
    """

    task: ClassVar[Task]

    image: NDArray[np.uint8]
    source: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        self._freeze("image", checked_image(self.image))
        if self.source is not None:
            self._freeze("source", os.fspath(self.source))
        self._check()

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={_brief(getattr(self, field.name))}" for field in fields(self))
        return f"{type(self).__name__}({shown})"

    @property
    def size_hw(self) -> SizeHW:
        """``(height, width)`` of the image in pixels."""
        height, width, _ = self.image.shape
        return height, width

    @property
    def provenance(self) -> dict[str, str]:
        """The text that every file carries as metadata. The source is named without its folder, which may say much."""
        from sapiens2 import __version__

        text = {"Software": f"sapiens2 {__version__}"}
        if self.source is not None:
            text["Title"] = f"{Path(self.source).name} ({self.task})"
        if self.model is not None:
            text["Comment"] = f"model: {self.model}"
        return text

    @abstractmethod
    def draw(self) -> NDArray[np.uint8]:
        """The result as a picture ``(H, W, 3)`` uint8 of exactly the size of the image, for instance a video frame."""

    def plot(self) -> Image.Image:
        """The result as a picture to look at; it may carry a legend and then be larger than the image."""
        from PIL import Image

        return Image.fromarray(self._sheet())

    def save(self, directory: PathLike, stem: str | None = None) -> list[Path]:
        """Write the picture ``<stem>_<task>.png`` and the data, each file at once.

        Args:
            directory: Folder to write to; it is made when it does not exist.
            stem: Beginning of the file names; left out, the name of the source without its suffix, or ``image``.

        Returns:
            The files that were written, the picture first.

        Raises:
            InputError: The stem is not a plain file name.
        """
        folder, name = Path(directory), checked_stem(stem, self.source)
        folder.mkdir(parents=True, exist_ok=True)
        picture = write_png(folder / f"{name}_{self.task}.png", self._sheet(), text=self.provenance)
        return [picture, *self._save_data(folder, name)]

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it: all of a pose; of a map its shape and what it shows in numbers.

        Returns:
            ``task``, ``source``, ``model``, ``size_hw`` and what the task adds.
        """
        common = {"task": self.task, "source": self.source, "model": self.model, "size_hw": list(self.size_hw)}
        return common | self._summary()

    @abstractmethod
    def _check(self) -> None:
        """Validate and freeze the fields of the task."""

    @abstractmethod
    def _save_data(self, folder: Path, stem: str) -> list[Path]:
        """Write everything but the picture."""

    @abstractmethod
    def _summary(self) -> dict[str, Any]:
        """What the task adds to :meth:`to_dict`."""

    def _sheet(self) -> NDArray[np.uint8]:
        return self.draw()

    def _freeze(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array itself if it is read-only, otherwise a read-only copy."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def unit_range(value: Any, name: str, shape: tuple[int | str, ...]) -> NDArray[np.float32]:
    """``value`` as float32 in [0, 1]; what interpolation left just outside is clipped.

    Raises:
        InputError: Another shape, or values that are clearly out of range.
    """
    array = checked_array(value, name, shape, finite=True)
    low, high = float(array.min()), float(array.max())
    if low < -RANGE_TOLERANCE or high > 1 + RANGE_TOLERANCE:
        raise InputError(f"{name} must lie in [0, 1], got {low:.4g}..{high:.4g}")
    return array if low >= 0 and high <= 1 else array.clip(0, 1)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} {value.shape}>"
    if isinstance(value, tuple) and len(value) > 4:
        return f"<{len(value)} entries>"
    return repr(value)
