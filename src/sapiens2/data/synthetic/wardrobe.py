"""What people wear: garments as fields on the body, positive (metres) where they cover it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import ARM_METRES, INSIDE, LEG_METRES, anatomy, aside

__all__ = ["Garment", "Outfit", "sample_outfit"]

Floats = NDArray[np.float32]

FAR = 1.0


@dataclass(frozen=True)
class Garment:
    """A garment; lengths in metres on the template, whose pelvis is at z = 0.07 and whose crotch is at about -0.04.

    Attributes:
        kind: ``"upper"``, ``"lower"``, ``"skirt"``, ``"sock"``, ``"shoe"``, ``"scarf"`` or ``"glove"``.
        thickness: Distance from the skin.
        fill: 0: follows every hollow of the body, 1: spans hollows.
        flare: How much further from the body it is at its end.
        wrinkle: Height of folds.
        sleeve: Where sleeves end, as a limb coordinate; below 0 there are none.
        legs: Where legs end, as a limb coordinate.
        collar: How far below the neck it begins.
        scoop: How much deeper at the front.
        waist: Its upper end, for the lower body.
        hem: Its lower end.
        opening: Half the width of an open front; 0 is closed.
    """

    kind: str
    thickness: float = 0.006
    fill: float = 0.6
    flare: float = 0.0
    wrinkle: float = 0.002
    sleeve: float = 2.0
    legs: float = 1.9
    collar: float = 0.0
    scoop: float = 0.0
    waist: float = 0.12
    hem: float = 0.02
    opening: float = 0.0

    def field(self) -> Floats:
        """How far inside the garment each vertex of the base mesh lies, in metres; negative outside."""
        body = anatomy()
        x, y, z = body.place.T
        on_leg = body.leg > INSIDE
        if self.kind == "upper":
            field = np.minimum(np.minimum(self._neckline(), self._sleeves()), z - self.hem)
            if self.opening > 0:
                edge = self.opening * (1 + 0.8 * np.clip((z - 0.3) / 0.3, -0.5, 1))
                field = np.minimum(field, np.abs(x) - edge + 5 * np.maximum(y + 0.03, 0))
        elif self.kind in ("lower", "skirt"):
            field = np.minimum(-aside(body.place), self.waist - z)
            end = z - self.hem if self.kind == "skirt" else np.where(on_leg, (self.legs - body.leg) * LEG_METRES, FAR)
            field = np.minimum(field, end)
        elif self.kind in ("sock", "shoe"):
            field = np.where(on_leg, self.waist - z, -FAR)
        elif self.kind == "glove":
            field = (body.arm - self.sleeve) * ARM_METRES
        else:  # a scarf, around the neck
            field = np.minimum(0.045 - np.abs(body.collar + 0.012), 0.11 - np.hypot(x, y + 0.03))
        result: Floats = field.astype(np.float32)
        return result

    def _neckline(self) -> Floats:
        body = anatomy()
        x, y, _ = body.place.T
        bowl = np.hypot(x / 0.85, np.minimum(body.place[:, 2] - 0.56, 0)) - self.scoop - 0.035
        scooped = np.maximum(bowl, 3 * (y + 0.015)) if self.scoop > 0 else FAR
        return np.minimum(body.collar - self.collar, scooped).astype(np.float32)

    def _sleeves(self) -> Floats:
        body = anatomy()
        own = (self.sleeve - body.arm) * ARM_METRES
        if self.sleeve > 0:
            return own
        return np.maximum(own, np.minimum(0.8 * (0.43 - body.place[:, 2]), -aside(body.place)))  # armholes end above


@dataclass(frozen=True)
class Outfit:
    """Garments from the skin outwards."""

    garments: tuple[Garment, ...]


def sample_outfit(rng: np.random.Generator, gender: float) -> Outfit:
    """Clothes for the whole body; skirts and dresses more often the more feminine the build."""
    feminine = gender > 0.5
    garments: list[Garment] = []
    dress = rng.uniform() < (0.2 if feminine else 0.01)
    skirt = not dress and rng.uniform() < (0.2 if feminine else 0.01)
    lower = _skirt(rng) if skirt else _trousers(rng)
    upper = _top(rng)
    if dress:
        hem = float(rng.uniform(-0.62, -0.2))
        upper = replace(upper, hem=0.03, thickness=0.006, flare=0.0)
        lower = Garment("skirt", waist=0.16, hem=hem, flare=float(rng.uniform(0, 0.12)), thickness=0.004)
    if dress or skirt:
        garments.append(Garment("lower", waist=0.1, legs=float(rng.choice([0.25, 1.9])), thickness=0.002, fill=0.3))
    garments += _feet(rng)
    tucked = not dress and rng.uniform() < 0.3
    if tucked:
        upper = replace(
            upper, hem=lower.waist - 0.03, thickness=min(upper.thickness, lower.thickness - 0.003), flare=0.0
        )
    garments += [upper, lower] if tucked else [lower, upper]
    if rng.uniform() < 0.34:
        garments.append(_outer(rng, upper))
    if rng.uniform() < 0.07:
        garments.append(Garment("scarf", thickness=float(rng.uniform(0.03, 0.045)), fill=1.0, wrinkle=0.008))
    if rng.uniform() < 0.05:
        garments.append(Garment("glove", sleeve=float(rng.uniform(1.75, 1.97)), thickness=0.003, fill=0.2))
    return Outfit(tuple(garments))


def _top(rng: np.random.Generator) -> Garment:
    kind = rng.choice(5, p=[0.09, 0.35, 0.24, 0.2, 0.12])
    collar, scoop = float(rng.uniform(-0.005, 0.02)), float(rng.choice([0.0, rng.uniform(0.02, 0.1)]))
    hem = float(rng.uniform(-0.06, 0.1))
    if kind == 0:  # no sleeves
        return Garment(
            "upper",
            sleeve=float(rng.uniform(-0.32, -0.05)),
            collar=collar + 0.02,
            scoop=scoop + 0.03,
            hem=hem,
            thickness=0.004,
        )
    loose = float(rng.uniform(0, 1))
    own = Garment("upper", collar=collar, scoop=scoop, hem=hem, fill=0.6 + 0.4 * loose)
    if kind == 1:  # short sleeves
        own = replace(own, sleeve=float(rng.uniform(0.3, 0.85)), flare=0.025 * loose)
    elif kind == 2:  # long or three-quarter sleeves
        own = replace(own, sleeve=float(rng.uniform(1.3, 2.0)), flare=0.01 * loose)
    elif kind == 3:  # pullovers
        own = replace(own, sleeve=float(rng.uniform(1.85, 2.05)), collar=min(collar, 0.004) - 0.01, scoop=0.0)
        return replace(own, thickness=0.01 + 0.016 * loose, wrinkle=0.003 + 0.005 * loose)
    else:  # high necks
        own = replace(own, sleeve=float(rng.uniform(0.6, 2.0)), collar=float(rng.uniform(-0.045, -0.02)), scoop=0.0)
    return replace(own, thickness=0.005 + 0.012 * loose, wrinkle=0.001 + 0.006 * loose)


def _trousers(rng: np.random.Generator) -> Garment:
    short = rng.uniform() < 0.25
    loose = float(rng.beta(1.5, 2))
    return Garment(
        "lower",
        waist=float(rng.uniform(0.06, 0.17)),
        legs=float(rng.uniform(0.35, 1.05) if short else rng.choice([rng.uniform(1.3, 1.8), rng.uniform(1.84, 1.94)])),
        thickness=0.005 + 0.016 * loose,
        fill=0.65 + 0.35 * loose,
        flare=0.03 * loose,
        wrinkle=0.001 + 0.007 * loose,
    )


def _skirt(rng: np.random.Generator) -> Garment:
    return Garment(
        "skirt",
        waist=float(rng.uniform(0.1, 0.17)),
        hem=float(rng.uniform(-0.66, -0.16)),
        flare=float(rng.uniform(0, 0.16)),
        thickness=0.004,
    )


def _outer(rng: np.random.Generator, under: Garment) -> Garment:
    bulky = float(rng.uniform(0, 1))
    return Garment(
        "upper",
        sleeve=float(rng.choice([rng.uniform(-0.15, -0.02), rng.uniform(1.85, 2.1)], p=[0.12, 0.88])),
        collar=float(rng.uniform(-0.03, 0.015)),
        hem=float(rng.choice([rng.uniform(-0.05, 0.1), rng.uniform(-0.3, -0.1)], p=[0.75, 0.25])),
        thickness=under.thickness + 0.009 + 0.03 * bulky,
        fill=0.9,
        flare=0.01 + 0.02 * float(rng.uniform()),
        wrinkle=0.002 + 0.008 * bulky,
        opening=float(rng.choice([0.0, rng.uniform(0.012, 0.09)], p=[0.35, 0.65])),
    )


def _feet(rng: np.random.Generator) -> list[Garment]:
    kind = rng.choice(4, p=[0.1, 0.05, 0.65, 0.2])
    sock = Garment("sock", waist=float(rng.choice([-0.74, -0.68, -0.5])), thickness=0.002, wrinkle=0.0, fill=0.0)
    if kind == 0:
        return []
    if kind == 1:
        return [sock]
    if kind == 2:
        shoe = Garment("shoe", waist=float(rng.uniform(-0.775, -0.745)), thickness=0.006, wrinkle=0.0, fill=0.0)
        return [sock, shoe] if rng.uniform() < 0.6 else [shoe]
    return [Garment("shoe", waist=float(rng.uniform(-0.73, -0.42)), thickness=0.009, wrinkle=0.001, fill=0.0)]
