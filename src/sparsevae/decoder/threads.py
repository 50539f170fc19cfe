"""Threads of the decoder: each runs whole blocks with single-threaded kernels.

Splitting every kernel over all cores means one barrier per kernel; the decoder has thousands of small ones,
and where another process holds a core each barrier waits for the scheduler. Threads that meet once per pass
do not have that problem, and a block stays in the cache of the core that works on it. The same threads do
jobs that do not depend on each other: analyses of halves of the rows, say.
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

import torch
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

__all__ = ["mind_fork", "n_decoder_threads", "run_tasks", "side_by_side", "single_threaded_kernels"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_MEMORY = 1 << 30  # bytes that jobs side by side may take together

_reserved: ContextVar[int | None] = ContextVar("_reserved", default=None)


def mind_fork() -> None:
    """Use one thread in a process that was forked from one which has worked here.

    The threads of torch's kernels do not come along in a fork, and the child would wait for them for ever.
    """
    global _worker
    if _worker is not None and _worker != os.getpid():
        torch.set_num_threads(1)
    _worker = os.getpid()


@contextmanager
def single_threaded_kernels() -> Iterator[None]:
    """Run torch's kernels on one thread each and leave the threads that torch had to the decoder.

    Around a training loop this saves the barriers of many small kernels, and the time for which OpenMP's
    threads go on spinning after each of them on the cores that the decoder needs next.
    """
    n_threads = n_decoder_threads()
    token = _reserved.set(n_threads)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _reserved.reset(token)


def n_decoder_threads() -> int:
    """Return the number of threads that the decoder uses on a CPU: those torch may use."""
    return _reserved.get() or torch.get_num_threads()


def run_tasks(
    work: Callable[[Iterator[Task]], None],
    tasks: Sequence[Task],
    device: torch.device,
    at_most: int | None = None,
) -> None:
    """Call ``work`` in each decoder thread, with an iterator over tasks not yet taken.

    Tasks are handed out as threads become free, so a slow core takes fewer. Which thread takes which task is
    not determined: a task must write to places that no other task writes to. Call it where gradients are not
    recorded. ``at_most`` limits the threads.
    """
    n_threads = min(n_decoder_threads() if device.type == "cpu" else 1, len(tasks), at_most or len(tasks))
    if n_threads <= 1:
        with torch.autocast(device.type, enabled=False) if _autocasts(device) else nullcontext():
            work(iter(tasks))
        return
    queue = deque(tasks)
    inference = torch.is_inference_mode_enabled()
    executor = _executor(n_threads)
    # Whether torch keeps its number of threads per thread or per process depends on its version: each thread
    # sets it for itself, and the caller sets it back for all.
    before = torch.get_num_threads()

    def thread() -> None:
        torch.set_num_threads(1)
        # Grad and inference modes are per thread: set here what the caller's thread has.
        with torch.inference_mode(inference), torch.no_grad():
            work(_drain(queue))

    try:
        for future in [executor.submit(thread) for _ in range(n_threads)]:
            future.result()
    finally:
        torch.set_num_threads(before)


def side_by_side(
    function: Callable[[Task], Result], jobs: Iterable[Task], *, bytes_each: int = 0
) -> list[Result]:
    """`map`, on the decoder's threads; kernels of torch and of BLAS have one thread each.

    So the results do not depend on the number of threads. Jobs must not change what they share. Of jobs that
    take memory fewer go at a time.
    """
    tasks = list(jobs)
    if len(tasks) < 2:
        return [function(task) for task in tasks]
    results: dict[int, Result] = {}

    def work(positions: Iterator[int]) -> None:
        for position in positions:
            results[position] = function(tasks[position])

    # Filters of warnings are those of the process: each thread would put back what another one has set.
    with warnings.catch_warnings(), _blas().limit(limits=1, user_api="blas"), single_threaded_kernels():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run_tasks(work, range(len(tasks)), torch.device("cpu"), max(1, _MEMORY // max(1, bytes_each)))
    return [results[position] for position in range(len(tasks))]


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_worker: int | None = None  # the process that has last worked here
_lock = threading.Lock()
_state: tuple[int, int, ThreadPoolExecutor] | None = None  # process, size, executor


def _executor(size: int) -> ThreadPoolExecutor:
    """Return the process's executor: built at first use, after a fork, and when torch gets more threads."""
    global _state
    with _lock:
        if _state is None or _state[0] != os.getpid() or _state[1] < size:
            _state = (os.getpid(), size, ThreadPoolExecutor(size, thread_name_prefix="sparsevae-decoder"))
        return _state[2]


def _autocasts(device: torch.device) -> bool:
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def _drain(queue: deque[Task]) -> Iterator[Task]:
    while True:
        try:
            yield queue.popleft()
        except IndexError:
            return
