"""Practical anchors, by one definition, of the default fit, varimax and an oblique rotation at the same K.

    python -m benchmarks.anchors --data FOLDER [--only TABLE,...]

Of the features with a communality of at least 0.05, the fraction whose fitted values change by at most 5 % of
their variance when every factor but one is held at its mean.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np

from benchmarks.replication.tables import TABLES
from sparsevae import SparseVAE
from sparsevae.factor_analysis import LinearFactors, analyse_factors
from sparsevae.inspection.variance import find_practical
from sparsevae.rotation import varimax


def main() -> None:
    """Fit each table once and print a row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("SPARSEVAE_TEST_DATA"))
    parser.add_argument("--only", default=",".join(TABLES))
    arguments = parser.parse_args()
    print("table, factors, exact, practical, varimax, oblique (fractions of features that count)")
    for name in arguments.only.split(","):
        table = TABLES[name]
        X = table.load(Path(arguments.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SparseVAE(table.n_factors, likelihood=table.likelihood, random_state=0).fit(X)
        counted = model.communalities_ >= 0.05
        exact = ((model.mask_ != 0).sum(1) == 1)[counted].mean()
        own = model.practical_anchors().any(1)[counted].mean()
        inputs = model.codes(X).inputs(np.arange(len(X))).astype(np.float64)
        inputs = (inputs - inputs.mean(0)) / np.maximum(inputs.std(0), 1e-6)
        oblique = analyse_factors(inputs, len(model.active_factors_))
        L = oblique.loadings @ np.linalg.cholesky(oblique.correlation)
        plain = LinearFactors(varimax(L), np.eye(L.shape[1]), oblique.uniqueness)
        others = [_fraction(inputs, factors) for factors in (plain, oblique)]
        shown = ", ".join(f"{value:.2f}" for value in (exact, own, *others))
        print(f"{name}, {len(model.active_factors_)}, {shown}", flush=True)
        if hasattr(model, "path_supports_"):
            print(f"  exact anchors at gain kept: {_trade(model, counted)}", flush=True)


def _trade(model: SparseVAE, counted: np.ndarray) -> str:
    """Exact anchors of the linear model along the path from many links to few, beside the gain it keeps."""
    path = model.simplicity_path_
    gains = path.loc[path["model"] == "linear", "gain_kept"]
    anchors = [(support.sum(1) == 1)[counted].mean() for support in model.path_supports_]
    return ", ".join(f"{gain:.2f}: {own:.2f}" for gain, own in zip(gains, anchors, strict=True))


def _fraction(X: np.ndarray, factors: LinearFactors) -> float:
    """Practical anchors of a linear model, of the features that count."""
    codes = X @ factors.maps()
    covariance = np.cov(codes.T).reshape(factors.n_factors, -1)
    L = factors.loadings
    fitted = np.einsum("jk,kl,jl->j", L, covariance, L)
    left = np.empty_like(L)
    for k in range(factors.n_factors):
        others = L.copy()
        others[:, k] = 0.0
        left[:, k] = np.einsum("jk,kl,jl->j", others, covariance, others) / np.maximum(fitted, 1e-12)
    communality = 1.0 - factors.uniqueness
    return float(find_practical(left, communality).any(1)[communality >= 0.05].mean())


if __name__ == "__main__":
    main()
