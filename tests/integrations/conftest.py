"""Tests with libraries that cannot be installed beside the pinned set: `make integrations` has them."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = ("mlflow", "optuna", "scanpy", "tensorboard")

# Elsewhere they are not collected: a library that is absent on purpose is no test to be skipped.
if any(find_spec(name) is None for name in LIBRARIES):
    collect_ignore_glob = ["test_*.py"]
