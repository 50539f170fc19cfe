"""What the commands say and where: messages and errors on stderr, one sentence each, and exit codes."""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

import typer

from sparsevae.exceptions import ConvergenceWarning, DataWarning, SparseVAEError
from sparsevae.io import TableFile
from sparsevae.io.record import to_json

__all__ = [
    "INTERRUPTED",
    "collect_warnings",
    "is_watched",
    "keep_log",
    "one_sentence_errors",
    "print_json",
    "say",
    "say_table",
]

P = ParamSpec("P")
R = TypeVar("R")

INTERRUPTED = 130
"""Exit code: what a shell reports for a process that Ctrl-C ended."""

_log: ContextVar[list[str] | None] = ContextVar("log", default=None)


def say(message: str) -> None:
    """Print a message for the person at the terminal; stdout stays free for results."""
    print(message, file=sys.stderr, flush=True)
    lines = _log.get()
    if lines is not None:
        lines.append(f"{datetime.now(UTC).isoformat(timespec='seconds')} {message}")


@contextmanager
def keep_log() -> Iterator[list[str]]:
    """Collect what is said, with the time of each message."""
    lines: list[str] = []
    token = _log.set(lines)
    try:
        yield lines
    finally:
        _log.reset(token)


def say_table(table: TableFile, *notes: str) -> None:
    """Say what was read, and what was assumed about it."""
    n_samples, n_features = table.X.shape
    say(f"Read {table.path}: {n_samples} samples x {n_features} features.")
    for assumption in (*table.assumptions, *notes):
        say(f"  {assumption}")


def print_json(content: object, *, compact: bool = False) -> None:
    """Print a result for machines."""
    print(to_json(content, compact=compact))


def is_watched() -> bool:
    """Whether stderr is a terminal, where a progress bar makes sense."""
    return sys.stderr.isatty()


def one_sentence_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn what a user can mend into one sentence on stderr and exit code 1, without a traceback.

    With ``SPARSEVAE_DEBUG`` in the environment errors come through as they are.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            say("Interrupted: nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # the reader of stdout had enough; typer ends quietly
        except (SparseVAEError, ValueError, OSError, MemoryError, RuntimeError) as error:
            known = isinstance(error, SparseVAEError) or not isinstance(error, RuntimeError)
            if not known and not _out_of_memory(error):
                raise
            if os.environ.get("SPARSEVAE_DEBUG"):
                raise
            say(f"Error: {_sentence(error)}")
            raise typer.Exit(1) from None

    return guarded


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the package's warnings as sentences and say each of them once, at the end."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for warning in caught:
        if not issubclass(warning.category, DataWarning | ConvergenceWarning):
            continue  # what other libraries have to say is not the user's business
        message = " ".join(str(warning.message).split())
        if message not in messages:
            messages.append(message)
            say(f"Note: {message}")


def _sentence(error: BaseException) -> str:
    if _out_of_memory(error):
        return (
            "The table does not fit into memory. Take fewer rows or columns, or save it as NPY, which is "
            "read piece by piece, or as NPZ if it is mostly zeros."
        )
    if isinstance(error, OSError) and error.strerror and not isinstance(error, SparseVAEError):
        return f"{error.strerror}: {error.filename}." if error.filename else f"{error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


def _out_of_memory(error: BaseException) -> bool:
    """Whether Python, the system or PyTorch, which raises a plain RuntimeError, had no memory left."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or "allocate memory" in str(error)
