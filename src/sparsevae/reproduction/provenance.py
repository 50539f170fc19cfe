"""Where a number comes from: versions, the commit of the source, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path

from sparsevae._version import installed_versions

__all__ = ["find_provenance"]


@lru_cache
def find_provenance() -> dict[str, str]:
    """Versions, commit and machine of this process, as a row of results has them.

    Returns
    -------
    dict
        ``commit`` is empty where the package is not in a checkout of its source, and ends in ``+`` where the
        checkout has changes.
    """
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "versions": ", ".join(f"{name} {number}" for name, number in installed_versions().items()),
        "commit": _commit(Path(__file__).parents[1]),
        "machine": f"{platform.system()} {platform.machine()}, {n_cores} cores",
    }


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
