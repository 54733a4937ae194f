"""Folders of pictures and folders of maps, joined by the stems of the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from sapiens2.data.loaders.files import PICTURE_SUFFIXES, read_rgb
from sapiens2.data.sample import Sample, check_values
from sapiens2.errors import InputError, MissingDependencyError
from sapiens2.geometry import unproject
from sapiens2.types import PathLike, SizeHW

__all__ = [
    "STATED_SIZE",
    "FolderSamples",
    "Listing",
    "TruthSource",
    "joined_fields",
    "list_files",
    "raise_problems",
    "require_stated_size",
]

STATED_SIZE = "stated_size_hw"
"""Field in which a source says of what size (height, width) its picture is; it never reaches a sample."""

_SHOWN = 5
_CHANNELS_FIRST = ("normals", "foreground", "straight_foreground", "albedo")
_DENSE = (*_CHANNELS_FIRST, "parts", "depth", "alpha", "mask", "surface")
_ON_SURFACES = ("normals", "pointmap", "albedo")


@dataclass(frozen=True)
class Listing:
    """What a folder holds.

    Attributes:
        files: Stem -> file, sorted. The stem is the name without its last suffix: ``a.b.png`` has the stem ``a.b``.
        problems: One message for each file that cannot be used.
    """

    files: Mapping[str, Path]
    problems: tuple[str, ...]


class TruthSource(Protocol):
    """One kind of truth for many pictures."""

    def listing(self) -> Listing | None:
        """Files by the stem of their picture; None where one file serves all pictures."""
        ...

    def read(self, stem: str) -> dict[str, Any]:
        """Fields of the sample called ``stem``: those that :func:`joined_fields` knows, and :data:`STATED_SIZE`.

        Raises:
            InputError: A file is damaged, or its values are of no use; the message names it.
        """
        ...


def list_files(folder: PathLike, suffixes: AbstractSet[str]) -> Listing:
    """List the files of a folder, its sub-folders left aside, by stem.

    Args:
        folder: The folder.
        suffixes: Suffixes in lower case that count; files have them in any case.

    Returns:
        The files. Problems are files with other suffixes and files that share a stem; hidden files are no problem.

    Raises:
        InputError: There is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"There is no folder {root}.")
    files: dict[str, Path] = {}
    problems: list[str] = []
    for path in sorted(root.iterdir()):
        if path.is_dir() or path.name.startswith("."):
            continue
        if path.suffix.lower() not in suffixes:
            problems.append(f"{path}: not a file that is read here; expected {', '.join(sorted(suffixes))}")
        elif path.stem in files:
            problems.append(f"{path}: has the same stem as {files[path.stem].name}, so it is not clear which is meant")
        else:
            files[path.stem] = path
    return Listing(files, tuple(problems))


class FolderSamples(Dataset[Sample]):
    """Pictures of a folder, with truth from other folders. Files are read when a sample is asked for.

    Args:
        images: Folder of pictures.
        sources: Where the truth comes from.
        strict: Whether any problem with the files is an error. Otherwise pictures without all of their partners are
            left out, and ``problems`` says which.

    Attributes:
        stems: Stem of each sample, sorted.
        problems: What is wrong with the files: partners that are missing, doubles, foreign files.

    Raises:
        InputError: A folder is missing or has no pictures; with ``strict``, there is a problem.
    """

    def __init__(self, images: PathLike, sources: Sequence[TruthSource], *, strict: bool = True) -> None:
        listing = list_files(images, PICTURE_SUFFIXES)
        self.root = Path(images)
        self.sources = tuple(sources)
        problems = list(listing.problems)
        complete = set(listing.files)
        for source in self.sources:
            own = source.listing()
            if own is None:
                continue
            problems += own.problems
            problems += [f"{listing.files[stem]}: has no partner in {_place(source)}" for stem in _less(listing, own)]
            problems += [f"{own.files[stem]}: there is no picture {stem} in {images}" for stem in _less(own, listing)]
            complete &= set(own.files)
        self.stems = tuple(sorted(complete))
        self._listing = listing
        self.problems = tuple(problems)
        self._images = {stem: listing.files[stem] for stem in self.stems}
        if not listing.files:
            raise InputError(
                f"There are no pictures in {images}; expected {', '.join(sorted(PICTURE_SUFFIXES))}. Folders in it are "
                "not looked into."
            )
        if strict:
            raise_problems(self.problems, str(images))

    def __len__(self) -> int:
        return len(self.stems)

    def image_path(self, index: int) -> Path:
        """File of a picture."""
        return self._images[self.stems[index]]

    def __getitem__(self, index: int) -> Sample:
        """Read a sample.

        Raises:
            IndexError: There is no such sample.
            InputError: A file is damaged, or the files of the sample do not fit each other; the message names them.
        """
        path = self.image_path(index)
        image = read_rgb(path)
        fields: dict[str, Any] = {}
        for source in self.sources:
            _add(fields, _read_fitting(source, path, image.shape[:2]))
        return check_values(Sample(image=image, name=str(path), **joined_fields(fields)))

    def all_stems(self) -> tuple[str, ...]:
        """Stems of all pictures and of all files of truth, those without partners too."""
        listings = [own for source in self.sources if (own := source.listing()) is not None]
        return tuple(sorted({stem for own in (self._listing, *listings) for stem in own.files}))

    def examine(self, stem: str) -> tuple[dict[str, Any], list[str]]:
        """Read all files of one stem, and go on after a fault.

        Args:
            stem: One of :meth:`all_stems`.

        Returns:
            The fields that could be read, ``image`` among them, and one message for each fault.
        """
        path = self._listing.files.get(stem)
        fields: dict[str, Any] = {}
        faults: list[str] = []
        size_hw: SizeHW | None = None
        if path is not None:
            with _collected(faults):
                fields["image"] = read_rgb(path)
                size_hw = fields["image"].shape[:2]
        for source in self.sources:
            own = source.listing()
            if (own is None and path is not None) or (own is not None and stem in own.files):
                with _collected(faults):
                    _add(fields, _read_fitting(source, path or Path(stem), size_hw))
        if "image" in fields and not faults:
            with _collected(faults):
                check_values(Sample(name=str(path), **joined_fields(fields)))
        return fields, faults


