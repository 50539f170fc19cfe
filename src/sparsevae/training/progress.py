"""A progress bar over the work of a fit, on standard error, only when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from tqdm import tqdm

from sparsevae.training.loop import Record
from sparsevae.training.processes import is_first_process

__all__ = ["ProgressBar", "progress_bar"]

_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"


class ProgressBar:
    """A bar over units of work; each epoch is one of them unless `expect` says otherwise.

    The time left follows from the average speed so far: epochs of different stages take different time, and
    the last ones say little of the next.
    """

    def __init__(self, bar: tqdm) -> None:
        self._bar, self._each, self._limit, self._before = bar, 1.0, float("inf"), 0.0

    def __call__(self, record: Record) -> None:
        """See the record of an epoch."""
        bar = self._bar
        place = max(bar.n, min(bar.n + self._before + self._each, self._limit))
        self._before = 0.0
        if self._limit == float("inf"):
            bar.total = max(bar.total, place)
        bar.update(place - bar.n)
        bar.set_description(str(record["phase"]), refresh=False)
        bar.set_postfix(
            objective=f"{np.nanmin(record['objective']):.3f}",
            nonzero=int(np.min(record["n_nonzero"])),
            factors=int(np.min(record["n_active"])),
        )

    def expect(self, work: float, n_epochs: int, before: float = 0.0) -> None:
        """The next epochs are so much work, some of it before them; further ones do not move the bar."""
        self._each, self._limit = (work - before) / max(n_epochs, 1), self._bar.n + work
        self._before = before

    def reach(self, done: float, total: float) -> None:
        """So much of the work is done, and so much is there in all."""
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        self._bar.refresh()


@contextmanager
def progress_bar(verbose: int, total: float) -> Iterator[ProgressBar | None]:
    """What to call with the record of each epoch, or None where nothing is to be shown."""
    if not verbose or not is_first_process():
        yield None
        return
    with tqdm(total=total, dynamic_ncols=True, smoothing=0, bar_format=_FORMAT) as bar:
        yield ProgressBar(bar)
        bar.total = bar.n
        bar.refresh()
