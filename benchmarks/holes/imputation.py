"""Imputation error on cells hidden at random, beside iterative PCA and scikit-learn's IterativeImputer."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors

FRACTIONS = (0.05, 0.15, 0.30)
_GENES = 100  # of tables of single cells, those that vary most


def imputation(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Error on hidden cells beside other methods; each seed draws the cells, and the anchored table."""
    for seed in arguments.seeds:
        for name, X in tables(arguments.data, seed).items():
            if arguments.tables is None or name in arguments.tables:
                for fraction in arguments.fractions:
                    yield from compare(name, X, fraction, seed)


def tables(folder: Path | None, seed: int) -> dict[str, np.ndarray]:
    """Tables by name; those of files only where the folder has them."""
    found = {"anchored": make_anchored_factors(1000, 60, 6, random_state=seed).X}
    if folder is not None and (folder / "bfi.csv").exists():
        found["bfi"] = read_items(folder).to_numpy(dtype=float)
    if folder is not None and (folder / "zeisel" / "counts.npz").exists():
        counts = sparse.load_npz(folder / "zeisel" / "counts.npz").astype(np.float64)
        rate = np.log1p(np.asarray(counts.toarray()) / counts.sum(1).reshape(-1, 1) * counts.sum(1).mean())
        found["zeisel"] = np.asarray(rate)[:, np.argsort(-np.var(np.asarray(rate), 0))[:_GENES]]
    return found


def read_items(folder: Path) -> pd.DataFrame:
    """The 25 personality items of bfi: 2,800 people, with holes."""
    frame = pd.read_csv(folder / "bfi.csv")
    return frame[[name for name in frame.columns if name[:-1] in "ACENO" and name[-1].isdigit()]]


def compare(name: str, X: np.ndarray, fraction: float, seed: int) -> Iterator[dict[str, object]]:
    """Root mean squared error of each method on the same hidden cells, in deviations of the features."""
    rng = np.random.default_rng(seed)
    hidden = (rng.uniform(size=X.shape) < fraction) & ~np.isnan(X)
    seen = np.where(hidden, np.nan, X)
    scale = np.nanstd(seen, 0)
    methods = {
        "mean": lambda: np.where(np.isnan(seen), np.nanmean(seen, 0), seen),
        "iterative PCA": lambda: best_pca(seen, rng),
        "IterativeImputer": lambda: IterativeImputer(random_state=seed).fit_transform(seen),
        "SparseVAE": lambda: SparseVAE(10, random_state=seed).fit(seen).impute(seen),
    }
    for method, run in methods.items():
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            error = (np.asarray(run()) - X) / scale
        yield {
            "seed": seed,
            "table": name,
            "fraction": fraction,
            "method": method,
            "rmse": round(float(np.sqrt(np.mean(np.square(error[hidden])))), 5),
            "cpu_seconds": round(time.process_time() - started, 1),
        }


def best_pca(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Iterative PCA with the number of components that predicts further hidden cells best."""
    there = ~np.isnan(X)
    test = (rng.uniform(size=X.shape) < 0.1) & there
    training = np.where(test, np.nan, X)
    scale = np.nanstd(X, 0)
    losses = {
        k: np.mean(np.square((iterative_pca(training, k) - X) / scale)[test])
        for k in range(1, min(12, X.shape[1] - 1))
    }
    return iterative_pca(X, min(losses, key=lambda k: losses[k]))


def iterative_pca(X: np.ndarray, n_components: int, n_iter: int = 200) -> np.ndarray:
    """Regularised iterative PCA: singular values shrunk by the noise that the others show."""
    there = ~np.isnan(X)
    mean, scale = np.nanmean(X, 0), np.nanstd(X, 0)
    Z = np.where(there, (X - mean) / scale, 0.0)
    for _ in range(n_iter):
        centre = Z.mean(0)
        U, s, V = np.linalg.svd(Z - centre, full_matrices=False)
        noise = np.mean(np.square(s[n_components:]))
        shrunk = np.maximum(s[:n_components] ** 2 - noise, 0.0) / s[:n_components]
        fitted = (U[:, :n_components] * shrunk) @ V[:n_components] + centre
        change = np.where(there, 0.0, fitted - Z)
        Z = Z + change
        if np.abs(change).max(initial=0.0) < 1e-5:
            break
    return np.where(there, X, Z * scale + mean)
