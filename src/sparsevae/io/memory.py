"""Whether a table can fit into memory, asked before it is read: a process that takes too much is killed."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

from sparsevae.exceptions import DataError

__all__ = ["available_bytes", "bytes_needed", "check_memory", "check_room"]

_LOOK = 1 << 20  # bytes of a text file from which its cells are counted
_NUMBER = 16  # bytes for a cell: once as it was read, once in the array
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def check_memory(path: Path, ending: str) -> None:
    """Refuse a table that needs more memory than there is.

    Parameters
    ----------
    path : Path
    ending : str
        That decides the format.
    """
    check_room(bytes_needed(path, ending), path)


def check_room(needed: float, path: Path) -> None:
    """Refuse a table that needs so many bytes, if there are fewer."""
    available = available_bytes()
    if available is not None and needed > available:
        raise DataError(
            f"Expected a table that fits into memory; {path} needs about {needed / 1e9:.1f} GB as numbers, "
            f"and {available / 1e9:.1f} GB are free. Take fewer rows or columns, or save it as NPY, which is "
            "read piece by piece (NPZ if it is mostly zeros)."
        )


def bytes_needed(path: Path, ending: str) -> int:
    """About how much memory a table takes once it is read; 0 for arrays that are mapped, not read."""
    if ending == ".npy":
        return 0
    if ending in (".csv", ".tsv", ".txt"):
        return _of_text(path)
    if ending in (".npz", ".xlsx"):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    return path.stat().st_size


def available_bytes() -> int | None:
    """Memory that a process may still take; None where the system does not say."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    for limit in _LIMITS:
        with suppress(OSError, ValueError):
            found.append(int(limit.read_text("ascii")))
    if not found and hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=None)


def _of_text(path: Path) -> int:
    """Cells per byte in the beginning, times the bytes of the whole."""
    with path.open("rb") as raw:
        size = float(path.stat().st_size)
        if path.suffix.lower() == ".gz":
            try:
                with gzip.open(raw) as packed:
                    look = packed.read(_LOOK)
            except (OSError, EOFError, zlib.error):
                return 0  # damaged, or no gzip: refused by its reader, with the reason
            size *= len(look) / max(raw.tell(), 1)
        else:
            look = raw.read(_LOOK)
    cells = look.count(b"\n") + max(look.count(separator) for separator in (b",", b"\t", b";"))
    return int(_NUMBER * cells * size / max(len(look), 1))
