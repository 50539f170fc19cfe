"""What `train` has done in a fit, so that the same fit run again goes on from there, to the last bit.

Between two calls of `train` a fit is a function of its rows and its randomness, and is done again. Calls that
are complete are answered from the journal, and the one that was cut off goes on from the end of an epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass

import torch

from sparsevae.aliases import State
from sparsevae.exceptions import ProcessError
from sparsevae.modules import LatentModule
from sparsevae.training.batches import Batches
from sparsevae.training.interrupt import is_stopping
from sparsevae.training.optimizer import ProximalAdam
from sparsevae.training.records import Records

__all__ = ["Course", "Journal", "current_journal", "keeping"]

_KEPT_EVERY = 1.0  # seconds after which the loop is copied again: what a stop in the middle of an epoch costs
_COPIES = 400.0  # a copy is made at most once in so many times its own duration: 0.25 % of the time


@dataclass
class Course:
    """All that a call of `train` changes.

    Attributes
    ----------
    module : LatentModule
    batches : Batches
    generator : torch.Generator
    optimizer : ProximalAdam
    epochs : Records
        Of the log.
    """

    module: LatentModule
    batches: Batches
    generator: torch.Generator
    optimizer: ProximalAdam
    epochs: Records

    def state(self) -> State:
        """A copy of all of it: plain values, arrays and tensors."""
        mask = self.module.mask
        return {
            "tensors": {name: value.clone() for name, value in self.module.state_dict().items()},
            "rates": {} if mask is None else dict(mask.rates()),
            "optimizer": self.optimizer.state_dict(),
            "generators": [self.generator.get_state(), self.batches.generator.get_state()],
            "epochs": self.epochs.packed(),
        }

    def restore_(self, state: State) -> None:
        """Become what `state` has described."""
        self.module.load_state_dict(state["tensors"])
        self.module.train()
        if self.module.mask is not None:
            device = self.module.mask.weight.device
            rates = state["rates"].items()
            self.module.mask.set_rates(
                **{name: rate.to(device) if isinstance(rate, torch.Tensor) else rate for name, rate in rates}
            )
        self.optimizer.load_state_dict(state["optimizer"])
        for generator, found in zip(
            (self.generator, self.batches.generator), state["generators"], strict=True
        ):
            generator.set_state(found)
        self.epochs.unpack_(state["epochs"])


class Journal:
    """The calls of `train` since the last stage of a fit, and the state at the end of that stage.

    Parameters
    ----------
    write : callable
        Gets the record and puts it in a safe place.
    every : float
        Seconds between two such calls inside a stage; 0 is after every epoch.
    record : dict, optional
        What an earlier journal of the same fit has written.

    Attributes
    ----------
    stage : dict, optional
        State of the fit at the end of its last stage.
    n_epochs : int
        Epochs of the fit so far.
    """

    def __init__(self, write: Callable[[State], None], every: float, record: State | None = None) -> None:
        record = {} if record is None else record
        self.every = every
        self.stage: State | None = record.get("stage")
        self.n_epochs = int(record.get("n_epochs", 0))
        self._write = write
        self._done: list[State] = list(record.get("done", ()))
        self._running: State | None = record.get("running")
        self._cut_off = self._running  # to go on with
        self._n_kept = self.n_epochs
        self._next = 0  # of the calls that are complete, to be answered
        self._changed = self._closed = False
        self._written = time.monotonic()
        self._keep_from = self._written

    def begin(self, course: Course) -> State | None:
        """Bring a call of `train` to where it was; None if it is new.

        Returns
        -------
        dict or None
            With "phase", "epoch" and "best" of a call that goes on; without them if it is complete.
        """
        if self._is_over():  # a fit that is to stop does not make the same calls
            return None
        if self._next < len(self._done):
            state: State | None = self._done[self._next]
            self._next += 1
        else:
            state, self._cut_off = self._cut_off, None
        if state is not None:
            course.restore_(state)
        return state

    def after_epoch(self, course: Course, phase: int, epoch: int, best: Callable[[], State] | None) -> None:
        """Keep where a call of `train` is, from time to time, and write it when that is due.

        Parameters
        ----------
        course : Course
        phase : int
            Position of the phase at hand.
        epoch : int
            Epochs of this phase so far.
        best : callable or None
            Returns a copy of the best state of the phase, where it has one.
        """
        self.n_epochs += 1
        if self._is_over():
            return
        begun = time.monotonic()
        if begun < self._keep_from:
            return
        held = None if best is None else best()
        self._running = {**course.state(), "phase": phase, "epoch": epoch, "best": held}
        self._keep()
        pause = max(_KEPT_EVERY, _COPIES * (time.monotonic() - begun))
        self._write_if_due()
        self._keep_from = time.monotonic() + min(pause, self.every)

    def end(self, course: Course) -> None:
        """Keep the result of a call of `train`."""
        if self._is_over():
            return
        self._done.append(course.state())
        self._next, self._running = len(self._done), None
        self._keep()
        self._write_if_due()

    def end_stage(self, state: State) -> None:
        """Keep the state of the fit at the end of a stage, and write it."""
        if self._is_over():
            return
        self.stage, self._done, self._next, self._running = deepcopy(state), [], 0, None
        self._keep()
        self.write()

    def write(self) -> None:
        """Write what is kept, unless that has been done."""
        if self._changed:
            record = {"stage": self.stage, "done": self._done, "running": self._running}
            self._write({**record, "n_epochs": self._n_kept})
            self._changed, self._written = False, time.monotonic()

    def close(self) -> None:
        """Write what is kept, and keep nothing more: what follows is no part of an undisturbed fit."""
        if not self._closed:
            self._closed = True
            self.write()

    def _is_over(self) -> bool:
        if is_stopping():
            self.close()
        return self._closed

    def _keep(self) -> None:
        self._changed, self._n_kept = True, self.n_epochs

    def _write_if_due(self) -> None:
        if time.monotonic() - self._written >= self.every:
            self.write()


_current: ContextVar[Journal | None] = ContextVar("journal", default=None)


@contextmanager
def keeping(journal: Journal | None) -> Iterator[None]:
    """Let the calls of `train` in this context be kept; None for not, also inside another fit."""
    token = _current.set(journal)
    try:
        yield
        if journal is not None:
            journal.close()
    except (KeyboardInterrupt, SystemExit, ProcessError):
        if journal is not None:
            journal.close()
        raise
    finally:
        _current.reset(token)


def current_journal() -> Journal | None:
    """The journal of the fit at hand, if it has one."""
    return _current.get()
