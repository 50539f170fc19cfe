"""Gradient steps of one network, whole fits and sums alone, in one and in several processes of one thread."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["measure_processes", "measure_sum", "measure_whole"]

_EPOCHS = 4  # of which the first warms up
_SUMS = 20


def measure_processes(path: Path, number: int, batch_size: int) -> dict[str, Any]:
    """Rows per second over all processes, time and traffic of a step's sum.

    Parameters
    ----------
    path : Path
        NPY file.
    number : int
        Processes.
    batch_size : int
        Of the whole batch.
    """
    return _in_processes(_measure, path, number, batch_size)


def measure_whole(path: Path, number: int, batch_size: int, max_epochs: int | None) -> dict[str, Any]:
    """Time of a whole fit of an NPY file, without the start of the processes."""
    return _in_processes(_fit, path, number, batch_size, max_epochs)


def measure_sum(folder: Path, number: int, n_numbers: int) -> dict[str, Any]:
    """Time of a sum of so many 32-bit floats over processes on this machine."""
    return _in_processes(_sum, folder / "sum", number, n_numbers)


def _in_processes(work: Any, path: Path, number: int, *options: Any) -> dict[str, Any]:
    """What the first of so many processes finds; they have started and met before the work begins."""
    meeting = path.with_name(f"meeting-{os.getpid()}")
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    arguments = (work, path, number, options, meeting, found)
    processes = [context.Process(target=_join, args=(rank, *arguments)) for rank in range(number)]
    for process in processes:
        process.start()
    row: dict[str, Any] = found.get(timeout=7200)
    for process in processes:
        process.join(60)
    meeting.unlink(missing_ok=True)
    return row


def _join(
    rank: int, work: Any, path: Path, number: int, options: tuple[Any, ...], meeting: Path, found: Any
) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(str(meeting), number)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=number)
    row = work(path, number, *options)
    if rank == 0:
        found.put(row)
        time.sleep(0.5)  # the queue's thread has to send it
    torch.distributed.barrier()
    os._exit(0)  # threads of gloo may abort an interpreter that ends as usual


def _sum(path: Path, number: int, n_numbers: int) -> dict[str, Any]:
    flat = torch.zeros(n_numbers)
    times = []
    for _ in range(_SUMS):
        started, worked = time.perf_counter(), time.process_time()
        torch.distributed.all_reduce(flat)
        times.append((time.perf_counter() - started, time.process_time() - worked))
    wait, work = 1e3 * np.median(times, axis=0)
    return {
        "processes": number,
        "megabytes": round(4e-6 * n_numbers, 2),
        "milliseconds of a sum": round(float(wait), 2),
        "CPU milliseconds of a sum": round(float(work), 2),
    }


def _fit(path: Path, number: int, batch_size: int, max_epochs: int | None) -> dict[str, Any]:
    from sparsevae import SparseVAE

    X = np.load(path)
    model = SparseVAE(10, batch_size=batch_size, max_epochs=max_epochs, random_state=0)
    torch.distributed.barrier()
    started, worked = time.perf_counter(), time.process_time()
    model.fit(X)
    seconds, busy = time.perf_counter() - started, time.process_time() - worked
    return {
        "rows": len(X),
        "features": X.shape[1],
        "batch": batch_size,
        "processes": number,
        "epochs at most": max_epochs or "",
        "seconds": round(seconds, 1),
        "CPU seconds of the first process": round(busy, 1),
        "epochs": len(model.history_),
        "factors": len(model.active_factors_),
        "links": int((model.mask_ != 0).sum()),
    }


def _measure(path: Path, number: int, batch_size: int) -> dict[str, Any]:
    from sparsevae import SparseVAE
    from sparsevae.fitting.settings import new_module
    from sparsevae.training import train
    from sparsevae.training.loop import Phase
    from sparsevae.training.processes import joined_fit

    model = SparseVAE(10, batch_size=batch_size, random_state=0)
    settings, data = model.prepare_fit(np.load(path))
    module = new_module(settings, data, 1).select(0)
    phase = Phase("rate", 1, (1e-3, 1e-3))
    waits: list[tuple[float, float]] = []
    with joined_fit() as group:
        if group is not None:
            _time_sums(group, waits)
        seconds, busy = [], []
        for _ in range(_EPOCHS):
            started, worked = time.perf_counter(), time.process_time()
            train(module, data.training, [phase], generator=data.generator)
            seconds.append(time.perf_counter() - started)
            busy.append(time.process_time() - worked)
    steps = data.training.n_batches
    n_numbers = sum(p.numel() for p in module.parameters() if p.requires_grad)
    wait, work = np.median(waits, axis=0) if waits else (0.0, 0.0)
    return {
        "rows": data.training.n_rows,
        "features": data.source.n_features,
        "batch": batch_size,
        "processes": number,
        "rows per second": round(data.training.n_rows / min(seconds[1:])),
        "rows per second of a process's CPU": round(data.training.n_rows / min(busy[1:])),
        "milliseconds of a step": round(1e3 * min(seconds[1:]) / steps, 2),
        "milliseconds of its sum": round(1e3 * float(wait), 2),
        "CPU milliseconds of a step": round(1e3 * min(busy[1:]) / steps, 2),
        "CPU milliseconds of its sum": round(1e3 * float(work), 2),
        "kilobytes summed in a step": round(4 * n_numbers / 1e3) if number > 1 else 0,
    }


def _time_sums(group: Any, waits: list[tuple[float, float]]) -> None:
    """Have the time of each sum of gradients kept, by the clock and of the processor."""
    plain = group.sum_gradients_

    def timed(parameters: Any) -> None:
        started, worked = time.perf_counter(), time.process_time()
        plain(parameters)
        waits.append((time.perf_counter() - started, time.process_time() - worked))

    group.sum_gradients_ = timed
