"""A folder of generated people: whether it may be filled, what in it is whole, and with which versions it was made."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sapiens2.assets import keypoint_table
from sapiens2.errors import InputError
from sapiens2.io import read_json, write_json
from sapiens2.services.synthesis_request import Picture, SynthesisRequest
from sapiens2.types import SizeHW

__all__ = ["PNG_FOLDERS", "SynthesisFolder"]

PNG_FOLDERS = ("images", "parts", "normals", "alpha", "foreground", "albedo")

_PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_PNG_END = b"\0\0\0\0IEND\xaeB`\x82"
_ZIP_END = struct.Struct("<4s4H2LH")


class SynthesisFolder:
    """A folder that a request fills, once or over many runs.

    Args:
        path: The folder; it need not exist.
        request: What it is to hold.

    Raises:
        InputError: It holds what another request made, more than this one asks for, or files that synth did not write.
            Nothing is written before :meth:`claim`.
    """

    def __init__(self, path: Path, request: SynthesisRequest) -> None:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; name a folder")
        self.path, self.request, self.pictures = path, request, request.pictures()
        self._plan = self._opened()

    def record_path(self, picture: Picture) -> Path:
        """The file that says who is in a picture."""
        return self.path / "people" / f"{picture.stem}.json"

    def whole_record(self, picture: Picture) -> dict[str, Any] | None:
        """The record of a picture of which every file is there and whole; None where one is to be made again.

        Whole are pictures of the right size with an end, archives whose table of contents is in its place, and a
        record that tells of this picture. What lies between is not read.
        """
        pngs = (self.path / name / f"{picture.stem}.png" for name in PNG_FOLDERS)
        if any(_whole_png_size(png) != self.request.size_hw for png in pngs):
            return None
        if not _is_whole_npz(self.path / "depth" / f"{picture.stem}.npz"):
            return None
        record = _read_or_none(self.record_path(picture))
        return record if _is_record(record, picture) else None

    def claim(self, versions: dict[str, str] | None) -> None:
        """Make the folders, and note the request.

        Args:
            versions: What makes pictures now, None when nothing is to be made. Those of the first run stay; others
                that make pictures later are noted beside them.
        """
        plan = self._plan
        earlier = [plan.get("versions"), *plan.get("later_versions", [])]
        if "versions" not in plan:
            plan["versions"] = versions
        elif versions is not None and versions not in earlier:
            plan["later_versions"] = [*earlier[1:], versions]
        plan["request"] = _as_json(self.request)
        self.path.mkdir(parents=True, exist_ok=True)
        # First of all: an interrupted run is known by it.
        write_json(self.path / "scene.json", plan, indent=2)
        for name in (*PNG_FOLDERS, "depth", "people"):
            (self.path / name).mkdir(exist_ok=True)

    def finish(self, scenes: Sequence[dict[str, Any]]) -> None:
        """Note what every picture shows."""
        self._plan.pop("pictures", None)
        write_json(self.path / "scene.json", self._plan | {"pictures": list(scenes)}, indent=2)

    def _opened(self) -> dict[str, Any]:
        """What ``scene.json`` says; where there is none, what a folder that may be filled is to begin with."""
        path = self.path / "scene.json"
        plan = _read_or_none(path)
        if plan is not None:
            self._require_same(plan, path)
            return dict(plan)
        if not self._holds_files():
            return {"request": _as_json(self.request)}
        if self._records_agree():  # scene.json was lost or damaged; who made the pictures is not known any more
            return {"request": _as_json(self.request), "versions": None}
        state = "is damaged" if path.exists() else "is missing"
        raise InputError(
            f"{self.path} holds files, and nothing says that synth made them for this request, since {path} {state}; "
            "name another folder, or give the options that this one was made with"
        )

    def _require_same(self, plan: Any, path: Path) -> None:
        there = plan.get("request") if isinstance(plan, dict) else None
        if not isinstance(there, dict) or not isinstance(there.get("count"), int):
            raise InputError(f"{path} was not written by synth; name another folder")
        asked = _as_json(self.request)
        differences = [
            f"{name} is {_shown(name, there.get(name))} there and {_shown(name, asked[name])} here"
            for name in asked
            if there.get(name) != asked[name] and name != "count"
        ]
        if not differences and there["count"] > asked["count"]:
            differences = [f"count is {there['count']} there and {asked['count']} here, and a folder can only grow"]
        if differences:
            raise InputError(
                f"{self.path} holds pictures of another request: {', '.join(differences)} ({path}); "
                "name another folder, or give the same options"
            )

    def _holds_files(self) -> bool:
        """Whether anything is there but empty folders and hidden files, such as an interrupted run leaves."""
        inner = self.path.rglob("*") if self.path.is_dir() else ()
        return any(not own.name.startswith(".") and (own.is_symlink() or not own.is_dir()) for own in inner)

    def _records_agree(self) -> bool:
        """Whether there are records, all of pictures of this request, and no picture of another size."""
        planned = {picture.stem: picture for picture in self.pictures}
        is_known = False
        for path in (self.path / "people").glob("[!.]*.json"):
            record = _read_or_none(path)
            if record is None:
                continue
            if path.stem not in planned or not _is_record(record, planned[path.stem]):
                return False
            is_known = True
        pngs = (self.path / "images" / f"{stem}.png" for stem in planned)
        return is_known and all(_whole_png_size(png) in (None, self.request.size_hw) for png in pngs)


def _as_json(request: SynthesisRequest) -> dict[str, Any]:
    return asdict(request) | {"size_hw": list(request.size_hw), "people": list(request.people)}


def _shown(name: str, value: Any) -> str:
    """A value of a request as the command line takes it."""
    separator = {"size_hw": "x", "people": "-"}.get(name)
    return separator.join(map(str, value)) if separator and isinstance(value, list) else str(value)


def _read_or_none(path: Path) -> Any:
    """A JSON document; None where there is none or it is damaged."""
    try:
        return read_json(path)
    except (InputError, OSError):
        return None


def _is_record(record: Any, picture: Picture) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("framing"), str):
        return False
    if any(record.get(name) != value for name, value in asdict(picture).items()):
        return False
    sizes = {"intrinsics": 9, "boxes_xywh": 4 * picture.people, "keypoints": 3 * len(keypoint_table()) * picture.people}
    return all(_numbers_in(record.get(name)) == size for name, size in sizes.items())


def _numbers_in(value: Any) -> int | None:
    """How many numbers nested lists hold; None where they hold anything else."""
    try:
        numbers = np.array(value, np.float64)
    except (TypeError, ValueError):
        return None
    return numbers.size if np.isfinite(numbers).all() else None


def _whole_png_size(path: Path) -> SizeHW | None:
    """Height and width of a PNG that has a beginning and an end; None for anything else."""
    start, end, _ = _ends(path, len(_PNG_START) + 8, len(_PNG_END))
    if not start.startswith(_PNG_START) or end != _PNG_END:
        return None
    width, height = struct.unpack(">II", start[len(_PNG_START) :])
    return height, width


def _is_whole_npz(path: Path) -> bool:
    """Whether a ZIP archive ends with its table of contents, and begins as far before it as that says."""
    start, end, length = _ends(path, 4, _ZIP_END.size)
    if start != b"PK\3\4" or len(end) != _ZIP_END.size:
        return False
    mark, *_, size, offset, comment = _ZIP_END.unpack(end)
    return bool(mark == b"PK\5\6" and comment == 0 and offset + size + _ZIP_END.size == length)


def _ends(path: Path, first: int, last: int) -> tuple[bytes, bytes, int]:
    """The first and last bytes of a file, and its length; nothing of one that is too short or cannot be read."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            if length < first + last:
                return b"", b"", length
            file.seek(-last, os.SEEK_END)
            end = file.read(last)
            file.seek(0)
            return file.read(first), end, length
    except OSError:
        return b"", b"", 0