def joined_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a sample from what sources read.

    ``depth`` and ``intrinsics`` become a pointmap, ``straight_foreground`` and ``alpha`` a premultiplied foreground.
    What ``surface`` excludes becomes NaN in normals, points and albedo. It is no mask of the whole sample: outside of
    people there is no surface of theirs, but there is an alpha of 0.

    Convention: OpenCV camera; depth is Z.
    """
    joined = dict(fields)
    depth: NDArray[np.float32] | None = joined.pop("depth", None)
    if depth is not None and "intrinsics" in joined:
        points = unproject(torch.from_numpy(depth), torch.from_numpy(joined["intrinsics"]))[0]
        joined["pointmap"] = points.numpy()
    surface: NDArray[np.bool_] | None = joined.pop("surface", None)
    if surface is not None:
        masked = [name for name in _ON_SURFACES if name in joined]
        joined |= {name: np.where(surface, joined[name], np.float32(np.nan)) for name in masked}
    straight: NDArray[np.float32] | None = joined.pop("straight_foreground", None)
    if straight is not None:
        joined["foreground"] = straight * joined["alpha"]
    return joined


def raise_problems(problems: Sequence[str], place: str) -> None:
    """Raise an error that lists the first few problems, if there are any.

    Raises:
        InputError: There are problems.
    """
    if problems:
        more = len(problems) - _SHOWN
        listed = "\n".join(f"  {problem}" for problem in problems[:_SHOWN])
        raise InputError(
            f"{place}: {len(problems)} problems with the files:\n{listed}"
            + (f"\n  and {more} more" if more > 0 else "")
            + "\nMend them, or leave these pictures out: strict=False, or `strict: false` in a description of data."
        )


def require_stated_size(picture: Path, size_hw: SizeHW, stated_hw: SizeHW, file: PathLike) -> None:
    """Refuse a picture that is not of the size that a file of annotations says.

    Raises:
        InputError: It is not.
    """
    if size_hw != stated_hw:
        raise InputError(
            f"{picture} is {size_hw} (height, width), and {file} says {stated_hw}: the points belong to another "
            "version of it, or it is turned by EXIF."
        )


def _less(listing: Listing, other: Listing) -> list[str]:
    return sorted(set(listing.files) - set(other.files))


def _place(source: TruthSource) -> str:
    return str(getattr(source, "folder", type(source).__name__))


@contextmanager
def _collected(faults: list[str]) -> Iterator[None]:
    try:
        yield
    except (InputError, MissingDependencyError) as error:
        faults.append(str(error))


def _read_fitting(source: TruthSource, path: Path, size_hw: SizeHW | None) -> dict[str, Any]:
    read = source.read(path.stem)
    stated: SizeHW | None = read.pop(STATED_SIZE, None)
    if size_hw is not None:
        if stated is not None:
            require_stated_size(path, size_hw, stated, _place(source))
        _require_size(read, size_hw, path, source)
    return read


def _add(fields: dict[str, Any], read: dict[str, Any]) -> None:
    """Add fields to others; a pixel has to pass all masks."""
    for name in ("mask", "surface"):
        if name in read and name in fields:
            read[name] = read[name] & fields[name]
    fields |= read


def _require_size(fields: Mapping[str, Any], size_hw: SizeHW, path: Path, source: TruthSource) -> None:
    for name in _DENSE:
        if name not in fields:
            continue
        shape = fields[name].shape
        found = shape[1:] if name in _CHANNELS_FIRST else shape
        if found != size_hw:
            hint = " The picture has an EXIF orientation that the map lacks?" if found == size_hw[::-1] else ""
            listing = source.listing()
            file = path if listing is None else listing.files[path.stem]
            raise InputError(
                f"{file}: {name} is {found[0]} x {found[1]} (height x width), and its "
                f"picture {path} is {size_hw[0]} x {size_hw[1]}.{hint}"
            )
