"""Peak memory of training steps, each kind in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.memory import megabytes

__all__ = ["peak_megabytes"]

STEPS = 3


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
    before = megabytes(peak=False)
    make(*arguments)(STEPS)
    sender.send(megabytes(peak=True) - before)
