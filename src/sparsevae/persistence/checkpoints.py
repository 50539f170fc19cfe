"""Checkpoints in a directory: the last two, each with a checksum, each there as a whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from sparsevae.aliases import State
from sparsevae.exceptions import DataError, DataWarning
from sparsevae.persistence.codec import decode, encode
from sparsevae.persistence.directory import BLANK, CHECKSUM, sign
from sparsevae.persistence.durability import sync, write_synced
from sparsevae.persistence.locks import try_lock
from sparsevae.persistence.replacement import check_writable, finish_replacement

__all__ = ["CheckpointFolder", "has_writer", "last_checkpoint", "open_checkpoints", "remove_checkpoints"]

_JSON, _TENSORS, _LOCK = "checkpoint.json", "checkpoint.safetensors", ".lock"
_NAME = re.compile(r"(\.?)checkpoint-(\d{1,12})(\.partial)?")
_KEPT = 2


class CheckpointFolder:
    """A directory of checkpoints that nobody else writes to.

    Attributes
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._failed = False

    def write(self, header: State, values: State) -> None:
        """Write a checkpoint beside the last one, and remove the one before.

        A disk that does not take it is no reason to lose a fit: that is a warning, and the last one stays.

        Parameters
        ----------
        header : dict
            What must be the same when it is read.
        values : dict
            As `encode` takes them.
        """
        number = max((n for n, _ in _numbered(self.path)), default=0) + 1
        partial, name = self.path / f".checkpoint-{number}.partial", f"checkpoint-{number}"
        arrays: dict[str, np.ndarray] = {}
        document = {"sha256": BLANK, "header": header, "values": encode(values, arrays, "values")}
        tensors = save_tensors(arrays)
        try:
            shutil.rmtree(partial, ignore_errors=True)  # Ctrl-C may have come in the middle of it
            partial.mkdir()
            text = json.dumps(document, ensure_ascii=False, allow_nan=False)
            write_synced(partial / _TENSORS, tensors)
            write_synced(partial / _JSON, sign(text.encode(), tensors))
            sync(partial)
            os.rename(partial, self.path / name)
            sync(self.path)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if not self._failed:
                self._failed = True
                _warn(
                    f"No checkpoint could be written to {self.path} ({error.strerror or error}). The fit "
                    "goes on, and what was written before stays."
                )
            return
        for _, old in _numbered(self.path)[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def read(self) -> tuple[State, State] | None:
        """Header and values of the newest checkpoint that is sound; None if there is none at all.

        Raises
        ------
        DataError
            If there are some and all are damaged.
        """
        found = _numbered(self.path)
        for _, folder in reversed(found):
            try:
                return _read(folder)
            except (OSError, ValueError, KeyError, TypeError, IndexError, SafetensorError, RecursionError):
                _warn(f"The checkpoint {folder} is damaged and is not used.")
        if found:
            raise DataError(
                f"Expected a sound checkpoint in {self.path}; got damaged ones. Remove that directory to "
                "begin anew."
            )
        return None


@contextmanager
def open_checkpoints(path: str | Path) -> Iterator[CheckpointFolder]:
    """Take a directory for checkpoints, which is made, and known to be writable, before the work begins.

    Parameters
    ----------
    path : str or Path
        Other things in it are left alone. Removed at the end if nothing is in it.

    Raises
    ------
    DataError
        If it is a file, or another process writes to it.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise DataError(f"Expected a directory for checkpoints; {path} is a file. Choose another name.")
    check_writable(path / _JSON)
    try:
        with (path / _LOCK).open("w") as lock:
            if not try_lock(lock):
                raise DataError(
                    f"Expected a directory for checkpoints that is free; another process is writing to "
                    f"{path}. Wait for it to end, or choose another one."
                )
            _remove_unfinished(path)
            finish_replacement([path / _JSON])  # what a process left that was killed as it tried to write
            try:
                yield CheckpointFolder(path)
            finally:
                with suppress(OSError):
                    (path / _LOCK).unlink()
    finally:
        with suppress(OSError):
            path.rmdir()


def has_writer(path: Path) -> bool:
    """Whether a living process writes to a directory of checkpoints."""
    with suppress(OSError), (path / _LOCK).open("r+") as lock:
        return not try_lock(lock)
    return False


def last_checkpoint(path: Path) -> Path | None:
    """The newest checkpoint in a directory, damaged or not."""
    return _numbered(path)[-1][1] if _numbered(path) else None


def remove_checkpoints(path: Path) -> None:
    """Remove the checkpoints in a directory, and the directory if nothing else is in it."""
    _remove_unfinished(path)
    for _, folder in _numbered(path):
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (path / _LOCK).unlink(missing_ok=True)
        path.rmdir()


def _remove_unfinished(path: Path) -> None:
    """Remove what a process that was killed has left unfinished."""
    with suppress(OSError):
        for entry in path.iterdir():
            if (match := _NAME.fullmatch(entry.name)) and match[3]:
                shutil.rmtree(entry, ignore_errors=True)


def _numbered(path: Path) -> list[tuple[int, Path]]:
    """Checkpoints by number, the newest last."""
    with suppress(OSError):
        names = ((entry, _NAME.fullmatch(entry.name)) for entry in path.iterdir())
        return sorted((int(m[2]), entry) for entry, m in names if m and not m[1] and not m[3])
    return []


def _read(folder: Path) -> tuple[State, State]:
    text, tensors = (folder / _JSON).read_bytes(), (folder / _TENSORS).read_bytes()
    if CHECKSUM.search(text) is None or sign(text, tensors) != text:
        raise ValueError("the checksum does not match")
    document = json.loads(text)
    return document["header"], decode(document["values"], load_tensors(tensors))


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=4)
