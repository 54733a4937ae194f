"""Folders of albedo: ``images/`` (or ``rgb/``), ``albedo/`` and, if there are, ``masks/``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sapiens2.data.loaders.fields import as_albedo
from sapiens2.data.loaders.files import ARRAY_SUFFIXES, PICTURE_SUFFIXES, read_map
from sapiens2.data.loaders.folders import FolderSamples, Listing, TruthSource, list_files
from sapiens2.data.loaders.normals import Masks
from sapiens2.types import PathLike

__all__ = ["AlbedoFolder", "Albedos"]


@dataclass(frozen=True)
class Albedos:
    """Albedo in sRGB, one file for each picture; transparent pixels have none.

    Attributes:
        folder: Where they are.
    """

    folder: Path
    _files: Listing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", list_files(self.folder, PICTURE_SUFFIXES | ARRAY_SUFFIXES))

    def listing(self) -> Listing:
        """Files by stem."""
        return self._files

    def read(self, stem: str) -> dict[str, Any]:
        """Read ``albedo``."""
        path = self._files.files[stem]
        return {"albedo": as_albedo(read_map(path, keys=("albedo", "RGB")), str(path))}


class AlbedoFolder(FolderSamples):
    """Pictures with albedo.

    Args:
        images: Folder of pictures.
        albedo: Folder of albedo with the same stems.
        masks: Folder of masks, or None.
        strict: As for :class:`~sapiens2.data.loaders.folders.FolderSamples`.
    """

    def __init__(
        self, images: PathLike, albedo: PathLike, masks: PathLike | None = None, *, strict: bool = True
    ) -> None:
        sources: list[TruthSource] = [Albedos(Path(albedo))]
        if masks is not None:
            sources.append(Masks(Path(masks)))
        super().__init__(images, sources, strict=strict)
