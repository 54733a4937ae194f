"""Colour over the skin of the body: lips, cheeks, brows, beards, nails, freckles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.anatomy import anatomy
from sapiens2.data.synthetic.body_model import BODY_VERTICES
from sapiens2.data.synthetic.noise import fractal_noise
from sapiens2.data.synthetic.shape import Figure

__all__ = ["body_tint", "brow_share"]

Floats = NDArray[np.float32]
Color = NDArray[np.float64]

BROW = np.array([[0.012, 0.7515], [0.028, 0.758], [0.044, 0.756], [0.055, 0.7475]])
"""The middle of a brow on the template: distance from the midline and height, metres."""


def brow_share(place: Floats, thickness: float = 0.003) -> Floats:
    """0..1, how much a place on the template's face lies in a brow."""
    x, y, z = np.abs(place[:, 0]), place[:, 1], place[:, 2]
    middle = np.interp(x, *BROW.T)
    inside = np.clip(1.5 - np.abs(z - middle) / thickness, 0, 1)
    ends = np.clip((x - BROW[0, 0] + 0.003) / 0.005, 0, 1) * np.clip((BROW[-1, 0] - x) / 0.01, 0, 1)
    return (inside * ends * (y < -0.09)).astype(np.float32)


def body_tint(rng: np.random.Generator, figure: Figure, hair: Color, tone: Color) -> Floats:
    """``(V, 3)`` factors of the skin's colour; 1 at the helpers."""
    body = anatomy()
    place = body.place[:BODY_VERTICES]
    masks = {name: own[:BODY_VERTICES] for name, own in body.masks.items()}
    seed = int(rng.integers(1 << 31))
    tint = np.ones((len(place), 3), np.float32)
    tint *= 1 + 0.025 * fractal_noise(place * 9, seed, 3)[:, None]

    def towards(share: NDArray[np.floating], color: Color) -> None:
        chosen = np.flatnonzero(share > 1e-3)
        own = share[chosen, None]
        tint[chosen] = tint[chosen] * (1 - own) + own * color

    flush = rng.uniform(0, 0.35)
    for centre in ((0.042, -0.13, 0.69), (0.0, -0.165, 0.69), (0.075, -0.04, 0.72)):
        distance = np.linalg.norm(
            (np.abs(place * [1, 0, 0]) + place * [0, 1, 1] - centre) / [0.022, 0.05, 0.02], axis=1
        )
        towards(flush * np.exp(-(distance**2)), np.array([1.0, 0.72, 0.7]))
    lips = np.array([1.0, 0.66, 0.66]) * rng.uniform(0.75, 1.05)
    if figure.gender > 0.5 and rng.uniform() < 0.4:
        lips = np.array([rng.uniform(0.6, 1.0), rng.uniform(0.2, 0.5), rng.uniform(0.25, 0.55)]) / np.maximum(
            tone, 0.35
        )
    towards(0.85 * masks["lips"], lips)
    towards(0.9 * masks["mouth"] * (1 - masks["lips"]), np.array([0.6, 0.32, 0.32]))
    towards(0.6 * np.maximum(masks["fingernails"], masks["toenails"]), np.array([1.06, 0.92, 0.9]))
    relative = np.clip(hair * rng.uniform(0.5, 0.95), 0.02, 1) / tone
    strength = rng.uniform(0.45, 0.95)
    towards(strength * brow_share(place, rng.uniform(0.0022, 0.0042)), relative)
    if figure.gender < 0.5 and rng.uniform() < 0.45:
        towards(rng.uniform(0.15, 0.85) * _beard(place, rng), relative)
    if rng.uniform() < 0.12:
        spots = np.clip((fractal_noise(place * 260, seed) - 0.3) * 3, 0, 1) * (place[:, 2] > 0.6)
        towards(0.35 * spots, np.array([0.75, 0.6, 0.5]))
    everywhere = np.ones_like(body.place)
    everywhere[:BODY_VERTICES] = np.clip(tint, 0.02, 2.5)
    return everywhere


def _beard(place: Floats, rng: np.random.Generator) -> NDArray[np.float64]:
    """A full beard, a moustache or a goatee, 0..1."""
    x, y, z = np.abs(place[:, 0]), place[:, 1], place[:, 2]
    jaw = np.clip((0.676 + 0.35 * np.clip(x - 0.02, 0, None) - z) / 0.01, 0, 1) * (z > 0.6) * (y < -0.045)
    jaw *= np.clip((z - 0.612) / 0.01, 0, 1)
    moustache = (
        np.clip(1.4 - np.abs(z - 0.679 + 0.25 * x) / 0.006, 0, 1) * np.clip((0.032 - x) / 0.006, 0, 1) * (y < -0.12)
    )
    kind = rng.choice(3, p=[0.55, 0.2, 0.25])
    goatee = jaw * np.clip((0.026 - x) / 0.006, 0, 1)
    return (np.maximum(jaw, moustache), moustache, np.maximum(goatee, moustache))[kind] * (
        1 - anatomy().masks["lips"][:BODY_VERTICES]
    )
