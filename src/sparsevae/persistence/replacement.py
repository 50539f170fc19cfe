"""Files and directories that are replaced as a whole: the old one or the new one, never something between."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "replacing_directory"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write a file at; on success it gets its name, on failure nothing is left of it.

    The partial file is in the same directory, has the same ending (some libraries choose a format by it) and
    the number of the process in its name: several may write the same file, and the last one wins.

    Parameters
    ----------
    path : Path
        A file that is there is replaced.
    """
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def replacing_directory(path: Path) -> Iterator[Path]:
    """A new directory to write into; on success it becomes ``path``, on failure the old one stays.

    Parameters
    ----------
    path : Path
        A directory that is there is removed at the end, with all that is in it: check it first. Parents are
        made.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    written = _beside(path)
    written.mkdir()
    try:
        yield written
        _move_into_place(written, path)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _move_into_place(written: Path, path: Path) -> None:
    if not path.exists():
        written.rename(path)
        return
    old = _beside(path)
    try:
        path.rename(old)
        written.rename(path)
    except BaseException:
        if not path.exists():
            old.rename(path)
        raise
    finally:
        if path.exists():  # else it is the only copy
            shutil.rmtree(old, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A name in the same directory, hence on the same file system, that nothing has."""
    return path.parent / f".{path.name}-{secrets.token_hex(4)}"
