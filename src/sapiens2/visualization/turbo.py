"""The turbo colormap.

Source: A. Mikhailov, "Turbo, An Improved Rainbow Colormap for Visualization" (Google Research, 2019); the coefficients
are those of the polynomial fit published with it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["turbo", "turbo_table"]

COEFFICIENTS = (
    (0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943),
    (0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604),
    (0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973),
)
"""Of red, green and blue: of x^0 .. x^5."""


@cache
def turbo_table() -> NDArray[np.uint8]:
    """``(256, 3)`` uint8 colours, from dark blue over green to dark red; read-only.

    The fit is within 0.09 of the published table (of 1), at the dark blue end within 0.13.
    """
    x = np.linspace(0, 1, 256)
    channels = [np.polynomial.polynomial.polyval(x, coefficients) for coefficients in COEFFICIENTS]
    table: NDArray[np.uint8] = np.rint(np.stack(channels, axis=1).clip(0, 1) * 255).astype(np.uint8)
    table.flags.writeable = False
    return table


def turbo(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Colours ``(..., 3)`` of values ``(...)``, which are clipped to 0..1; they must be finite."""
    colors: NDArray[np.uint8] = turbo_table()[np.rint(values.clip(0, 1) * 255).astype(np.intp)]
    return colors
