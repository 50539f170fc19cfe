"""Disks that are full at every size: ``filling.py SCENARIO FOLDER [DISK]``.

With DISK, where a small file system is mounted, the work is done there with more and more room. Without it,
writes fail beyond a limit on the size of files. After each attempt the old or the new must be there, whole;
the work may have failed with an error of the system or of the package, and with nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path

from crashing import SCENARIOS, Scenario

from sparsevae.exceptions import SparseVAEError

LIMITS = (0, 1, 100, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
REFUSED, BROKEN = 3, 4


def attempt(scenario: Scenario, limit: int | None) -> int:
    """Do the work in a child process with this limit on the size of a file; its exit code."""
    process = os.fork()
    if not process:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        code = 0
        try:
            scenario.work()
        except (OSError, SparseVAEError):
            code = REFUSED
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            code = BROKEN
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def fill(disk: Path, n_left: int) -> None:
    """Leave about so many bytes of a file system free."""
    status = os.statvfs(disk)
    size = status.f_bavail * status.f_frsize - n_left
    if size > 0:
        with (disk / "filler").open("wb") as file:
            file.write(bytes(size))


def main(name: str, folder: Path, disk: Path | None) -> None:
    warnings.simplefilter("ignore")
    spare = folder / "spare"
    spare.mkdir()
    tempfile.tempdir = str(spare)
    scenario = SCENARIOS[name](folder)
    if disk is not None:
        scenario.at = disk / "work"
    for limit in LIMITS:
        if disk is not None:
            (disk / "filler").unlink(missing_ok=True)
        scenario.reset()
        if disk is not None:
            fill(disk, limit)
        code = attempt(scenario, limit if disk is None else None)
        if disk is not None:
            (disk / "filler").unlink(missing_ok=True)  # the next command has room again
        kept = len(list(spare.iterdir()))
        try:
            found = scenario.look()
        except Exception as error:
            found = f"broken: {type(error).__name__}: {error}"
        print(json.dumps({"limit": limit, "code": code, "found": found, "kept": kept}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve() if sys.argv[3:] else None)
