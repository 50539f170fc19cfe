"""The real tables of the benchmark: which columns, likelihood and number of factors each has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.datasets import load_movielens, load_peerread, load_zeisel

__all__ = ["TABLES", "RealTable", "pbmc_counts"]


class RealTable(NamedTuple):
    """A table, the likelihood that suits it, and the largest number of factors to ask for."""

    load: Callable[[Path], np.ndarray]
    likelihood: str
    n_factors: int
    n_splits: int = 3


def pbmc_counts(folder: Path, n_genes: int | None) -> sparse.csr_array:
    """Raw counts of the genes that vary most after log-normalising, or of all genes."""
    counts, order, _ = _genes(folder)
    return sparse.csr_array(counts[:, order[:n_genes]])


def _genes(folder: Path) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Counts, genes by the variance of their log-normalised counts, and these, dense."""
    counts = sparse.load_npz(folder / "pbmc3k" / "counts.npz").tocsr().astype(np.float64)
    logs = counts.multiply(1e4 / np.asarray(counts.sum(1)).ravel()[:, None]).tocsr()
    logs.data = np.log1p(logs.data)
    dense = logs.toarray()
    return counts, np.argsort(-dense.var(0), kind="stable"), dense


def _pbmc(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Counts and log-normalised counts, genes of largest variance of the latter first."""
    counts, order, dense = _genes(folder)
    return counts[:, order[:1000]].toarray(), dense[:, order[:500]]


def _dense(X: np.ndarray | sparse.csr_array) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _bfi(folder: Path) -> np.ndarray:
    return pd.read_csv(folder / "bfi.csv", index_col=0).iloc[:, :25].dropna().to_numpy(np.float64)


def _abilities(folder: Path) -> np.ndarray:
    table = pd.read_csv(folder / "holzinger_swineford1939.csv")
    return table[[f"x{i}" for i in range(1, 10)]].to_numpy(np.float64)


TABLES = {
    "pbmc": RealTable(lambda folder: _pbmc(folder)[1], "gaussian", 15),
    "pbmc-counts": RealTable(lambda folder: _pbmc(folder)[0], "negative_binomial", 15),
    "zeisel": RealTable(
        lambda folder: _dense(load_zeisel(path=folder / "zeisel", n_features=558).X), "gaussian", 15
    ),
    "peerread": RealTable(
        lambda folder: _dense(
            load_peerread(path=folder / "peerread_abstracts.jsonl.gz", n_features=500, lemmatise=False).X
        ),
        "multinomial",
        20,
    ),
    "movielens": RealTable(
        lambda folder: _dense(load_movielens(path=folder / "ml-1m", n_features=300).X), "multinomial", 20
    ),
    "bfi": RealTable(_bfi, "gaussian", 10, 5),
    "abilities": RealTable(_abilities, "gaussian", 10, 5),
}
