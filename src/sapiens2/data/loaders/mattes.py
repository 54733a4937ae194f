"""Folders of mattes: ``images/``, ``alpha/`` with ``foreground/``, or ``trimap/``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sapiens2.data.loaders.fields import as_alpha, as_foreground, as_trimap
from sapiens2.data.loaders.files import PICTURE_SUFFIXES, read_map
from sapiens2.data.loaders.folders import FolderSamples, Listing, TruthSource, list_files
from sapiens2.errors import ConfigurationError
from sapiens2.types import PathLike

__all__ = ["Foregrounds", "MatteFolder", "Mattes", "Trimaps"]

_SUFFIXES = PICTURE_SUFFIXES | {".npy", ".npz"}


@dataclass(frozen=True)
class Mattes:
    """Alpha, one file for each picture: grey pictures, the alpha channel of others, NPY or NPZ.

    Attributes:
        folder: Where they are.
    """

    folder: Path
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, _SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``alpha``."""
        path = self._files.files[stem]
        return {"alpha": as_alpha(read_map(path, keys=("alpha",)), str(path))}


@dataclass(frozen=True)
class Foregrounds:
    """Colours of the foreground, one file for each picture.

    Attributes:
        folder: Where they are.
        premultiplied: Whether colours are multiplied by alpha already. Those of files with an alpha channel never are,
            and are multiplied by it.
    """

    folder: Path
    premultiplied: bool = True
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, _SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``foreground``, or ``straight_foreground`` that has still to be multiplied by alpha."""
        path = self._files.files[stem]
        values = read_map(path, keys=("foreground",))
        multiplied = self.premultiplied or (values.ndim == 3 and values.shape[2] == 4)
        return {"foreground" if multiplied else "straight_foreground": as_foreground(values, str(path))}


@dataclass(frozen=True)
class Trimaps:
    """Alpha of 0 or 1 where it is certain, one trimap for each picture: 0, 128 for unknown, 255.

    Attributes:
        folder: Where they are.
    """

    folder: Path
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, _SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``alpha`` and ``mask``."""
        path = self._files.files[stem]
        alpha, known = as_trimap(np.asarray(read_map(path, keys=("trimap",))), str(path))
        return {"alpha": alpha, "mask": known}


class MatteFolder(FolderSamples):
    """Pictures with mattes.

    Args:
        images: Folder of pictures.
        alpha: Folder of alpha with the same stems; None where there are trimaps.
        foreground: Folder of foreground colours, or None. Training of matting needs them.
        trimap: Folder of trimaps, instead of alpha.
        premultiplied: As for :class:`Foregrounds`.
        strict: As for :class:`~sapiens2.data.loaders.folders.FolderSamples`.

    Raises:
        ConfigurationError: Neither or both of alpha and trimaps are given, or a foreground without alpha.
    """

    def __init__(
        self,
        images: PathLike,
        alpha: PathLike | None = None,
        foreground: PathLike | None = None,
        *,
        trimap: PathLike | None = None,
        premultiplied: bool = True,
        strict: bool = True,
    ) -> None:
        if (alpha is None) == (trimap is None) or (foreground is not None and alpha is None):
            raise ConfigurationError("Give alpha, with or without foreground, or else trimap.")
        sources: list[TruthSource]
        if alpha is None:
            assert trimap is not None
            sources = [Trimaps(Path(trimap))]
        else:
            sources = [Mattes(Path(alpha))]
            if foreground is not None:
                sources.append(Foregrounds(Path(foreground), premultiplied))
        super().__init__(images, sources, strict=strict)
