"""What the commands say and where: messages and errors on stderr, one sentence each, and exit codes."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

import typer

from sparsevae._version import __version__
from sparsevae.exceptions import ConvergenceWarning, DataWarning, MeetingError, ProcessError, SparseVAEError
from sparsevae.io import TableFile
from sparsevae.io.record import to_json
from sparsevae.training.interrupt import SIGNALS, raise_interrupt
from sparsevae.training.processes import is_helper
from sparsevae.validation import visible

__all__ = [
    "DEFECT",
    "collect_warnings",
    "interrupted_code",
    "is_watched",
    "keep_log",
    "one_sentence_errors",
    "print_json",
    "say",
    "say_table",
    "show",
]

P = ParamSpec("P")
R = TypeVar("R")

DEFECT = 70
"""Exit code for an error that nobody foresaw, as sysexits.h has it."""

_BEFORE_HELPERS_SPEAK = 3.0  # seconds

_log: ContextVar[list[str] | None] = ContextVar("log", default=None)


def say(message: str) -> None:
    """Print a message for the person at the terminal; stdout stays free for results.

    A terminal that was closed is no reason to stop: the log has the message all the same.
    """
    if is_helper():
        return
    message = visible(message)
    with suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)
    lines = _log.get()
    if lines is not None:
        lines.append(f"{datetime.now(UTC).isoformat(timespec='seconds')} {message}")


def show(text: str) -> None:
    """Print a result for a person, without what names might tell a terminal to do."""
    if is_helper():
        return
    print("\n".join(visible(line) for line in text.split("\n")))


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
    if is_helper():
        return
    print(to_json(content, compact=compact))


def is_watched() -> bool:
    """Whether stderr is a terminal, where a progress bar makes sense."""
    return sys.stderr.isatty()


def one_sentence_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn whatever a command raises into one sentence on stderr and an exit code, without a traceback.

    SIGTERM and SIGHUP interrupt the command as Ctrl-C does. With ``SPARSEVAE_DEBUG`` in the environment
    errors come through as they are.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _all_signals_interrupt():
                return command(*args, **kwargs)
        except KeyboardInterrupt as error:
            say("Interrupted: nothing was written.")
            raise typer.Exit(interrupted_code(*error.args)) from None
        except (BrokenPipeError, typer.Exit, typer.Abort, typer.BadParameter):
            raise  # the reader of stdout had enough, or the command has said it all
        except Exception as error:
            if os.environ.get("SPARSEVAE_DEBUG"):
                raise
            if is_helper():
                _say_for_helper(error)
                raise typer.Exit(1) from None
            if isinstance(error, SparseVAEError | OSError | MemoryError) or _out_of_memory(error):
                say(f"Error: {_sentence(error)}")
                raise typer.Exit(1) from None
            say(
                f"Error: {_sentence(error)} ({type(error).__name__}). This is a defect of sparsevae "
                f"{__version__}, not of your data. Run the command again with SPARSEVAE_DEBUG=1 in the "
                "environment to see the traceback, and please report it."
            )
            raise typer.Exit(DEFECT) from None

    return guarded


def interrupted_code(number: int = int(signal.SIGINT)) -> int:
    """Exit code of a command that a signal ended, as shells report it: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + number


def _say_for_helper(error: BaseException) -> None:
    """Say what is wrong in one of several processes, unless the first one has the same to say."""
    if isinstance(error, ProcessError) and not isinstance(error, MeetingError):
        return
    with suppress(KeyboardInterrupt):  # the first one has failed too, and all are to end
        time.sleep(_BEFORE_HELPERS_SPEAK)
        print(f"Error: {_sentence(error)} (in process {os.environ.get('RANK')})", file=sys.stderr, flush=True)


@contextmanager
def _all_signals_interrupt() -> Iterator[None]:
    """Let what would end the process at once raise `KeyboardInterrupt`: nothing is left half-written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in SIGNALS if signal.getsignal(number) == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, raise_interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


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
    if isinstance(error, SparseVAEError):
        return " ".join(str(error).split())
    if _out_of_memory(error):
        return (
            "There is not enough memory for this table and this model. Take fewer rows or columns, fewer "
            "factors or narrower layers, or save the table as NPY, which is read piece by piece (NPZ if it "
            "is mostly zeros)."
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}." if error.filename else f"{error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


def _out_of_memory(error: BaseException) -> bool:
    """Whether Python, the system or PyTorch, which raises a plain RuntimeError, had no memory left."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or "allocate memory" in str(error)
