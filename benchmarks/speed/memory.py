"""Peak memory of training steps, each kind in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

__all__ = ["peak_megabytes"]

STEPS = 3
_STATUS = Path("/proc/self/status")


def peak_megabytes(make: Callable[..., Callable[[int], None]], *arguments: Any) -> float:
    """Memory above that of a process which has only imported everything, while some steps are taken.

    Parameters
    ----------
    make : callable
        A function of a module, which the other process can import; gets the arguments and returns a callable
        that takes a number of steps.

    Returns
    -------
    float
        Megabytes, model and data included; NaN where the system does not tell (it is Linux that does).
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, make, arguments))
    process.start()
    sender.close()  # so that a process that dies ends the wait
    try:
        return float(receiver.recv())
    except EOFError:
        return float("nan")
    finally:
        process.join()


def _run(sender: Connection, make: Callable[..., Callable[[int], None]], arguments: tuple[Any, ...]) -> None:
    if not _STATUS.exists():
        sender.send(float("nan"))
        return
    before = _bytes("VmRSS")
    make(*arguments)(STEPS)
    sender.send((_bytes("VmHWM") - before) / 1e6)


def _bytes(field: str) -> int:
    # Not `ru_maxrss`: a process inherits that of the one which started it.
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])
