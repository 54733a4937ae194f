"""Import of optional packages with an error that says how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from sapiens2.errors import MissingDependencyError

__all__ = ["require"]


def require(module: str, *, extra: str) -> ModuleType:
    """Import ``module``, or say which extra brings it.

    Args:
        module: Import name, for example ``"openvino"``.
        extra: Name of the extra of this package that installs it.

    Returns:
        The imported module.

    Raises:
        MissingDependencyError: The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise MissingDependencyError(
            f"{module} is not installed, and this feature needs it. Install it with: pip install 'sapiens2[{extra}]'"
        ) from error
