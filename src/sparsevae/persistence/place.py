"""A place for a directory: taken before the work begins, filled, and given its name when it is complete.

The directory grows as ``.NAME.partial`` beside the place. In it lies a file whose lock its writer holds,
called ``.taken`` while things are written and ``.complete`` from the moment when all of it is on the disk. So
whoever comes later can tell what a process that was killed has left: something unfinished, finished work
without its name, or an old directory that has been replaced.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sparsevae.exceptions import DataError, DataWarning
from sparsevae.persistence.durability import exchange, sync, sync_tree
from sparsevae.persistence.locks import try_lock

__all__ = ["MARKS", "Place", "keep_elsewhere", "recover_place", "short_name", "take_place"]

_TAKEN, _COMPLETE, _RESERVE = ".taken", ".complete", ".reserve"
MARKS = (_TAKEN, _COMPLETE, _RESERVE)
"""Files that a directory has in it while it is written; a crash may leave one."""

_LONGEST = 200  # bytes of a name that still has room for what is put around it


class Place:
    """A directory to be.

    Attributes
    ----------
    path : Path
        Its name, once it is complete.
    folder : Path
        Where to write until then.
    kept : bool
        Whether it is complete and could not get its name: it stays in ``folder``.
    """

    def __init__(self, path: Path, folder: Path, lock: IO[bytes] | IO[str]) -> None:
        self.path, self.folder, self._lock = path, folder, lock
        self.kept = False

    def reserve(self, n_bytes: int) -> None:
        """Take so much of the disk now, so that a full one is noticed before the work and not after it."""
        with (self.folder / _RESERVE).open("wb") as file:
            if not hasattr(os, "posix_fallocate") or not n_bytes:
                return
            try:
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    return  # a file system that cannot reserve
                raise DataError(
                    f"Expected room for about {max(1, n_bytes // 1_000_000)} MB at {self.path}; the disk is "
                    "full. Remove something, or choose another place."
                ) from error

    def release_reserve(self) -> None:
        """Give back what `reserve` took, for the files themselves."""
        (self.folder / _RESERVE).unlink(missing_ok=True)

    def commit(self, check: Callable[[Path], None] | None = None, *, keep: bool = False) -> Path:
        """Give the directory its name, in place of one that is there; another name if that one must stay.

        Parameters
        ----------
        check : callable, optional
            Gets the path and raises `DataError` if what is there now may not be replaced.
        keep : bool
            Whether a directory that cannot get any name stays where it is, to be found by `recover_place`.

        Returns
        -------
        Path
            The name that it got.
        """
        self.release_reserve()
        sync_tree(self.folder)
        os.rename(self.folder / _TAKEN, self.folder / _COMPLETE)
        sync(self.folder)
        target = self.path
        try:
            if check is not None:
                check(target)
        except DataError:
            target = _free_name(target)
        if os.name == "nt":
            self._lock.close()  # an open file would hold its directory
        try:
            _move(self.folder, target)
        except OSError as error:
            if not keep:
                raise
            self.kept = True
            reason = f"{error.strerror or error}; the finished work is in {self.folder}"
            raise OSError(error.errno, reason, str(target)) from error
        (target / _COMPLETE).unlink(missing_ok=True)
        sync(target.parent)
        return target

    def close(self) -> None:
        """Remove what has no name yet."""
        self._lock.close()
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def take_place(path: Path, what: str = "directory") -> Iterator[Place]:
    """Take the place of a directory, so that nobody else writes there and it is known that one can.

    Parameters
    ----------
    path : Path
        What is there stays until `Place.commit`. Parents are made.
    what : str
        What is written, for the message.

    Raises
    ------
    DataError
        If another process has taken it.
    """
    path = path.resolve()
    made = _make_parents(path)
    try:
        recover_place(path)
        place = _take(path, what)
    except BaseException as error:
        _remove_empty(made)
        if isinstance(error, OSError) and not isinstance(error, DataError):
            raise OSError(
                error.errno, error.strerror, str(path)
            ) from error  # under the name that was asked for
        raise
    try:
        yield place
    finally:
        place.close()
        if not path.exists():
            _remove_empty(made)


def recover_place(path: Path) -> None:
    """Put in order what a process that was killed has left beside a place, with a warning that says what.

    Finished work gets its name, or another one if that is taken. What is unfinished, and what has been
    replaced, is removed.
    """
    folder, old = _partial(path), _old(path)
    with suppress(OSError):
        (path / _COMPLETE).unlink()
    for begun in _begun(folder):
        if not _is_held(begun):
            shutil.rmtree(begun, ignore_errors=True)
    with suppress(PermissionError):  # someone else's, who will put it in order
        if folder.is_dir() and not _is_held(folder):
            _put_in_order(folder, path)
        if old.is_dir() and not os.path.lexists(path):
            os.rename(old, path)
            _say(f"Put {path} back, which a process that was cut off had moved.")
        elif old.is_dir() and not folder.is_dir():
            _remove(old, "replaced")


def _put_in_order(folder: Path, path: Path) -> None:
    if not (folder / _COMPLETE).exists():
        _remove(folder, "unfinished" if (folder / _TAKEN).exists() else "replaced")
        return
    target = path if not os.path.lexists(path) else _free_name(path)
    _move(folder, target)
    (target / _COMPLETE).unlink(missing_ok=True)
    _say(f"Finished work of a process that was cut off is now in {target}.")


def _remove(folder: Path, what: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        _say(f"Removed {folder}, which a process that was cut off has left {what}.")


def keep_elsewhere(path: Path, write: Callable[[Path], None]) -> Path | None:
    """Write finished work to a new directory for temporary files; None if that is not possible either."""
    with suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix=f"{path.name[:60]}-"))
        try:
            write(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder
    return None


def _say(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=5)


def _take(path: Path, what: str) -> Place:
    folder = _partial(path)
    # Locked before it has the name by which others know it: one that has the name and no lock was left.
    new = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
    lock: IO[bytes] | IO[str] | None = None
    try:
        new.mkdir()
        lock = (new / _TAKEN).open("w", encoding="utf-8")
        try_lock(lock)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            os.rename(new, folder)
        except OSError as error:
            if not folder.is_dir():
                raise
            raise DataError(
                f"Expected the place of the {what} to be free; another process{_number(folder)} is writing "
                f"{path}. Wait for it to end, or choose another name."
            ) from error
    except BaseException:
        if lock is not None:
            with suppress(OSError):  # of a full disk: it writes what is left in the buffer
                lock.close()
        shutil.rmtree(new, ignore_errors=True)
        raise
    return Place(path, folder, lock)


def _begun(folder: Path) -> list[Path]:
    """Directories that were made to take a place and have not taken it."""
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(folder.parent)]
        return [folder.with_name(name) for name in names if name.startswith(f"{folder.name}-")]
    return []


def _is_held(folder: Path) -> bool:
    """Whether a living process writes this directory."""
    for name in (_TAKEN, _COMPLETE):
        with suppress(FileNotFoundError), (folder / name).open("r+") as file:
            return not try_lock(file)
    return False


def _number(folder: Path) -> str:
    with suppress(OSError, ValueError):
        return f" ({int((folder / _TAKEN).read_text('utf-8'))})"
    return ""


def _move(folder: Path, path: Path) -> None:
    """Give a directory the name of another, or a free one; the other is removed."""
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        if os.name == "nt" and path.is_dir():
            path.rmdir()
        os.rename(folder, path)
        return
    if exchange(folder, path):
        sync(path.parent)
        shutil.rmtree(folder, ignore_errors=True)
        return
    old = _old(path)
    shutil.rmtree(old, ignore_errors=True)
    try:
        os.rename(path, old)
        os.rename(folder, path)
    except BaseException:
        if not os.path.lexists(path):
            os.rename(old, path)
        raise
    finally:
        if os.path.lexists(path):  # else it is the only copy
            shutil.rmtree(old, ignore_errors=True)


def _make_parents(path: Path) -> list[Path]:
    """Make the directories above a path; return those that are new, outermost first."""
    absent = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    return absent[::-1]


def _remove_empty(folders: list[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()


def _free_name(path: Path) -> Path:
    number = 2
    while os.path.lexists(path.with_name(f"{path.name}-{number}")):
        number += 1
    return path.with_name(f"{path.name}-{number}")


def _partial(path: Path) -> Path:
    return path.with_name(f".{short_name(path)}.partial")


def _old(path: Path) -> Path:
    return path.with_name(f".{short_name(path)}.old")


def short_name(path: Path) -> str:
    """The name of a path, or a checksum of it where nothing could be put around it."""
    name = os.fsencode(path.name)
    return path.name if len(name) <= _LONGEST else hashlib.sha256(name).hexdigest()[:32]
