"""Ctrl-C that ends a fit early with what it has, for those who ask for it; nobody else's Ctrl-C changes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = ["Stop", "stop_on_interrupt", "stop_requested", "stopping", "training_begins"]


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
    """

    begun: bool = False
    asked: bool = False
    heeded: bool = False
    announce: Callable[[], None] | None = None


_current: ContextVar[Stop | None] = ContextVar("stop", default=None)
_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


@contextmanager
def stop_on_interrupt(announce: Callable[[], None] | None = None) -> Iterator[Stop]:
    """Let the first Ctrl-C end the fits in this context at the end of a batch, with the best model so far.

    The second one raises `KeyboardInterrupt`, and so does the first if training has not begun, as there is
    nothing to keep, and a further fit in the same context. In a thread other than the main one, and in a
    process that ignores Ctrl-C, nothing changes.

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
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.asked or not stop.begun:
            usual(number, frame)
        stop.asked = True

    token = _current.set(stop)
    signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)
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


def stop_requested() -> bool:
    """Whether training is to end now: what the loop asks after each batch."""
    wanted = _wanted.get()
    if wanted is not None and wanted():
        return True
    stop = _current.get()
    if stop is None or not stop.asked:
        return False
    if not stop.heeded:
        stop.heeded = True
        if stop.announce is not None:
            stop.announce()
    return True
