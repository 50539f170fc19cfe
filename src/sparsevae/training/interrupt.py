"""Graceful interruption: the first Ctrl-C, SIGTERM or SIGHUP stops training and keeps the best model."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType

__all__ = [
    "SIGNALS",
    "Agreement",
    "Stop",
    "agreeing",
    "is_asked",
    "is_stopping",
    "raise_interrupt",
    "stop_on_interrupt",
    "stop_requested",
    "stopping",
    "training_begins",
]

SIGNALS = tuple(
    int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Ctrl-C, what schedulers and `docker stop` send, and what a terminal sends that is closed."""


@dataclass
class Stop:
    """How far a stop has come.

    Attributes
    ----------
    begun : bool
        There is training that could be stopped.
    asked : bool
        Ctrl-C was pressed since.
    heeded : bool
        Training ended early because of it; False if the fit was already over.
    announce : callable, optional
    number : int
        The signal that asked.
    """

    begun: bool = False
    asked: bool = False
    heeded: bool = False
    announce: Callable[[], None] | None = None
    number: int = int(signal.SIGINT)


@dataclass
class Agreement:
    """Whether processes that train together have agreed to stop: none may do so by itself."""

    stop: bool = False


_current: ContextVar[Stop | None] = ContextVar("stop", default=None)
_agreement: ContextVar[Agreement | None] = ContextVar("agreement", default=None)
_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


def raise_interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal as Ctrl-C: `KeyboardInterrupt`, with the number of the signal."""
    raise KeyboardInterrupt(number)


@contextmanager
def stop_on_interrupt(announce: Callable[[], None] | None = None) -> Iterator[Stop]:
    """Let the first Ctrl-C end the fits in this context at the end of a batch, with the best model so far.

    SIGTERM, which schedulers send, and SIGHUP, which a closed terminal sends, do the same. The second one
    raises `KeyboardInterrupt`, and so does the first if training has not begun, as there is nothing to keep,
    and a further fit in the same context. In a thread other than the main one nothing changes, nor for a
    signal that the process ignores.

    Parameters
    ----------
    announce : callable, optional
        Called once when training heeds the stop, for a message to the user.

    Examples
    --------
    >>> from sparsevae import VAE
    >>> from sparsevae.datasets import make_sparse_factors
    >>> from sparsevae.training import stop_on_interrupt
    >>> X = make_sparse_factors(100, random_state=0).X
    >>> with stop_on_interrupt() as stop:
    ...     model = VAE(n_factors=2, max_epochs=5, random_state=0).fit(X)
    >>> stop.heeded
    False
    """
    stop = Stop(announce=announce)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    found = {number: signal.getsignal(number) for number in SIGNALS}
    usual: dict[int, Callable[[int, FrameType | None], object]] = {}
    for signal_number, handler in found.items():
        if handler == signal.SIG_DFL:
            usual[signal_number] = raise_interrupt
        elif callable(handler):
            usual[signal_number] = handler

    def ask(number: int, frame: FrameType | None) -> None:
        stop.number = number
        if stop.asked or not stop.begun:
            usual[number](number, frame)
        stop.asked = True

    token = _current.set(stop)
    for number in usual:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number in usual:
            signal.signal(number, found[number])
        _current.reset(token)


def training_begins() -> None:
    """From now on there is something that a stop would keep."""
    stop = _current.get()
    if stop is not None:
        stop.begun = True


@contextmanager
def stopping(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let a function end the fits in this context, as the first Ctrl-C does in `stop_on_interrupt`."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def agreeing() -> Iterator[Agreement]:
    """Let fits in this context stop when processes have agreed to, and not before."""
    agreement = Agreement()
    token = _agreement.set(agreement)
    try:
        yield agreement
    finally:
        _agreement.reset(token)


def is_asked() -> bool:
    """Whether somebody has asked this process for a stop."""
    wanted, stop = _wanted.get(), _current.get()
    return (wanted is not None and wanted()) or (stop is not None and stop.asked)


def is_stopping() -> bool:
    """Whether there will be a stop, without heeding it."""
    agreement = _agreement.get()
    return is_asked() if agreement is None else agreement.stop


def stop_requested() -> bool:
    """Whether training is to end now: what the loop asks after each batch."""
    wanted, stop, agreement = _wanted.get(), _current.get(), _agreement.get()
    if agreement is not None and not agreement.stop:
        return False
    if wanted is not None and wanted():
        return True
    if stop is None or not (stop.asked or agreement is not None):
        return agreement is not None
    if not stop.heeded:
        stop.heeded = True
        if stop.announce is not None:
            stop.announce()
    return True
