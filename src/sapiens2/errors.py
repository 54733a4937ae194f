"""The errors that this library raises.

All derive from :class:`Sapiens2Error`, and each also derives from the built-in error that fits, so that
``except ValueError`` keeps working. A message says what was got, what was expected and what to do.
"""

__all__ = [
    "CheckpointError",
    "ConfigurationError",
    "InputError",
    "MissingDependencyError",
    "Sapiens2Error",
]


class Sapiens2Error(Exception):
    """Base class of every error that this library raises on purpose."""


class ConfigurationError(Sapiens2Error, ValueError):
    """A configuration describes a model that cannot exist; the message names the field."""


class InputError(Sapiens2Error, ValueError):
    """An image, box, keypoint, label or size cannot be used; the message names it."""


class CheckpointError(Sapiens2Error, ValueError):
    """Weights do not fit the model: missing, unexpected or of another shape; the message lists them."""


class MissingDependencyError(Sapiens2Error, ImportError):
    """An optional package is needed; the message says which extra installs it."""
