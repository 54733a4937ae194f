"""Materials: a table of numbers that the shading kernel reads, and the tones and fabrics that fill it."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["PATTERNS", "MaterialTable", "fabric", "hair_color", "plain", "skin", "skin_tone"]

PATTERNS = ("plain", "around", "along", "checks", "dots", "blotches", "woven", "halves", "print")
"""Patterns by their number in the table."""

WIDTH = 16


@dataclass(eq=False)
class MaterialTable:
    """Materials of a scene, ``(M, 16)``: kind, two colours, pattern with frequency and phase, shine, mottling, wrap."""

    _rows: list[NDArray[np.float32]] = field(default_factory=list)

    def add(self, row: NDArray[np.float32]) -> int:
        """Add a material and return its number."""
        self._rows.append(row)
        return len(self._rows) - 1

    @property
    def rows(self) -> NDArray[np.float32]:
        """``(M, 16)`` float32."""
        return np.stack(self._rows) if self._rows else np.zeros((1, WIDTH), np.float32)


def plain(
    color: tuple[float, float, float] | NDArray[np.float64],
    *,
    second: tuple[float, float, float] | NDArray[np.float64] | None = None,
    pattern: str = "plain",
    frequency: float = 10.0,
    phase: float = 0.0,
    shine: float = 0.02,
    shininess: float = 12.0,
    mottle: float = 0.0,
    mottle_scale: float = 60.0,
    wrap: float = 0.0,
) -> NDArray[np.float32]:
    """A material; colours are sRGB albedo in 0..1, the frequency is per metre."""
    row = np.zeros(WIDTH, np.float32)
    row[1:4] = color
    row[4:7] = color if second is None else second
    row[7:10] = PATTERNS.index(pattern), frequency, phase
    row[10:15] = shine, shininess, mottle, mottle_scale, wrap
    return row


SKIN_STEPS = np.array(
    [
        *([0.96, 0.84, 0.77], [0.92, 0.76, 0.67], [0.86, 0.68, 0.57], [0.78, 0.59, 0.46]),
        *([0.67, 0.48, 0.36], [0.54, 0.37, 0.27], [0.41, 0.27, 0.20], [0.29, 0.19, 0.15]),
    ]
)
"""Albedo of skin from the lightest to the darkest."""


def skin_tone(rng: np.random.Generator) -> NDArray[np.float64]:
    """A tone anywhere between the steps, with a cast towards red or olive."""
    position = rng.uniform(0, len(SKIN_STEPS) - 1)
    low = min(int(position), len(SKIN_STEPS) - 2)
    tone = SKIN_STEPS[low] + (position - low) * (SKIN_STEPS[low + 1] - SKIN_STEPS[low])
    cast: NDArray[np.float64] = tone * (1 + rng.normal(0, [0.02, 0.025, 0.04]))
    return np.clip(cast, 0.05, 0.98)


def skin(rng: np.random.Generator, tone: NDArray[np.float64]) -> NDArray[np.float32]:
    """The material of skin of a tone."""
    return plain(
        tone,
        shine=float(rng.uniform(0.02, 0.13)),
        shininess=float(rng.uniform(8, 40)),
        mottle=float(rng.uniform(0.03, 0.14)),
        mottle_scale=float(rng.uniform(40, 160)),
        wrap=0.15,
    )


def hair_color(rng: np.random.Generator) -> NDArray[np.float64]:
    """Black, brown, blond, red, grey, white and now and then dyed."""
    kind = rng.choice(6, p=[0.3, 0.34, 0.14, 0.06, 0.12, 0.04])
    bases = ((0.09, 0.08, 0.08), (0.27, 0.18, 0.12), (0.68, 0.53, 0.33), (0.48, 0.22, 0.1), (0.6, 0.59, 0.58))
    if kind == 5:
        return np.array(colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0.4, 0.9), rng.uniform(0.4, 0.9)))
    return np.clip(np.array(bases[kind]) * rng.uniform(0.6, 1.35) * (1 + rng.normal(0, 0.05, 3)), 0.02, 0.95)


def fabric_color(rng: np.random.Generator) -> NDArray[np.float64]:
    """Greys, whites and blacks, denim blues, earth tones, and every strong colour."""
    kind = rng.choice(5, p=[0.22, 0.12, 0.12, 0.16, 0.38])
    if kind == 0:
        value = rng.uniform(0.06, 0.95)
        return np.clip(value + rng.normal(0, 0.015, 3), 0.03, 0.97)
    hue, saturation, value = (
        (rng.uniform(), 0.04, rng.uniform(0.85, 0.97)),
        (rng.uniform(0.56, 0.64), rng.uniform(0.25, 0.6), rng.uniform(0.2, 0.6)),
        (rng.uniform(0.05, 0.14), rng.uniform(0.2, 0.6), rng.uniform(0.25, 0.75)),
        (rng.uniform(), rng.uniform(0.3, 0.95), rng.uniform(0.2, 0.95)),
    )[kind - 1]
    return np.array(colorsys.hsv_to_rgb(hue, saturation, value))


def fabric(rng: np.random.Generator) -> NDArray[np.float32]:
    """A fabric with a pattern, or without as most are."""
    pattern = str(rng.choice(PATTERNS, p=[0.42, 0.09, 0.07, 0.09, 0.06, 0.07, 0.08, 0.04, 0.08]))
    scale = {"around": (8, 60), "along": (10, 60), "checks": (6, 50), "dots": (10, 60), "blotches": (5, 40)}
    low, high = scale.get(pattern, (8, 30))
    phase = float(rng.uniform(0, 6.28)) if pattern != "halves" else float(rng.uniform(1.0, 4.0))
    return plain(
        fabric_color(rng),
        second=fabric_color(rng),
        pattern=pattern,
        frequency=float(np.exp(rng.uniform(np.log(low), np.log(high)))),
        phase=phase,
        shine=float(rng.choice([0.0, 0.02, 0.06, 0.25], p=[0.4, 0.35, 0.18, 0.07])),
        shininess=float(rng.uniform(4, 30)),
        mottle=float(rng.choice([0.0, 0.06, 0.15, 0.3], p=[0.3, 0.35, 0.25, 0.1])),
        mottle_scale=float(np.exp(rng.uniform(np.log(8), np.log(400)))),
    )
