"""Where a number comes from: versions, the commit of the source, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["provenance"]

_PACKAGES = ("sparsevae", "torch", "numpy", "scipy", "scikit-learn")


@lru_cache
def provenance() -> dict[str, str]:
    """Versions, commit and machine of this process, as a row of results has them.

    Returns
    -------
    dict
        ``commit`` is empty where the package is not in a checkout of its source, and ends in ``+`` where the
        checkout has changes.
    """
    versions = [f"python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _PACKAGES)]
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "versions": ", ".join(versions),
        "commit": _commit(Path(__file__).parents[1]),
        "machine": f"{platform.system()} {platform.machine()}, {n_cores} cores",
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def _commit(package: Path) -> str:
    # An installed copy may lie inside a repository of something else: only tracked files count.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return ""
    commit = _git(package, "rev-parse", "--short=12", "HEAD") or ""
    return commit + ("+" if _git(package, "status", "--porcelain", "--", ".") else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
