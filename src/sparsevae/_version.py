"""The version of this package, and of those that a result depends on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__", "installed_versions"]

__version__ = "0.2.0"

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


def installed_versions() -> dict[str, str]:
    """Versions of Python, of this package and of its main dependencies, by name."""
    return {
        "python": platform.python_version(),
        "sparsevae": __version__,
        **{name: _version(name) for name in _PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
