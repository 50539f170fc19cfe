"""Timing where others may work too: interleaved candidates, medians, and a look at who else is there."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

__all__ = ["busy_share", "interleaved_medians", "torch_threads"]


def interleaved_medians(candidates: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Median seconds of each candidate, taken in turn so that all meet the same disturbances."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()
    for _ in range(repeats):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def busy_share(seconds: float = 1.0) -> float | None:
    """Share of the machine's cores that is in use while this process sleeps; None where it cannot be told."""
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    if before is None or after is None:
        return None
    busy, idle = after[0] - before[0], after[1] - before[1]
    return busy / max(busy + idle, 1)


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch's kernels use so many threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _ticks() -> tuple[int, int] | None:
    stat = Path("/proc/stat")
    if os.name != "posix" or not stat.exists():
        return None
    user, nice, system, idle, wait, *rest = map(int, stat.read_text().splitlines()[0].split()[1:])
    return user + nice + system + sum(rest[:3]), idle + wait
