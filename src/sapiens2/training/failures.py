"""Why a training stopped."""

from __future__ import annotations

import errno

from sapiens2.errors import Sapiens2Error

__all__ = ["DivergenceError", "TrainingError", "is_disk_full"]


class TrainingError(Sapiens2Error, RuntimeError):
    """A training cannot go on; the message names the step, the samples, and what is kept."""


class DivergenceError(TrainingError):
    """A loss or a gradient is not finite; going on with the same recipe and samples would end the same way."""


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, of whatever library, says that there is no space left."""
    no_space = {errno.ENOSPC, errno.EDQUOT}
    return (isinstance(error, OSError) and error.errno in no_space) or "no space left" in str(error).lower()
