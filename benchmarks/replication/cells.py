"""Whether factors tell cell types: a multinomial regression on factors that were found without labels.

    python -m benchmarks.replication.cells --data FOLDER [--only METHOD;...]

Twenty factors of all cells, standardised; logistic regression, five stratified folds, five seeds of them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.replication.tables import TABLES, pbmc_counts
from sparsevae import VAE, SparseVAE

_FACTORS, _FOLD_SEEDS = 20, 5


def main() -> None:
    """Parse the arguments, fit what is missing, print accuracies."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "cells.csv")
    parser.add_argument("--only", default=";".join(_METHODS), help="methods, with semicolons between them")
    arguments = parser.parse_args()
    keys = ["table", "method"]
    rows = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=keys)
    for name, (X, likelihood, labels) in _tables(arguments.data).items():
        for method in arguments.only.split(";"):
            if (name, method) in set(map(tuple, rows[keys].to_numpy())):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Z = _METHODS[method](X, likelihood)
            row = {"table": name, "method": method, "n_factors": Z.shape[1], "accuracy": accuracy(Z, labels)}
            rows = pd.concat([rows, pd.DataFrame([row])], ignore_index=True)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            rows.astype({"n_factors": int}).to_csv(arguments.out, index=False)
    print(rows.round(3).to_string(index=False))


def accuracy(Z: np.ndarray, labels: np.ndarray) -> float:
    """Cells whose type is told, mean over folds and their seeds."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = [StratifiedKFold(5, shuffle=True, random_state=seed) for seed in range(_FOLD_SEEDS)]
    return float(np.mean([cross_val_score(model, Z, labels, cv=fold) for fold in folds]))


def _tables(folder: Path) -> dict[str, tuple[np.ndarray, str, np.ndarray]]:
    types = pd.read_csv(folder / "pbmc3k" / "cells.csv")["cell_type"].to_numpy(dtype=object).astype(str)
    zeisel = pd.read_csv(folder / "zeisel" / "cells.csv")
    return {
        "pbmc, 2,000 genes": (pbmc_counts(folder, 2000).toarray(), "negative_binomial", types),
        "zeisel": (TABLES["zeisel"].load(folder), "gaussian", zeisel["level1class"].to_numpy(str)),
    }


def _pca(X: np.ndarray, likelihood: str) -> np.ndarray:
    """Principal components of log-normalised counts, or of the values."""
    if likelihood != "gaussian":
        X = np.log1p(X / np.maximum(X.sum(1, keepdims=True), 1.0) * 1e4)
    return PCA(_FACTORS, random_state=0).fit_transform(X)


def _vae(X: np.ndarray, likelihood: str) -> np.ndarray:
    return VAE(_FACTORS, likelihood=likelihood, random_state=0).fit(X).transform(X)


def _sparse_vae(X: np.ndarray, likelihood: str, **options: float) -> np.ndarray:
    model = SparseVAE(_FACTORS, likelihood=likelihood, random_state=0, **options).fit(X)
    return model.transform(X)[:, model.active_factors_]


_METHODS: dict[str, Callable[[np.ndarray, str], np.ndarray]] = {
    "PCA": _pca,
    "sparse VAE": _sparse_vae,
    "sparse VAE, gain_kept=1.0": lambda X, likelihood: _sparse_vae(X, likelihood, gain_kept=1.0),
    "VAE": _vae,
}


if __name__ == "__main__":
    main()
