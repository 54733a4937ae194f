"""Whole numbers that callers give."""

from __future__ import annotations

import operator
from typing import Any

from sapiens2.errors import InputError, Sapiens2Error

__all__ = ["whole_number"]


def whole_number(
    name: str, value: Any, least: int, most: int | None = None, *, error: type[Sapiens2Error] = InputError
) -> int:
    """The value, when it is a whole number within bounds; numpy's count, booleans do not.

    Args:
        name: What the message calls it.
        value: What was given.
        least: The smallest that is allowed.
        most: The largest; None: any from ``least``.
        error: What to raise.

    Raises:
        Sapiens2Error: It is not; of the type ``error``.
    """
    try:
        # numpy's booleans refuse to be indices themselves, Python's do not
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise error(f"{name} must be a whole number {bounds}, got {value!r}")
    return number
