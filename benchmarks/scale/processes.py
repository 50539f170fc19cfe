"""Gradient steps of one network in one and in several processes of one thread each."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["measure_processes"]

_EPOCHS = 4  # of which the first warms up


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
    meeting = path.with_name(f"meeting-{os.getpid()}")
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    arguments = (path, number, batch_size, meeting, found)
    processes = [context.Process(target=_measure, args=(rank, *arguments)) for rank in range(number)]
    for process in processes:
        process.start()
    row: dict[str, Any] = found.get(timeout=600)
    for process in processes:
        process.join(60)
    meeting.unlink(missing_ok=True)
    return row


def _measure(rank: int, path: Path, number: int, batch_size: int, meeting: Path, found: Any) -> None:
    from sparsevae import SparseVAE
    from sparsevae.fitting.settings import new_module
    from sparsevae.training import train
    from sparsevae.training.loop import Phase
    from sparsevae.training.processes import joined_fit

    torch.set_num_threads(1)
    store = torch.distributed.FileStore(str(meeting), number)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=number)
    model = SparseVAE(10, batch_size=batch_size, random_state=0)
    settings, data = model.prepare_fit(np.load(path))
    module = new_module(settings, data, 1).select(0)
    phase = Phase("rate", 1, (1e-3, 1e-3))
    waits: list[float] = []
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
    if rank == 0:
        n_numbers = sum(p.numel() for p in module.parameters() if p.requires_grad)
        found.put(
            {
                "rows": data.training.n_rows,
                "features": data.source.n_features,
                "batch": batch_size,
                "processes": number,
                "rows per second": round(data.training.n_rows / min(seconds[1:])),
                "rows per second of a process's CPU": round(data.training.n_rows / min(busy[1:])),
                "milliseconds of a step": round(1e3 * min(seconds[1:]) / steps, 2),
                "milliseconds of its sum": round(1e3 * float(np.median(waits)), 2) if waits else 0.0,
                "kilobytes summed in a step": round(4 * n_numbers / 1e3) if number > 1 else 0,
            }
        )
        time.sleep(0.5)  # the queue's thread has to send it
    torch.distributed.barrier()
    os._exit(0)  # threads of gloo may abort an interpreter that ends as usual


def _time_sums(group: Any, waits: list[float]) -> None:
    """Have the time of each sum of gradients kept."""
    plain = group.sum_gradients_

    def timed(parameters: Any) -> None:
        started = time.perf_counter()
        plain(parameters)
        waits.append(time.perf_counter() - started)

    group.sum_gradients_ = timed
