"""A scene: people in poses, what is around them, light and a camera; everything follows from the seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.backdrop import sample_backdrop
from sapiens2.data.synthetic.body_model import BODY_VERTICES, PosedBody
from sapiens2.data.synthetic.camera import Camera
from sapiens2.data.synthetic.framing import FRAMINGS, frame_people
from sapiens2.data.synthetic.layers import Layer, join_layers, join_surfaces
from sapiens2.data.synthetic.materials import MaterialTable, fabric
from sapiens2.data.synthetic.person import Person, dress_person, sample_person_body
from sapiens2.data.synthetic.pose import sample_pose, walking_pose
from sapiens2.data.synthetic.props import box, clutter, floor, occluders, wall
from sapiens2.data.synthetic.rotations import about, unit
from sapiens2.data.synthetic.shading import Lighting, Surface
from sapiens2.data.synthetic.shape import Figure
from sapiens2.types import SizeHW

__all__ = ["Moment", "Scene", "sample_scene"]

Vector = NDArray[np.float64]

OCCLUDED, ROOM, WALL, CLUTTER = 0.22, 0.6, 0.45, 0.6
"""How often something stands in front, there is a floor, a wall, things around."""

LOWEST_VIEW = 0.15
"""Height of the camera, metres, below which a scene has no floor."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What is rendered.

    Attributes:
        bodies: The people's bodies in the world, in the order of their numbers from 1.
        surface: All triangles, in the frame of the camera.
        materials: Their materials.
        camera: The camera.
        lighting: The lights, in the frame of the camera.
        backdrop: ``(H, W, 3)`` behind everything.
        focus: Middle and radius (metres, camera frame) of what is looked at.
        framing: What the camera frames: ``"full"``, ``"face"``, ...
    """

    bodies: tuple[PosedBody, ...]
    surface: Surface
    materials: MaterialTable
    camera: Camera
    lighting: Lighting
    backdrop: NDArray[np.float32]
    focus: tuple[Vector, float]
    framing: str


@dataclass(frozen=True)
class Moment:
    """A place in a clip.

    Attributes:
        frame: From 0.
        frames: Length of the clip.
        rate: Frames per second.
    """

    frame: int
    frames: int
    rate: float = 12.0

    @property
    def seconds(self) -> float:
        """Time since the middle of the clip."""
        return (self.frame - (self.frames - 1) / 2) / self.rate

    def at(self, frame: int) -> Moment:
        """Another frame of the same clip."""
        return replace(self, frame=frame)


def sample_scene(
    seed: int, size_hw: SizeHW, people: int, *, framing: str | None = None, moment: Moment | None = None
) -> Scene:
    """Draw a scene.

    Args:
        seed: The only source of chance.
        size_hw: Size of the picture.
        people: How many, 0 to 6.
        framing: One of :data:`FRAMINGS`; drawn when None.
        moment: A frame of a clip, in which people walk past each other before a still camera; None for a picture.
    """
    around, view, light, behind = (_stream(seed, index) for index in range(4))
    materials = MaterialTable()
    bodies = [_body(seed, number, people, moment) for number in range(people)]
    persons = [
        dress_person(figure, posed, materials, _stream(seed, number, 2))
        for number, (figure, posed) in enumerate(bodies)
    ]
    if framing is None:
        framing = "full" if moment is not None else _drawn_framing(around, people)
    shown = [posed for _, posed in bodies]
    if moment is not None:  # the camera sees the whole of their way
        ends = [moment.at(frame) for frame in (0, moment.frames - 1)]
        shown = [_body(seed, number, people, end)[1] for number in range(people) for end in ends]
    camera, focus, radius = frame_people(view, shown, size_hw, framing)
    things = _surroundings(around, materials, persons, camera, still=moment is not None)
    return Scene(
        bodies=tuple(own.posed for own in persons),
        surface=_in_camera(camera, persons, things),
        materials=materials,
        camera=camera,
        lighting=_lighting(light, camera),
        backdrop=sample_backdrop(behind, size_hw),
        focus=(camera.points(focus), radius),
        framing=framing,
    )


def _stream(seed: int, *path: int) -> np.random.Generator:
    """Chance of its own for each purpose, so that a person looks the same whatever else is drawn."""
    return np.random.default_rng([seed, len(path), *path])


def _drawn_framing(rng: np.random.Generator, people: int) -> str:
    names = list(FRAMINGS)
    shares = np.array([own.share if people < 2 or name != "face" else 0.0 for name, own in FRAMINGS.items()])
    return str(rng.choice(names, p=shares / shares.sum()))


def _body(seed: int, number: int, people: int, moment: Moment | None) -> tuple[Figure, PosedBody]:
    """The body of a person, where they are."""
    rng = _stream(seed, number, 0)
    if moment is None:
        facing = rng.normal(0, 38) if rng.uniform() < 0.72 else rng.uniform(-180, 180)
        lean = about((1.0, 0.0, 0.0), rng.normal(0, 3))
        pose = sample_pose(rng)
        place = np.array([0.72 * number + rng.uniform(-0.15, 0.15), rng.uniform(-0.4, 0.5) if people > 1 else 0.0, 0.0])
    else:
        to_the_left = bool((number + seed) % 2)
        facing = (90 if to_the_left else -90) + rng.normal(0, 18)
        lean = np.eye(3)
        speed, start = rng.uniform(0.7, 1.5), rng.uniform(0, 1)
        way = about((0.0, 0.0, 1.0), facing) @ np.array([0.0, -1.0, 0.0])
        place = way * speed * moment.seconds + np.array([rng.uniform(-0.3, 0.3), 0.55 * number, 0.0])
        pose = walking_pose(rng, float(start + moment.seconds * speed * 0.72))
    turn = about((0.0, 0.0, 1.0), facing) @ lean
    figure, posed = sample_person_body(_stream(seed, number, 1), pose, turn)
    return figure, _standing_at(posed, place)


def _standing_at(posed: PosedBody, place: Vector) -> PosedBody:
    """Move a body: its middle over ``place``, its lowest point on the floor."""
    middle = posed.heads[0]
    lowest = posed.vertices[:BODY_VERTICES, 2].min()
    shift = (place - [middle[0], middle[1], lowest - 0.012]).astype(np.float32)
    return PosedBody(
        posed.rest,
        posed.vertices + shift,
        posed.rotations,
        posed.heads + shift,
        posed.tails + shift,
        posed.rest_heads,
        posed.rest_tails,
    )


def _surroundings(
    rng: np.random.Generator, materials: MaterialTable, persons: list[Person], camera: Camera, *, still: bool
) -> list[Layer]:
    layers: list[Layer] = []
    if rng.uniform() < ROOM and camera.position[2] > LOWEST_VIEW:  # from below the floor would hide everything
        layers.append(floor(materials.add(fabric(rng)), 9.0))
    if rng.uniform() < WALL:
        layers.append(wall(materials.add(fabric(rng)), float(rng.uniform(0.9, 4.5)), float(rng.normal(0, 14)), 8.0))
    if rng.uniform() < CLUTTER or not persons:
        layers += clutter(rng, materials, (0.8, 4.0), fewest=0 if persons else 1)  # a scene has something in it
    for person in persons:
        height = person.posed.heads[0][2]
        if height < 0.75 and not still and rng.uniform() < 0.7:  # something to sit on
            seat = np.array([person.posed.heads[0][0], person.posed.heads[0][1] + 0.03, height - 0.22])
            half = np.array([rng.uniform(0.18, 0.4), rng.uniform(0.16, 0.25), 0.06])
            layers.append(box(seat, half, 0.0, materials.add(fabric(rng))))
    if persons and not still and rng.uniform() < OCCLUDED:
        places = [person.posed.heads[bone].astype(np.float64) for person in persons for bone in (0, 3, 41, 45, 98)]
        layers += occluders(rng, materials, places, camera.position)
    return layers


def _in_camera(camera: Camera, persons: list[Person], things: list[Layer]) -> Surface:
    parts = [join_layers(own.layers, number) for number, own in enumerate(persons, start=1)]
    if things:
        parts.append(join_layers(things, 0))
    world = join_surfaces(parts)
    return Surface(
        points=camera.points(world.points).astype(np.float32),
        normals=camera.directions(world.normals).astype(np.float32),
        **{
            name: getattr(world, name)
            for name in (
                *("pattern", "tint", "cut", "fray", "strand", "triangles", "material", "label", "person", "two_sided"),
            )
        },
    )


def _lighting(rng: np.random.Generator, camera: Camera) -> Lighting:
    """A lamp or the sun with light from around, from hard and bright to soft and dim, warm or cold."""
    up = camera.directions(np.array([0.0, 0.0, 1.0]))
    aside, height = rng.normal(0, 55), rng.uniform(5, 75)
    lamp = camera.directions(
        about((0.0, 0.0, 1.0), aside) @ about((1.0, 0.0, 0.0), -height) @ np.array([0.0, -1.0, 0.0])
    )
    warmth = rng.normal(0, 0.1)
    key = np.array([1 + warmth, 1.0, 1 - warmth]) * rng.uniform(0.25, 1.1)
    ambient = rng.uniform(0.18, 0.7)
    sky = np.array([1 - 0.6 * warmth, 1.0, 1 + 0.6 * warmth]) * ambient
    ground = sky * rng.uniform(0.35, 1.0) * (1 + rng.normal(0, 0.06, 3))
    fill = np.array([1.0, 1.0, 1.0]) * rng.uniform(0, 0.35) * (1 + rng.normal(0, 0.1, 3))
    exposure = rng.uniform(0.75, 1.3)
    return Lighting(
        key_direction=unit(lamp),
        key_color=key * exposure,
        fill_direction=unit(np.array([rng.normal(), rng.normal() * 0.4, -1.0])),
        fill_color=fill * exposure,
        up=up,
        sky_color=sky * exposure,
        ground_color=np.clip(ground, 0, None) * exposure,
    )
