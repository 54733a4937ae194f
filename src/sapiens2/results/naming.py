"""Names of the files that results are written to."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote, urlsplit

from sapiens2.errors import InputError

__all__ = ["checked_stem", "file_stem"]

MEDIA_SUFFIXES = frozenset(
    {
        *(".avif", ".bmp", ".exr", ".gif", ".heic", ".heif", ".hdr", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".npy"),
        *(".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"),
        *(".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"),
    }
)


def file_stem(source: str | None) -> str:
    """Name of an image without folder and suffix: ``"in/a.b.jpg"`` -> ``"a.b"``, and ``"image"`` without a source.

    Only the suffixes of pictures and videos are taken off, since any other dot belongs to the name.
    """
    if not source:
        return "image"
    path = unquote(urlsplit(source).path) if "://" in source else source
    name = PurePosixPath(path.replace("\\", "/")).name
    stem, dot, suffix = name.rpartition(".")
    return (stem if stem and f"{dot}{suffix}".lower() in MEDIA_SUFFIXES else name) or "image"


def checked_stem(stem: str | None, source: str | None) -> str:
    """``stem``, or that of the source when it is None.

    Raises:
        InputError: ``stem`` is empty or leads to another folder.
    """
    if stem is None:
        return file_stem(source)
    if stem in ("", ".", "..") or "\0" in stem or PureWindowsPath(stem).name != stem:
        raise InputError(f"stem must be a plain file name without folders, got {stem!r}")
    return stem
