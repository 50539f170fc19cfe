"""Correlations of any union of folds of a table, from one pass over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from sparsevae.validation import column_moments, constant_columns

__all__ = ["FoldMoments"]

_CELLS_AT_ONCE = 1 << 24


class FoldMoments:
    """Sums and cross-products of the standardised columns of a table, fold by fold.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    n_folds : int
    random_state : int or None
        Of the assignment of rows to folds.

    Notes
    -----
    Holds one float32 matrix of n_features × n_features per fold; a sparse table is never made dense as a
    whole.
    """

    def __init__(self, X: Any, *, n_folds: int, random_state: int | None) -> None:
        mean, variance = column_moments(X)
        constant = constant_columns(mean, variance)
        self._scale = np.where(constant, np.inf, np.sqrt(np.where(constant, 1.0, variance)))
        order = np.random.default_rng(random_state).permutation(X.shape[0])
        self._folds = [
            _moments(X, np.sort(rows), mean, self._scale) for rows in np.array_split(order, n_folds)
        ]

    def n_samples(self, folds: Sequence[int]) -> int:
        """Rows in some folds."""
        return sum(self._folds[f][0] for f in folds)

    def correlation(self, folds: Sequence[int]) -> np.ndarray:
        """Correlation matrix of some folds; a column that does not vary has correlation 0 with all others.

        In float32: the noise of a correlation is far above its rounding.
        """
        chosen = [self._folds[f] for f in folds]
        mean = sum(total for _, total, _ in chosen) / self.n_samples(folds)
        correlation = chosen[0][2] + chosen[1][2] if len(chosen) > 1 else chosen[0][2].copy()
        for _, _, cross in chosen[2:]:
            correlation += cross
        correlation /= np.float32(self.n_samples(folds))
        shift = np.asarray(mean, dtype=np.float32)
        correlation -= np.outer(shift, shift)
        variance = correlation.diagonal()
        # A column that varies in the table may be constant in a fold.
        inverse = np.where(variance > 1e-6, 1.0 / np.sqrt(np.maximum(variance, 1e-6)), 0.0).astype(np.float32)
        correlation *= inverse
        correlation *= inverse[:, None]
        np.fill_diagonal(correlation, 1.0)
        return correlation


def _moments(
    X: Any, rows: np.ndarray, mean: np.ndarray, scale: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray]:
    """Number of rows, sums and cross-products of ``(x - mean) / scale``."""
    if sparse.issparse(X):
        part = X[rows].astype(np.float64)
        total = np.asarray(part.sum(axis=0)).ravel()
        shifted = np.outer(total, mean)
        cross = (part.T @ part).toarray() - shifted - shifted.T + len(rows) * np.outer(mean, mean)
        return (
            len(rows),
            (total - len(rows) * mean) / scale,
            (cross / scale / scale[:, None]).astype(np.float32),
        )
    total, cross = np.zeros(len(mean)), np.zeros((len(mean), len(mean)))
    for block in np.array_split(rows, max(1, -(-rows.size * len(mean) // _CELLS_AT_ONCE))):
        z = ((X[block] - mean) / scale).astype(np.float32)
        total += z.sum(0, dtype=np.float64)
        cross += z.T @ z
    return len(rows), total, cross.astype(np.float32)
