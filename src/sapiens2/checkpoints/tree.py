"""Folders of checkpoints from one layout to the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sapiens2.checkpoints.convert import ConversionReport, Layout, convert_checkpoint
from sapiens2.errors import CheckpointError, Sapiens2Error
from sapiens2.types import PathLike

__all__ = ["TreeOutcome", "convert_tree", "require_outside"]


@dataclass(frozen=True)
class TreeOutcome:
    """What became of one checkpoint of a folder.

    Attributes:
        source: The checkpoint.
        destination: Where it was to go.
        report: What was written; None if nothing was.
        error: Why it cannot be converted, in plain words; None if it was, or if something is at ``destination``
            already, which is left alone.
    """

    source: Path
    destination: Path
    report: ConversionReport | None = None
    error: str | None = None


def convert_tree(source: PathLike, destination: PathLike, *, layout: Layout = "transformers") -> Iterator[TreeOutcome]:
    """Convert every checkpoint below a folder; a checkpoint's place below ``source`` is kept below ``destination``.

    A folder that holds ``config.json`` or an index of shards is one checkpoint; elsewhere each ``.safetensors`` file
    is. One that fails does not stop the others, and what is at its destination already is skipped, so that a second
    run completes the first.

    Args:
        source: The folder.
        destination: Folder to make, outside of ``source``.
        layout: What to write.

    Returns:
        One outcome for each checkpoint, in order, each as soon as it is known.

    Raises:
        CheckpointError: No checkpoint is there, or ``destination`` is a file or lies inside ``source``.
    """
    root, target = Path(source), Path(destination)
    require_outside(target, root)
    sources = _checkpoints_below(root)
    if not sources:
        raise CheckpointError(f"{root} holds no checkpoint: no .safetensors file in it or below it")
    if sources == [root]:
        return iter([TreeOutcome(root, target, convert_checkpoint(root, target, layout=layout))])
    if target.is_file() or target.suffix == ".safetensors":
        raise CheckpointError(f"{root} holds {len(sources)} checkpoints, and {target} names a file; name a folder")
    return _outcomes(sources, [target / _place(path, root, layout) for path in sources], layout)


def require_outside(destination: Path, source: Path) -> None:
    """Refuse to write into the folder that is read.

    Raises:
        CheckpointError: ``destination`` is ``source``, a folder, or lies inside it.
    """
    inner, outer = destination.resolve(), source.resolve()
    if source.is_dir() and (inner == outer or outer in inner.parents):
        raise CheckpointError(f"{destination} lies inside {source}, which is to be converted; name another destination")


def _outcomes(sources: Sequence[Path], places: Sequence[Path], layout: Layout) -> Iterator[TreeOutcome]:
    taken: dict[Path, Path] = {}
    for source, place in zip(sources, places, strict=True):
        rival = taken.setdefault(place, source)
        if rival != source:
            yield TreeOutcome(source, place, error=f"{place} is also where {rival} goes; rename one of them")
        elif place.is_file() or (place.is_dir() and any(place.iterdir())):
            yield TreeOutcome(source, place)
        else:
            try:
                yield TreeOutcome(source, place, convert_checkpoint(source, place, layout=layout))
            except (Sapiens2Error, OSError) as error:
                yield TreeOutcome(source, place, error=str(error))


def _place(path: Path, root: Path, layout: Layout) -> Path:
    place = path.relative_to(root)
    if path.is_file():
        return place if layout == "original" else place.with_suffix("")
    return place.with_name(place.name + ".safetensors") if layout == "original" else place


def _checkpoints_below(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise CheckpointError(f"{folder} does not exist")
    if (folder / "config.json").is_file() or any(folder.glob("*.safetensors.index.json")):
        return [folder]
    found = sorted(folder.glob("*.safetensors"))
    for inner in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        found += _checkpoints_below(inner)
    return found
