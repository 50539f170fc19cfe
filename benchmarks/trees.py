"""Other revisions beside this checkout: their files, work in a fresh process of theirs, and its CPU time."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "cpu_seconds", "other_tree", "run_in_tree", "run_worker"]

ROOT = Path(__file__).parents[1]


@contextmanager
def other_tree(revision: str) -> Iterator[Path]:
    """The files of another revision, in a worktree that goes when it is no longer needed."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(tree), revision], check=True, cwd=ROOT
        )
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], check=True, cwd=ROOT)


def run_in_tree(tree: Path, module: str, arguments: list[str]) -> None:
    """Run a benchmark of this checkout in a fresh process, on one thread, with the package of a tree."""
    paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, env=environment, cwd=ROOT)


def run_worker(tree: Path, module: str, job: dict[str, Any], out: Path) -> dict[str, Any]:
    """The same for a job as JSON, whose answer is written to a file that the job names."""
    run_in_tree(tree, module, [json.dumps({**job, "out": str(out)})])
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def cpu_seconds() -> float:
    """Time on processors of this process and of those it has started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
