"""Whether two anchors of one factor share a response curve, by the fit and by the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from sparsevae.identifiability.moments import as_correlation, pair_counts
from sparsevae.identifiability.rank_test import (
    degrees_of_freedom,
    explained_contrasts,
    instruments,
    likelihood_ratio,
    project,
)
from sparsevae.identifiability.slopes import curve_differences

__all__ = ["PairEvidence", "pair_evidence"]

_SQUARES = 10  # leading instruments whose squares are instruments too
_LEAST_FEATURES = 4  # two to compare, and two others to compare them by


class PairEvidence(NamedTuple):
    """Pairs as positions in a list of anchors, and what is known of each; all of shape (n_pairs,)."""

    first: np.ndarray
    second: np.ndarray
    curve_difference: np.ndarray
    data_difference: np.ndarray
    p_value: np.ndarray


def pair_evidence(
    curves: np.ndarray, features: np.ndarray, factors: np.ndarray, table: np.ndarray | None
) -> PairEvidence:
    """Compare all pairs of anchors of one factor.

    Parameters
    ----------
    curves : array of shape (n_samples, n_anchors)
        Response curves at the samples.
    features, factors : integer arrays of shape (n_anchors,)
        Positions of the anchors among all features, in rising order, and their factors.
    table : array of shape (n_samples, n_features), or None
        The data; without them the columns that rest on them are NaN.

    Returns
    -------
    PairEvidence
        ``data_difference`` is the share of the variance of the best contrast of the two features that the
        others explain, less what chance explains; ``p_value`` that of the hypothesis that it is zero.
    """
    first, second = np.nonzero(np.triu(factors[:, None] == factors, 1))
    difference = np.full(len(first), np.nan)
    for k in np.unique(factors[first]):
        own = np.flatnonzero(factors == k)
        matrix = curve_differences(curves[:, own])
        mine = factors[first] == k
        position = np.searchsorted(own, first[mine]), np.searchsorted(own, second[mine])
        difference[mine] = matrix[position]
    share, p_value = np.full((2, len(first)), np.nan)
    if table is not None and len(first) and table.shape[1] >= _LEAST_FEATURES:
        halves = _Halves(table)
        for k in np.unique(factors[first]):
            mine = np.flatnonzero(factors[first] == k)
            pairs = features[first[mine]], features[second[mine]]
            share[mine], p_value[mine] = halves.compare(*pairs, features[factors == k])
    return PairEvidence(first, second, difference, share, p_value)


class _Halves:
    """Two halves of a table, each to be tested with instruments that the other has chosen."""

    def __init__(self, table: np.ndarray) -> None:
        rng = np.random.default_rng(0)
        holes = bool(np.isnan(table).any())
        average, deviation = (np.nanmean, np.nanstd) if holes else (np.mean, np.std)
        self.halves = []
        for rows in np.array_split(rng.permutation(len(table)), 2):
            x = table[np.sort(rows)].astype(np.float32)
            x -= average(x, 0, dtype=np.float64).astype(np.float32)
            scale = deviation(x, 0, dtype=np.float64).astype(np.float32)
            x /= np.where(scale > 1e-6, scale, np.inf)  # inputs of the encoder vary by about one
            self.halves.append(x)
        self.sizes = [len(x) for x in self.halves]
        self.correlations = [x.T @ x / len(x) for x in self.halves]
        if holes:
            self._fill_holes()
        for correlation in self.correlations:
            np.fill_diagonal(correlation, 1.0)
        # Each half has the instruments that the other one chose.
        chosen = [instruments(r, size) for r, size in zip(self.correlations, self.sizes, strict=True)]
        self.bases = chosen[::-1]
        self.with_bases = [r @ basis for r, basis in zip(self.correlations, self.bases, strict=True)]

    def _fill_holes(self) -> None:
        """Correlations of the rows that have both features; scores of a row from what it has."""
        for h, x in enumerate(self.halves):
            pairs = np.maximum(pair_counts(x), 1.0)
            filled = np.nan_to_num(x)
            self.correlations[h] = as_correlation(filled.T @ filled / pairs).astype(np.float32)
            self.sizes[h] = max(1, round(float(np.median(pairs))))
            # Scaled so that averages over all rows are averages over those that have the feature.
            self.halves[h] = filled * np.sqrt(len(x) / pairs.diagonal()).astype(np.float32)

    def compare(
        self, rows: np.ndarray, columns: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Share of the best contrasts that other features explain, and the p-values of none."""
        statistic, share, freedom = np.zeros(len(rows)), np.zeros(len(rows)), 0
        for x, size, correlation, basis, with_basis in zip(
            self.halves, self.sizes, self.correlations, self.bases, self.with_bases, strict=True
        ):
            projection = project(basis, with_basis, _squares(x, basis, anchors))
            squared = explained_contrasts(projection, correlation, rows, columns)
            n_instruments = projection.U.shape[1]
            statistic += likelihood_ratio(squared, size, n_instruments)
            freedom += degrees_of_freedom(n_instruments)
            share += 0.5 * np.maximum(squared - degrees_of_freedom(n_instruments) / size, 0.0)
        return share, chi2.sf(statistic, freedom)


def _squares(
    x: np.ndarray, basis: np.ndarray, anchors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Squares of the leading instruments without the anchors in question, which know of bent curves.

    A contrast of two anchors with one curve is noise, and unrelated to any function of the other features.
    """
    weights = basis[:, :_SQUARES].copy()
    weights[anchors] = 0.0
    scores = x @ weights
    scale = scores.std(0)
    scores = scores[:, scale > 0.1 * x.std(0).max(initial=0.0)]
    if not scores.shape[1]:
        return None
    squares = np.square(scores / scores.std(0))
    squares -= squares.mean(0)
    squares = squares[:, squares.std(0) > 1e-3]  # a score of two values has a square that does not vary
    if not squares.shape[1]:
        return None
    squares /= squares.std(0)
    return x.T @ squares / len(x), basis.T @ (x.T @ squares) / len(x), squares.T @ squares / len(x)
