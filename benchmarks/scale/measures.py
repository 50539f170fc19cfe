"""What is measured of one fit, each in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.memory import megabytes
from sparsevae import SparseVAE
from sparsevae.fitting import checkpoint
from sparsevae.fitting import data as fit_data
from sparsevae.persistence import CheckpointFolder
from sparsevae.stored import open_rows
from sparsevae.training import streams, train
from sparsevae.training.journal import Journal
from sparsevae.training.loop import Phase

__all__ = [
    "measure_checkpoints",
    "measure_growth",
    "measure_memory",
    "measure_quality",
    "measure_rate",
]

_HIDDEN = (16,)  # of fits that need not be good


def measure_memory(path: Path, batch_size: int, hidden: tuple[int, ...]) -> dict[str, Any]:
    """Peak resident memory of one epoch of training over all rows of an NPY file, with all that precedes it.

    The checks, the moments, the sample and the spine come first, as in every fit; then the network's epoch.
    """
    from sparsevae.fitting.procedure import candidate_counts, linear_candidate, train_network
    from sparsevae.fitting.spine import find_spine, network_module
    from sparsevae.fitting.state import Candidate
    from sparsevae.training import TrainingLog

    torch.set_num_threads(2)
    model = SparseVAE(10, hidden_sizes=hidden, batch_size=batch_size, max_epochs=1, random_state=0)
    begun = time.perf_counter()
    settings, data = model.prepare_fit(np.load(path, mmap_mode="r"))
    prepared = time.perf_counter()
    spine = find_spine(settings, data)
    assert spine is not None
    candidate_counts(settings, data)
    found = time.perf_counter()
    linear = linear_candidate(settings, data.in_memory, spine, None)
    module = network_module(settings, data, linear.module, spine)
    network = Candidate(module, TrainingLog(), linear.n_factors, kind="network")
    started = time.perf_counter()
    train_network(settings, data, network, None)
    seconds = time.perf_counter() - started
    n_rows = data.training.n_rows
    return {
        "rows": len(data.source.X),
        "features": data.source.n_features,
        "gigabytes on disk": round(path.stat().st_size / 1e9, 2),
        "hidden": "x".join(map(str, hidden)),
        "batch": batch_size,
        "seconds of checks": round(prepared - begun, 1),
        "seconds of the spine": round(found - prepared, 1),
        "seconds of an epoch": round(seconds, 1),
        "rows per second": round(n_rows / seconds),
        "epochs": len(network.log.epochs),
        "peak megabytes": round(megabytes(peak=True)),
    }


def measure_rate(path: Path, n_steps: int) -> dict[str, Any]:
    """Rows per second of gradient steps, from the file and from memory, taken in turns."""
    import anndata

    table = open_rows(path)
    sources = {"disk": table, "memory": anndata.read_h5ad(path).X}
    runs = {}
    for name, X in sources.items():
        model = SparseVAE(10, likelihood="negative_binomial", batch_size=128, random_state=0)
        settings, data = model.prepare_fit(X)
        from sparsevae.fitting.settings import new_module

        runs[name] = (new_module(settings, data, 1).select(0), _Some(data.training, n_steps), data)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(4):
        for name, (module, batches, data) in runs.items():
            started = time.perf_counter()
            train(module, batches, [Phase("rate", 1, (1e-3, 1e-3))], generator=data.generator)
            if turn:  # the first warms up
                seconds[name].append(time.perf_counter() - started)
    rates = {name: n_steps * 128 / min(times) for name, times in seconds.items()}
    return {
        "rows": len(table),
        "features": table.shape[1],
        "filled": round(table.survey.n_nonzero / (table.shape[0] * table.shape[1]), 3),
        "steps": n_steps,
        "rows per second from disk": round(rates["disk"], 1),
        "rows per second in memory": round(rates["memory"], 1),
        "ratio": round(rates["disk"] / rates["memory"], 3),
    }


def measure_quality(path: Path, seed: int) -> dict[str, Any]:
    """Score of held-out rows of a fit from disk and of one in memory, on rows sorted by a feature.

    The buffer and the sample are a quarter of the table, as if it were larger. Fits have the epochs that they
    choose: one that is cut short says more of its luck than of its rows.
    """
    X = np.load(path)
    train_rows, test = X[: 2 * len(X) // 3], X[2 * len(X) // 3 :]
    streams._BUFFER_ROWS = fit_data._MOST_SAMPLED = len(train_rows) // 4
    order = np.argsort(train_rows[:, 0], kind="stable")  # the worst case for blocks of neighbours
    ordered = path.with_name(f"sorted-{seed}.npy")
    np.save(ordered, train_rows[order])
    row: dict[str, Any] = {"rows": len(train_rows), "features": X.shape[1], "seed": seed}
    for name, table in (("memory", train_rows[order]), ("disk", open_rows(ordered))):
        model = SparseVAE(8, hidden_sizes=_HIDDEN, random_state=seed).fit(table)
        row[f"held-out score, {name}"] = round(model.score(test), 4)
        row[f"factors, {name}"] = len(model.active_factors_)
        row[f"links, {name}"] = int((model.mask_ != 0).sum())
    ordered.unlink()
    return row


def measure_growth(path: Path, n_epochs: int) -> dict[str, Any]:
    """Resident memory after a tenth of the epochs of a long training from disk, and at its end."""
    from sparsevae.fitting.settings import new_module

    seen = {}

    def look(record: dict[str, Any]) -> None:
        if record["epoch"] in (n_epochs // 10, n_epochs):
            seen[record["epoch"]] = megabytes(peak=False)

    model = SparseVAE(3, hidden_sizes=(8,), batch_size=512, random_state=0)
    settings, data = model.prepare_fit(open_rows(path))
    module = new_module(settings, data, 1).select(0)
    phase = Phase("growth", n_epochs, (1e-3, 1e-3))  # which nothing ends before
    train(module, data.training, [phase], generator=data.generator, progress=look)
    early, late = seen[n_epochs // 10], seen[n_epochs]
    return {
        "rows": len(open_rows(path)),
        "epochs": n_epochs,
        f"megabytes after {n_epochs // 10}": round(early, 1),
        f"megabytes after {n_epochs}": round(late, 1),
        "kilobytes an epoch": round(1e3 * (late - early) / (0.9 * n_epochs), 2),
    }


def measure_checkpoints(path: Path, folder: Path) -> dict[str, Any]:
    """What part of a fit with checkpoints at the default interval goes into keeping and writing them."""
    spent = {"wall": 0.0, "cpu": 0.0, "writes": 0}
    for owner, names in ((Journal, ("after_epoch", "end", "end_stage")), (checkpoint, ("fingerprint",))):
        for name in names:
            setattr(owner, name, _timed(getattr(owner, name), spent))
    plain = CheckpointFolder.write

    def write(self: CheckpointFolder, *arguments: Any) -> None:
        spent["writes"] += 1
        plain(self, *arguments)

    CheckpointFolder.write = write  # type: ignore[method-assign,assignment]
    X, begun, worked = np.load(path), time.perf_counter(), time.process_time()
    SparseVAE(5, random_state=0).fit(X, checkpoint=folder / "kept", checkpoint_every="5m")
    wall, cpu = time.perf_counter() - begun, time.process_time() - worked
    return {
        "rows": len(X),
        "features": X.shape[1],
        "seconds": round(wall, 1),
        "CPU seconds": round(cpu, 1),
        "checkpoints": spent["writes"],
        "of the time, per cent": round(100 * spent["wall"] / wall, 2),
        "of the CPU time, per cent": round(100 * spent["cpu"] / cpu, 2),
    }


def _timed(function: Any, spent: dict[str, Any]) -> Any:
    def run(*arguments: Any) -> Any:
        begun, worked = time.perf_counter(), time.process_time()
        try:
            return function(*arguments)
        finally:
            spent["wall"] += time.perf_counter() - begun
            spent["cpu"] += time.process_time() - worked

    return run


class _Some:
    """The first batches of an epoch."""

    def __init__(self, batches: Any, n_batches: int) -> None:
        self.batches, self.n_batches = batches, n_batches
        self.n_rows = batches.n_rows * n_batches // batches.n_batches

    def shares(self, group: Any, *, shuffle: bool) -> Iterator[Any]:
        return islice(self.batches.shares(group, shuffle=shuffle), self.n_batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batches, name)
