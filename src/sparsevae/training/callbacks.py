"""Functions of the user that see each epoch of a fit and may end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from sparsevae.exceptions import ParameterError
from sparsevae.training.interrupt import stopping
from sparsevae.training.processes import is_first_process
from sparsevae.training.records import Record

__all__ = ["Callback", "Calls", "call_after_epoch", "calling"]

Callback = Callable[[Record], object]
"""Gets the record of an epoch; returning True ends the fit."""


class Calls:
    """The callbacks of one fit, and what became of them.

    Attributes
    ----------
    n_epochs : int
        Epochs seen, over all phases and starts.
    stopped : bool
        Whether a callback has ended the fit.
    error : Exception, optional
        What a callback raised.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = callbacks
        self.n_epochs = 0
        self.stopped = False
        self.error: Exception | None = None

    def after_epoch(self, record: Record) -> bool:
        """Call each callback with an epoch's record; whether the fit is to end."""
        self.n_epochs += 1
        if self.stopped or not is_first_process():
            return self.stopped
        plain = {"step": self.n_epochs, **_of_the_best(record)}
        for callback in self.callbacks:
            try:
                answer = callback(dict(plain))
                self.stopped = (isinstance(answer, bool | np.bool_) and bool(answer)) or self.stopped
            except (
                Exception
            ) as error:  # whatever the user's code raises is raised again when the fit is saved
                self.error, self.stopped = error, True
                break
        return self.stopped

    def raise_error(self) -> None:
        """Raise what a callback raised, once the fit has kept its best model."""
        if self.error is not None:
            raise self.error


_current: ContextVar[Calls | None] = ContextVar("calls", default=None)


@contextmanager
def calling(callbacks: Sequence[Callback] | None) -> Iterator[Calls]:
    """Let callbacks see the epochs of the fit in this context.

    Parameters
    ----------
    callbacks : sequence of callable, optional
    """
    calls = Calls(_checked(callbacks))
    if not calls.callbacks:
        yield calls
        return
    token = _current.set(calls)
    try:
        with stopping(lambda: calls.stopped):
            yield calls
    finally:
        _current.reset(token)


def call_after_epoch(record: Record) -> None:
    """Tell the callbacks of the fit at hand, if it has any."""
    calls = _current.get()
    if calls is not None:
        calls.after_epoch(record)


def _checked(callbacks: Sequence[Callback] | None) -> list[Callback]:
    listed = [] if callbacks is None else callbacks
    if not isinstance(listed, list | tuple) or not all(callable(callback) for callback in listed):
        raise ParameterError(
            f"Expected callbacks to be a list of functions of an epoch's record; got {callbacks!r}. Pass "
            "callbacks=[print], for example."
        )
    return list(listed)


def _of_the_best(record: Record) -> Record:
    """Plain numbers; of starts that train side by side those of the lowest objective."""
    objective = np.atleast_1d(np.asarray(record["objective"], dtype=float))
    best = int(np.nanargmin(objective)) if np.isfinite(objective).any() else 0

    def plain(value: object) -> object:
        if isinstance(value, np.ndarray):
            value = value.ravel()[best if value.size > 1 else 0]
        return value.item() if isinstance(value, np.generic) else value

    return {name: plain(value) for name, value in record.items()}
