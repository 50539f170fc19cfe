"""Correlations of any union of folds of a table, from one pass over its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from sparsevae.aliases import Matrix
from sparsevae.annotations.missing import has_missing
from sparsevae.principal import nearest_covariance
from sparsevae.summaries import column_moments, constant_columns, dense_table

__all__ = ["FoldMoments", "as_correlation", "pair_counts"]

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
    whole, unless it has missing values. Where values are missing, correlations are those of the rows that
    have both features, made positive semidefinite, and count for as many rows as a typical pair has.
    """

    def __init__(self, X: Matrix, *, n_folds: int, random_state: int | None) -> None:
        self._holes = has_missing(X)
        X = dense_table(X) if self._holes else X
        mean, variance = column_moments(X)
        constant = constant_columns(mean, variance)
        self._scale = np.where(constant, np.inf, np.sqrt(np.where(constant, 1.0, variance)))
        order = np.random.default_rng(random_state).permutation(X.shape[0])
        self._folds = [
            _moments(X, np.sort(rows), mean, self._scale) for rows in np.array_split(order, n_folds)
        ]
        self._pairs: list[np.ndarray] = []
        if self._holes:
            self._pairs = [pair_counts(X[rows]) for rows in np.array_split(order, n_folds)]

    def n_samples(self, folds: Sequence[int]) -> int:
        """Rows in some folds; those of a typical pair of features where values are missing."""
        if self._holes:
            return max(1, round(float(np.median(np.sum([self._pairs[f] for f in folds], 0)))))
        return sum(self._folds[f][0] for f in folds)

    def correlation(self, folds: Sequence[int]) -> np.ndarray:
        """Correlation matrix of some folds; a column that does not vary has correlation 0 with all others.

        In float32: the noise of a correlation is far above its rounding.
        """
        chosen = [self._folds[f] for f in folds]
        if self._holes:
            pairs = np.maximum(np.sum([self._pairs[f] for f in folds], 0), 1.0)
            cross = sum(cross for _, _, cross in chosen) / pairs
            mean = sum(total for _, total, _ in chosen) / pairs.diagonal()
            return as_correlation(cross - np.outer(mean, mean)).astype(np.float32)
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


def pair_counts(X: np.ndarray) -> np.ndarray:
    """Rows that have both of each pair of features: (n_features, n_features)."""
    there = (~np.isnan(X)).astype(np.float64)
    return there.T @ there


def as_correlation(covariance: np.ndarray) -> np.ndarray:
    """Covariances of pairs of features as a correlation matrix; 0 for features that do not vary."""
    variance = covariance.diagonal()
    inverse = np.where(variance > 1e-6, 1.0 / np.sqrt(np.maximum(variance, 1e-6)), 0.0)
    correlation = covariance * inverse * inverse[:, None]
    np.fill_diagonal(correlation, 1.0)
    correlation = nearest_covariance(np.clip(correlation, -1.0, 1.0))
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _moments(
    X: Matrix, rows: np.ndarray, mean: np.ndarray, scale: np.ndarray
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
        z = np.nan_to_num((X[block] - mean) / scale).astype(np.float32)
        total += z.sum(0, dtype=np.float64)
        cross += z.T @ z
    return len(rows), total, cross.astype(np.float32)
