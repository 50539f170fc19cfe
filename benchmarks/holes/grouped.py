"""Groups of rows: known shared and specific factors, and cells in two artificial batches."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from sparsevae import SparseVAE
from sparsevae.datasets import Dataset, make_grouped_factors
from sparsevae.metrics import support_f1

_GENES = 100  # those that vary most


def groups(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Known shared and specific factors."""
    for seed in arguments.seeds:
        data = make_grouped_factors(1000, 40, n_shared=3, n_specific=1, random_state=seed)
        model = SparseVAE(8, random_state=0).fit(data.X, groups=data.target)
        Z = model.transform(data.X, groups=data.target)[:, model.active_factors_]
        yield {
            "seed": seed,
            "n_active": Z.shape[1],
            "support_f1": round(support_f1(model.mask_, data.mask), 4),
            "roles_right": _right_roles(data, Z, model.group_factors()["role"].tolist()),
        }


def batches(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Cells in two artificial batches with known shifts: what the factors tell of batch and type."""
    X, types = cells(arguments.data)
    for seed in arguments.seeds:
        rng = np.random.default_rng(seed)
        batch = rng.integers(0, 2, len(X))
        shifted = X + batch[:, None] * rng.normal(0.0, X.std(0), X.shape[1])
        for name, table, labels in (
            ("unshifted", X, None),
            ("unshifted, groups given", X, batch),
            ("shifted, groups unknown", shifted, None),
            ("shifted, groups given", shifted, batch),
        ):
            if arguments.tables is not None and name not in arguments.tables:
                continue
            model = SparseVAE(10, random_state=seed)
            Z = model.fit_transform(table, groups=labels)[:, model.active_factors_]
            yield {
                "seed": seed,
                "table": name,
                "n_active": Z.shape[1],
                **{f"batch_{judge}": value for judge, value in _tell(Z, batch).items()},
                **{f"type_{judge}": value for judge, value in _tell(Z, types).items()},
            }


def cells(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Log-normalised counts of PBMC 3k in the genes that vary most, and the type of each cell."""
    counts = sparse.load_npz(folder / "pbmc3k" / "counts.npz").tocsr().astype(np.float64)
    rate = np.log1p(counts.multiply(1e4 / np.asarray(counts.sum(1)).reshape(-1, 1)).toarray())
    types = pd.read_csv(folder / "pbmc3k" / "cells.csv")["cell_type"].to_numpy(dtype=object).astype(str)
    return rate[:, np.argsort(-rate.var(0), kind="stable")[:_GENES]], types


def _tell(Z: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Balanced accuracy of two classifiers on held-out fifths of the rows."""
    judges = {
        "logistic": LogisticRegression(max_iter=1000),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }
    return {
        name: round(float(cross_val_score(judge, Z, labels, scoring="balanced_accuracy").mean()), 4)
        for name, judge in judges.items()
    }


def _right_roles(data: Dataset, Z: np.ndarray, roles: list[str]) -> float:
    """Fraction of true factors whose nearest found one has the right role."""
    factors, target = data.factors, data.target
    assert factors is not None
    assert target is not None
    n_factors = factors.shape[1]
    correlation = np.abs(np.corrcoef(factors.T, Z.T)[:n_factors, n_factors:])
    right = 0
    for k in range(n_factors):
        owners = sorted(set(target[factors[:, k] != 0]))
        expected = "shared" if len(owners) == len(set(target)) else ", ".join(owners)
        right += roles[int(correlation[k].argmax())] == expected
    return right / n_factors
