"""Timing where others may work too: interleaved candidates, medians, and a look at who else is there."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

__all__ = ["Medians", "interleaved_medians", "torch_threads"]

QUIET = 0.1  # share of the machine that others may use in a round that counts


class Medians(NamedTuple):
    """Median seconds by candidate, and how many of the rounds behind them were quiet."""

    seconds: dict[str, float]
    n_quiet: int
    n_rounds: int


def interleaved_medians(candidates: dict[str, Callable[[], None]], repeats: int, max_rounds: int) -> Medians:
    """Time candidates in turn, so that all meet the same disturbances.

    A round in which others use the machine is thrown away and repeated; if there are no quiet rounds within
    ``max_rounds``, all rounds count.
    """
    for run in candidates.values():
        run()
    rounds: list[tuple[bool, dict[str, float]]] = []
    while sum(quiet for quiet, _ in rounds) < repeats and len(rounds) < max(repeats, max_rounds):
        before = _busy_and_own()
        seconds = {}
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            seconds[name] = time.perf_counter() - start
        rounds.append((_share_of_others(before, _busy_and_own()) <= QUIET, seconds))
    quiet = [seconds for is_quiet, seconds in rounds if is_quiet]
    chosen = quiet if len(quiet) >= min(3, repeats) else [seconds for _, seconds in rounds]
    medians = {name: statistics.median(seconds[name] for seconds in chosen) for name in candidates}
    return Medians(medians, len(quiet), len(rounds))


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch's kernels use so many threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
