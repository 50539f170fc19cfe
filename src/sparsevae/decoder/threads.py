"""Threads of the decoder: each runs whole blocks with single-threaded kernels.

Splitting every kernel over all cores means one barrier per kernel; the decoder has thousands of small ones,
and where another process holds a core each barrier waits for the scheduler. Threads that meet once per pass
do not have that problem, and a block stays in the cache of the core that works on it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["run_tasks"]

Task = TypeVar("Task")


def run_tasks(work: Callable[[Iterator[Task]], None], tasks: Sequence[Task], device: torch.device) -> None:
    """Call ``work`` in as many threads as torch may use, each with an iterator over tasks not yet taken.

    Tasks are handed out as threads become free, so a slow core takes fewer. Which thread takes which task is
    not determined: a task must write to places that no other task writes to.
    """
    n_threads = min(torch.get_num_threads(), len(tasks)) if device.type == "cpu" else 1
    queue = deque(tasks)
    inference = torch.is_inference_mode_enabled()

    def thread() -> None:
        # Grad, inference and autocast modes are per thread: set here what the caller's thread has.
        with (
            torch.inference_mode(inference),
            torch.no_grad(),
            torch.autocast(device.type, enabled=False, cache_enabled=False),
        ):
            work(_drain(queue))

    if n_threads == 1:
        thread()
        return
    executor = _executor(torch.get_num_threads())
    futures = [executor.submit(thread) for _ in range(n_threads)]
    for future in futures:
        future.result()


_lock = threading.Lock()
_state: tuple[int, int, ThreadPoolExecutor] | None = None  # process, size, executor


def _executor(size: int) -> ThreadPoolExecutor:
    """Return the process's executor: built at first use, after a fork, and when torch may use more threads."""
    global _state
    with _lock:
        if _state is None or _state[0] != os.getpid() or _state[1] < size:
            executor = ThreadPoolExecutor(size, thread_name_prefix="sparsevae-decoder")
            started = threading.Barrier(size)

            def start() -> None:
                started.wait()
                torch.set_num_threads(1)

            for future in [executor.submit(start) for _ in range(size)]:
                future.result()
            # torch keeps the number per thread, and the last one set as the default of threads to come.
            torch.set_num_threads(size)
            _state = (os.getpid(), size, executor)
        return _state[2]


def _drain(queue: deque[Task]) -> Iterator[Task]:
    while True:
        try:
            yield queue.popleft()
        except IndexError:
            return
