"""Tables of the benchmark: those of the replication benchmark, generators with and without anchors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.replication.tables import TABLES
from sparsevae.datasets import make_anchored_factors

__all__ = ["PROBLEMS", "Problem"]


class Problem(NamedTuple):
    """A table, its likelihood, the largest number of factors, and how many splits are made of it."""

    load: Callable[[Path, int], np.ndarray]
    likelihood: str
    n_factors: int
    n_splits: int


def _anchored(folder: Path, split: int) -> np.ndarray:
    """Every factor has anchors; bent curves and products among the other features."""
    return np.asarray(make_anchored_factors(2000, 40, 5, correlation=0.3, random_state=split).X)


def _blocks(folder: Path, split: int) -> np.ndarray:
    """Linear, four anchors for each of six factors of rising strength, few rows."""
    rng = np.random.default_rng(split)
    L = np.zeros((24, 6))
    for k, strength in enumerate(np.linspace(0.3, 0.8, 6)):
        L[4 * k : 4 * k + 4, k] = strength
    L[rng.random(L.shape) < 0.1] += 0.3
    return rng.standard_normal((600, 6)) @ L.T + 0.7 * rng.standard_normal((600, 24))


def _dense(folder: Path, split: int, shape=(2000, 30, 5), noise: float = 1.0) -> np.ndarray:
    """Linear, every feature depends on every factor: any rotation is as good."""
    rng = np.random.default_rng(split)
    n_samples, n_features, n_factors = shape
    L = rng.standard_normal((n_features, n_factors)) / np.sqrt(n_factors)
    return rng.standard_normal((n_samples, n_factors)) @ L.T + noise * rng.standard_normal(
        (n_samples, n_features)
    )


PROBLEMS = {
    **{
        name: Problem(lambda folder, split, t=table: t.load(folder), table.likelihood, table.n_factors, n)
        for name, table in TABLES.items()
        for n in [table.n_splits]
    },
    "anchored": Problem(_anchored, "gaussian", 10, 4),
    "blocks": Problem(_blocks, "gaussian", 10, 6),
    "dense": Problem(_dense, "gaussian", 10, 4),
    "dense-few-rows": Problem(
        lambda folder, split: _dense(folder, split, (600, 20, 6), 1.5), "gaussian", 10, 6
    ),
}
"""Generators draw new data for every split."""
