"""Calls of the system: files that outlive a loss of power, directories that change places in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["exchange", "sync", "sync_tree", "write_synced"]

_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2
# What systems and file systems answer that do not know the operation.
_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a directory, is on the disk."""
    flags = os.O_RDONLY
    if path.is_dir():
        if os.name == "nt":
            return  # Windows has no such call
    elif os.name == "nt":
        flags = os.O_RDWR
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNKNOWN:  # network and user-space file systems may not sync directories
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync every file under a directory, and the directories themselves, innermost first."""
    for at, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(at) / name)
        sync(Path(at))


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def exchange(first: Path, second: Path) -> bool:
    """Let two directories change their names in one step; False where the system cannot.

    At every moment both names are there, each with one of the two.
    """
    rename = _exchange_call()
    if rename is None:
        return False
    # As os.rename does: audit hooks would not see what ctypes calls.
    sys.audit("os.rename", str(first), str(second), -1, -1)
    if rename(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), str(first), None, str(second))


@cache
def _exchange_call() -> Any:
    """The system's call, with the two names as its arguments; None if there is none."""
    system: str = sys.platform
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None, use_errno=True)
        if system == "linux":
            call = library.renameat2
            call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
            return lambda first, second: call(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)
        if system == "darwin":
            call = library.renamex_np
            call.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
            return lambda first, second: call(first, second, _RENAME_SWAP)
    return None
