"""Deprecated: names that have moved to `comparison`, `replication`, `reproduction` and `sample_size`."""

from __future__ import annotations

import warnings
from importlib import import_module

__all__ = ["Power", "Replication", "Reproduction", "compare", "design", "power", "replicate", "reproduce"]

_HOMES = {
    "Power": "sample_size",
    "Replication": "replication",
    "Reproduction": "reproduction",
    "compare": "comparison",
    "design": "sample_size",
    "power": "sample_size",
    "replicate": "replication",
    "reproduce": "reproduction",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sparsevae.experiments' has no attribute {name!r}")
    home = f"sparsevae.{_HOMES[name]}"
    warnings.warn(
        f"sparsevae.experiments.{name} is deprecated: import it from {home} instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
