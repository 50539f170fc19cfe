"""A file that is there as it was or as it is to be, and never in between."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write a file at; on success it gets its name, on failure nothing is left of it.

    It lies beside its place, ends as it does (some libraries choose a format by that) and has the number of
    the process in its name: several may write the same file, and the last one wins.

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
