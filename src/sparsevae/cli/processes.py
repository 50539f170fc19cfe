"""``sparsevae fit --processes N``: start the processes of one fit, wait for them, and say what went wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from torch import distributed as dist

from sparsevae.cli.console import say
from sparsevae.training.interrupt import SIGNALS

__all__ = ["end_process", "run_processes"]

_GRACE = (30.0, 10.0)  # seconds to leave when another has failed: of the one that writes, and of the others
_LOOK_EVERY = 0.05  # seconds


def run_processes(number: int) -> int:
    """Run the command of this process in several, on this machine.

    Parameters
    ----------
    number : int

    Returns
    -------
    int
        Exit code: that of the first process, or of the one that failed.
    """
    # This process keeps the place where they meet, as torchrun's agent does: no port is taken in between.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    processes = [_start(rank, number, store.port) for rank in range(number)]
    with _passing_signals(processes):
        codes, deaf = _wait(processes)
    for rank, code in enumerate(codes):
        if rank in deaf:
            say(f"Process {rank} of {number} did not answer and was ended.")
        elif code < 0:
            say(f"Process {rank} of {number} was ended by {signal.Signals(-code).name}.")
    failed = [code if code > 0 else 128 - code for code in codes if code]
    return codes[0] if codes[0] > 0 else max(failed, default=0)


def end_process(code: int) -> None:
    """End a process that was one of several: threads of gloo may abort an interpreter that ends as usual."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _start(rank: int, number: int, port: int) -> subprocess.Popen[bytes]:
    environment = {
        "OMP_NUM_THREADS": str(max(1, _n_cores() // number)),
        **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(number),
        "LOCAL_WORLD_SIZE": str(number),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    return subprocess.Popen([sys.executable, "-m", "sparsevae", *sys.argv[1:]], env=environment)


def _wait(processes: list[subprocess.Popen[bytes]]) -> tuple[list[int], set[int]]:
    """Exit codes, and who had to be killed: when one fails, the others are asked to end, then made to."""
    failed_at: float | None = None
    deaf: set[int] = set()
    while running := [rank for rank, process in enumerate(processes) if process.poll() is None]:
        now = time.monotonic()
        if failed_at is None and any(process.returncode for process in processes):
            failed_at = now
            for rank in running:
                processes[rank].terminate()
        for rank in running:
            if failed_at is not None and now - failed_at > _GRACE[bool(rank)] and rank not in deaf:
                processes[rank].kill()
                deaf.add(rank)
        time.sleep(_LOOK_EVERY)
    return [process.returncode for process in processes], deaf


@contextmanager
def _passing_signals(processes: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Pass on what this process is told; Ctrl-C reaches the others by itself, from the terminal."""

    def send(number: int, frame: object) -> None:
        if number == signal.SIGINT and sys.stdin is not None and sys.stdin.isatty():
            return
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)

    before = {number: signal.signal(number, send) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
