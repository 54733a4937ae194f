"""Folders of generated people, in the layout that the loaders read: resumable, the same for any number of workers."""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapiens2 import __version__
from sapiens2._numbers import whole_number
from sapiens2.assets import keypoint_table, part_table
from sapiens2.data.synthetic import SyntheticSample, render, render_frame
from sapiens2.errors import MissingDependencyError
from sapiens2.io import (
    PosedImage,
    coco_pose_document,
    read_json,
    write_json,
    write_normals_png,
    write_npz,
    write_png,
)
from sapiens2.services.synthesis_folder import SynthesisFolder
from sapiens2.services.synthesis_request import Picture, SynthesisRequest
from sapiens2.types import PathLike, SizeHW

__all__ = ["SynthesisReport", "SynthesisRequest", "synthesise"]


@dataclass(frozen=True)
class SynthesisReport:
    """What was done: the folder, pictures made now and pictures that were there."""

    folder: Path
    made: int
    kept: int


def synthesise(
    output: PathLike,
    request: SynthesisRequest,
    *,
    workers: int = 1,
    on_picture: Callable[[int, int], None] | None = None,
) -> SynthesisReport:
    """Make pictures with their truth.

    Files: ``images/``, ``parts/`` (class ids with a palette), ``normals/`` (16-bit PNG), ``depth/`` (NPZ, metres) with
    ``intrinsics.json``, ``alpha/``, ``foreground/`` (premultiplied), ``albedo/`` (transparent where nobody is),
    ``keypoints.json`` (COCO with 308 names) and ``scene.json`` (request, seeds and versions). ``people/`` holds
    keypoints, boxes and camera of each picture.

    A folder can be filled in many runs. Pictures of which every file is there and whole are kept, the others are made;
    a larger ``count`` goes on. Versions of the first run stay in ``scene.json``; those of later runs that make pictures
    are noted in ``later_versions`` when they differ.

    Args:
        output: Folder; made when it does not exist.
        request: What to make.
        workers: Processes; the files do not depend on it.
        on_picture: Called with the pictures done and all pictures.

    Raises:
        InputError: The folder holds pictures of another request, or files that synth did not write; ``workers`` is no
            number from 1. Nothing is written then.
        MissingDependencyError: The extra ``synth`` is not installed.
    """
    workers = whole_number("workers", workers, 1)
    folder = SynthesisFolder(Path(output), request)
    records = {own.stem: folder.whole_record(own) for own in folder.pictures}
    todo = [own for own in folder.pictures if records[own.stem] is None]
    folder.claim(_versions() if todo else None)
    done = len(records) - len(todo)
    for _ in _each_made(folder, todo, workers):
        done += 1
        if on_picture is not None:
            on_picture(done, len(records))
    _summarise(folder, [records[own.stem] or read_json(folder.record_path(own)) for own in folder.pictures])
    return SynthesisReport(folder.path, len(todo), len(records) - len(todo))


def _versions() -> dict[str, str]:
    try:
        makers = {name: importlib.metadata.version(name) for name in ("anny", "warp-lang", "numpy")}
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError(
            f"{error.name} is not installed, and making people needs it. Install it with: pip install 'sapiens2[synth]'"
        ) from error
    return {"sapiens2": __version__, **makers}


def _each_made(folder: SynthesisFolder, todo: list[Picture], workers: int) -> Iterator[None]:
    path, size_hw = folder.path, folder.request.size_hw
    if workers == 1 or len(todo) < 2:
        for picture in todo:
            _make(path, picture, size_hw)
            yield
        return
    # Started afresh: Warp and threads do not survive a fork. Numbers come from kernels that run on one thread.
    context = multiprocessing.get_context("spawn")
    with _one_thread_each(), ProcessPoolExecutor(min(workers, len(todo)), mp_context=context) as pool:
        waiting = [pool.submit(_make, path, picture, size_hw) for picture in todo]
        try:
            for finished in as_completed(waiting):
                finished.result()
                yield
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started within compute on one thread."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _make(folder: Path, picture: Picture, size_hw: SizeHW) -> None:
    """Render a picture and write its files; the record comes last, so what it names is whole."""
    if picture.frames:
        sample = render_frame(picture.seed, size_hw, picture.people, picture.frame, picture.frames)
    else:
        sample = render(picture.seed, size_hw, picture.people)
    name = f"{picture.stem}.png"
    write_png(folder / "images" / name, sample.image)
    write_png(folder / "parts" / name, sample.parts, palette_rgb=part_table().palette_rgb)
    write_normals_png(folder / "normals" / name, np.nan_to_num(sample.normals))
    write_npz(folder / "depth" / f"{picture.stem}.npz", {"depth": np.nan_to_num(sample.pointmap[2])})
    write_png(folder / "alpha" / name, _to_bytes(sample.alpha))
    write_png(folder / "foreground" / name, _to_bytes(sample.foreground).transpose(1, 2, 0))
    known = _to_bytes(np.isfinite(sample.albedo[:1]).astype(np.float32))
    albedo = np.concatenate([_to_bytes(np.nan_to_num(sample.albedo)), known])
    write_png(folder / "albedo" / name, albedo.transpose(1, 2, 0))
    write_json(folder / "people" / f"{picture.stem}.json", _record(picture, sample))


def _to_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(values.clip(0, 1) * 255).astype(np.uint8)


def _record(picture: Picture, sample: SyntheticSample) -> dict[str, Any]:
    return {
        **asdict(picture),
        "framing": sample.framing,
        "intrinsics": sample.intrinsics.tolist(),
        "boxes_xywh": sample.boxes_xywh.astype(np.float64).round(3).tolist(),
        "keypoints": sample.keypoints.astype(np.float64).round(3).tolist(),
    }


def _summarise(folder: SynthesisFolder, records: list[dict[str, Any]]) -> None:
    """Join the records of all pictures into the files that loaders read."""
    write_json(folder.path / "intrinsics.json", {own["stem"]: own["intrinsics"] for own in records})
    write_json(folder.path / "keypoints.json", _coco_document(records, folder.request))
    folder.finish([{name: own[name] for name in ("stem", "seed", "people", "frame", "framing")} for own in records])


def _coco_document(records: list[dict[str, Any]], request: SynthesisRequest) -> dict[str, Any]:
    table = keypoint_table()
    visibility: list[int] = []
    images = []
    for record in records:
        points = np.array(record["keypoints"], np.float64).reshape(-1, len(table), 3)
        boxes = np.array(record["boxes_xywh"], np.float64).reshape(-1, 4)
        # People of whom the picture shows nothing are none in it.
        shown = np.flatnonzero((boxes[:, 2:] > 0).all(axis=1))
        points, boxes = points[shown], boxes[shown]
        boxes[:, 2:] += boxes[:, :2]
        seen = points[..., 2]
        visibility += seen.astype(int).ravel().tolist()
        images.append(
            PosedImage(
                file_name=f"{record['stem']}.png",
                size_hw=request.size_hw,
                keypoints=np.where(seen[..., None] > 0, points[..., :2], np.nan).astype(np.float32),
                scores=(seen > 0).astype(np.float32),
                boxes_xyxy=boxes.astype(np.float32),
                track_ids=shown.astype(np.int64) + 1,
            )
        )
    document = coco_pose_document(
        images, keypoint_names=table.names, skeleton=table.skeleton, info={"seed": request.seed, "generator": "synth"}
    )
    remaining = iter(visibility)
    for annotation in document["annotations"]:
        annotation["keypoints"][2::3] = [next(remaining) for _ in range(len(table))]
        del annotation["keypoint_scores"]
    return document
