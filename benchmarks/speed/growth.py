"""How cost grows: steps with the number of features, epochs with the number of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from benchmarks.speed.memory import peak_megabytes
from benchmarks.speed.shapes import SHAPES, Shape
from benchmarks.speed.steps import RATE, Candidate, make_step
from benchmarks.speed.timing import interleaved_medians
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEConfig, SparseVAEModule
from sparsevae.training import Batches, Phase, RowSource, train

__all__ = ["features", "rows"]

FEATURES = (500, 2000, 8000, 20_000)
SUBSET = 2000
ROWS = (2000, 8000, 32_000)
COUNTS = Shape(128, 200, 10, 64, "poisson")


def features(repeats: int, patience: float, measure_memory: bool) -> list[dict[str, Any]]:
    """Step of 2 hidden layers at the transcriptome's sizes with more and more features."""
    candidates = {
        (n, n): (Candidate("all"), SHAPES["transcriptome"]._replace(n_features=n)) for n in FEATURES
    }
    subset = Candidate("some", options={"features_per_step": SUBSET})
    candidates[FEATURES[-1], SUBSET] = subset, SHAPES["transcriptome"]._replace(n_features=FEATURES[-1])
    steps = {str(key): make_step(*value, 2) for key, value in candidates.items()}
    seconds = interleaved_medians(steps, repeats, patience=patience).seconds
    steps.clear()
    return [
        {
            "n_features": n_features,
            "features_per_step": in_step,
            "milliseconds": 1e3 * seconds[str((n_features, in_step))],
            "microseconds_per_feature": 1e6 * seconds[str((n_features, in_step))] / in_step,
            "peak_megabytes": peak_megabytes(make_step, *value, 2) if measure_memory else np.nan,
        }
        for (n_features, in_step), value in candidates.items()
    ]


def rows(repeats: int, patience: float) -> list[dict[str, Any]]:
    """Epoch of counts with more and more rows, from tables in memory, sparse ones and files."""
    generator = np.random.default_rng(0)
    counts = generator.poisson(0.3, size=(max(ROWS), COUNTS.n_features)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        epochs = {
            (kind, n_rows): _epochs(X)
            for n_rows in ROWS
            for kind, X in _stored(counts[:n_rows], Path(folder))
        }
        named = {str(key): run for key, run in epochs.items()}
        seconds = interleaved_medians(named, repeats, patience=patience).seconds
    return [
        {
            "table": kind,
            "n_rows": n_rows,
            "seconds_per_epoch": seconds[str((kind, n_rows))],
            "microseconds_per_row": 1e6 * seconds[str((kind, n_rows))] / n_rows,
        }
        for kind, n_rows in epochs
    ]


def _stored(X: np.ndarray, folder: Path) -> Iterator[tuple[str, Any]]:
    yield "array", X
    yield "CSR matrix", sparse.csr_array(X)
    path = folder / f"{len(X)}.npy"
    np.save(path, X)
    yield "memory map", np.load(path, mmap_mode="r")


def _epochs(X: Any) -> Callable[[int], None]:
    observation = Observation.blank(get_likelihood(COUNTS.likelihood, COUNTS.n_features), COUNTS.n_features)
    generator = torch.Generator().manual_seed(0)
    config = SparseVAEConfig(n_factors=COUNTS.n_factors, hidden_sizes=(COUNTS.width,) * 2)
    module = SparseVAEModule(observation, config, generator=generator)
    batches = Batches(RowSource(X, observation), torch.arange(X.shape[0]), COUNTS.n_samples, generator)

    def run(n_epochs: int) -> None:
        train(module, batches, [Phase("final", n_epochs, (RATE, RATE))], generator=generator)

    return run
