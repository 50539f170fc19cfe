"""Timing where others may work too: interleaved candidates, medians, and a look at who else is there."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

__all__ = ["BusyError", "Medians", "interleaved_medians", "timed", "torch_threads", "wait_until_quiet"]

QUIET = 0.1  # share of the machine that others may use in a measurement that counts
SHORTEST = 0.05  # seconds of one measurement; shorter steps are repeated
LONG = 1.0  # seconds of one run from which the state of the caches no longer matters
POLL = 3.0  # seconds between two looks at a busy machine


class BusyError(RuntimeError):
    """Others use the machine: what would be measured now would not be the program's time."""

    def __init__(self, share: float) -> None:
        super().__init__(
            f"Expected a machine with nothing else to do; others use {share:.0%} of it. Ratios measured now "
            "would mean little: stop the other programs, or let this one wait for them with --patience "
            "SECONDS. What has been measured so far is kept."
        )


class Medians(NamedTuple):
    """Median seconds by candidate, and how many rounds were measured for them."""

    seconds: dict[str, float]
    n_quiet: int
    n_rounds: int


def interleaved_medians(
    candidates: dict[str, Callable[[int], None]], repeats: int, *, patience: float = 0.0
) -> Medians:
    """Time candidates in turn, so that all meet the same disturbances.

    A round in which others use the machine is thrown away and repeated.

    Parameters
    ----------
    candidates : dict from name to callable
        Each takes how often to do what is timed.
    repeats : int
        Quiet rounds wanted.
    patience : float
        Seconds to wait for others. Some rounds may fail in any case.

    Raises
    ------
    BusyError
        If others leave no time for so many quiet rounds.
    """
    end = time.perf_counter() + patience
    wait_until_quiet(patience)
    efforts = {name: _calibrate(run) for name, run in candidates.items()}
    rounds: list[dict[str, float]] = []
    n_rounds = 0
    while len(rounds) < repeats:
        seconds, share = _round(candidates, efforts)
        n_rounds += 1
        if share <= QUIET:
            rounds.append(seconds)
        elif n_rounds >= 3 * repeats and time.perf_counter() > end:
            raise BusyError(share)
        else:
            wait_until_quiet(max(POLL, end - time.perf_counter()))
    medians = {name: statistics.median(seconds[name] for seconds in rounds) for name in candidates}
    return Medians(medians, len(rounds), n_rounds)


def timed(run: Callable[[], object]) -> float:
    """Time one long run; refuse the result if others used the machine meanwhile."""
    before = _busy_and_own()
    run()
    after = _busy_and_own()
    share = _share_of_others(before, after)
    if share > QUIET:
        raise BusyError(share)
    return after[2] - before[2]


def wait_until_quiet(patience: float) -> None:
    """Return when nobody else uses the machine; `BusyError` if that takes longer than the patience."""
    start = time.perf_counter()
    while True:
        before = _busy_and_own()
        time.sleep(1.0)
        share = _share_of_others(before, _busy_and_own())
        if share <= QUIET:
            return
        if time.perf_counter() - start > patience:
            raise BusyError(share)
        time.sleep(POLL)


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch's kernels use so many threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Effort(NamedTuple):
    """How often to do a thing in one measurement, and whether to do it once more before that."""

    number: int
    warm: bool


def _calibrate(run: Callable[[int], None]) -> _Effort:
    for _ in range(2):  # the first one warms up
        start = time.perf_counter()
        run(1)
        seconds = time.perf_counter() - start
        if seconds > LONG:
            break
    return _Effort(math.ceil(SHORTEST / seconds), seconds <= LONG)


def _round(
    candidates: dict[str, Callable[[int], None]], efforts: dict[str, _Effort]
) -> tuple[dict[str, float], float]:
    """Seconds of each candidate, and the share of others."""
    before = _busy_and_own()
    seconds = {}
    for name, run in candidates.items():
        number, warm = efforts[name]
        if warm:
            run(1)  # its own data in the cache again, and not those of the candidate before it
        start = time.perf_counter()
        run(number)
        seconds[name] = (time.perf_counter() - start) / number
    return seconds, _share_of_others(before, _busy_and_own())


def _busy_and_own() -> tuple[float, float, float]:
    """Seconds that all cores were busy, that this process was, and the wall clock's."""
    own = time.process_time()
    stat = Path("/proc/stat")
    if not stat.exists():
        return own, own, time.perf_counter()
    user, nice, system, _idle, _wait, *rest = map(int, stat.read_text().splitlines()[0].split()[1:])
    busy = (user + nice + system + sum(rest[:3])) / os.sysconf("SC_CLK_TCK")
    return busy, own, time.perf_counter()


def _share_of_others(before: tuple[float, float, float], after: tuple[float, float, float]) -> float:
    busy, own, wall = (b - a for a, b in zip(before, after, strict=True))
    return (busy - own) / (wall * (os.cpu_count() or 1))
