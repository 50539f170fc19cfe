"""Locks on files that the system lets go of when a process ends, however it ends."""

from __future__ import annotations

import os
import sys
from typing import IO

__all__ = ["lock", "try_lock"]

if sys.platform == "win32":
    import msvcrt

    def lock(file: IO[bytes] | IO[str]) -> None:
        """Wait for the lock on an open file."""
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)

    def try_lock(file: IO[bytes] | IO[str]) -> bool:
        """Take the lock on an open file; False if another process has it."""
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def lock(file: IO[bytes] | IO[str]) -> None:
        """Wait for the lock on an open file."""
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)

    def try_lock(file: IO[bytes] | IO[str]) -> bool:
        """Take the lock on an open file; False if another process has it."""
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks: nobody can have it
        return True
