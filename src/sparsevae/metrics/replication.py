"""Which factors of two fits, on different rows, are the same: the protocol of replication.

Both fits say what the factors of *all* rows are. A factor counts if it explains at least 5 % of the variance
of at least three features, and of near copies within one fit one counts. Counted factors are matched one to
one by rank correlation; one *comes back* if the correlation with its match is at least 0.9. *Match* is the
mean matched correlation over the larger number of factors, *overlap* the mean Jaccard index of the strongest
features of matched pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from sparsevae.metrics.disentanglement import spearman_matrix

__all__ = [
    "RETURNED",
    "FactorMatches",
    "FactorSet",
    "compare_factors",
    "counted_factors",
    "halves",
    "linear_shares",
    "match_sets",
    "n_strongest",
    "rank_correlation",
    "strongest",
]

RETURNED = 0.9
"""Rank correlation of a factor that comes back."""

_EXPLAINED, _FEATURES = 0.05, 3  # a factor counts if it explains so much of the variance of so many features
_SAME = 0.9  # correlation above which two factors of one fit count once


class FactorSet(NamedTuple):
    """What one fit says of all rows.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_factors)
    shares : ndarray of shape (n_features, n_factors)
        Fraction of each feature's variance that the factor explains.
    """

    codes: np.ndarray
    shares: np.ndarray

    def take(self, factors: np.ndarray) -> FactorSet:
        """Some of the factors."""
        return FactorSet(self.codes[:, factors], self.shares[:, factors])


class FactorMatches(NamedTuple):
    """Factors of two sets, paired one to one: as many pairs as the smaller set has factors.

    Attributes
    ----------
    first, second : integer arrays of shape (n_pairs,)
    correlation : ndarray of shape (n_pairs,)
        Absolute rank correlation over all rows.
    overlap : ndarray of shape (n_pairs,)
        Jaccard index of the strongest features.
    """

    first: np.ndarray
    second: np.ndarray
    correlation: np.ndarray
    overlap: np.ndarray


def halves(n_samples: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Two disjoint random halves of the rows."""
    order = np.random.default_rng(1000 + split).permutation(n_samples)
    return order[: n_samples // 2], order[n_samples // 2 :]


def compare_factors(first: FactorSet, second: FactorSet) -> dict[str, float]:
    """Numbers of one split: factors_a and factors_b that count, how many come back, match, overlap."""
    a, b = (factors.take(counted_factors(factors)) for factors in (first, second))
    sizes = a.codes.shape[1], b.codes.shape[1]
    found: dict[str, float] = dict(zip(("factors_a", "factors_b"), sizes, strict=True))
    if not min(sizes):
        return {**found, "back": 0, "match": 0.0, "overlap": 0.0}
    pairs = match_sets(a, b)
    return {
        **found,
        "back": int((pairs.correlation >= RETURNED).sum()),
        "match": float(pairs.correlation.sum() / max(sizes)),
        "overlap": float(pairs.overlap.mean()),
    }


def counted_factors(factors: FactorSet) -> np.ndarray:
    """Positions of the factors that count: those that explain something, and of near copies one."""
    able = np.flatnonzero((factors.shares >= _EXPLAINED).sum(0) >= _FEATURES)
    kept: list[int] = []
    for k in able:
        correlations = [
            abs(np.corrcoef(factors.codes[:, k], factors.codes[:, other])[0, 1]) for other in kept
        ]
        if not any(r > _SAME for r in correlations):
            kept.append(int(k))
    return np.array(kept, dtype=int)


def match_sets(first: FactorSet, second: FactorSet) -> FactorMatches:
    """Pair the factors of two sets so that the sum of their absolute rank correlations is largest."""
    if not first.codes.shape[1] or not second.codes.shape[1]:
        nothing = np.empty(0)
        return FactorMatches(nothing.astype(int), nothing.astype(int), nothing, nothing)
    correlation = np.abs(spearman_matrix(first.codes, second.codes))
    rows, columns = linear_sum_assignment(-correlation)
    n = n_strongest(len(first.shares))
    overlap = [
        _jaccard(strongest(first.shares[:, i], n), strongest(second.shares[:, j], n))
        for i, j in zip(rows, columns, strict=True)
    ]
    return FactorMatches(rows, columns, correlation[rows, columns], np.array(overlap))


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Absolute rank correlation of two factors over the same rows."""
    return float(abs(spearman_matrix(first[:, None], second[:, None])[0, 0]))


def linear_shares(loadings: np.ndarray, codes: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """What linear factors explain: squared loading × variance of the code / variance of the feature.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_factors)
    codes : ndarray of shape (n_samples, n_factors)
        Of the rows of the fit.
    variance : ndarray of shape (n_features,)
        Of the features in these rows.
    """
    return np.minimum(loadings**2 * codes.var(0) / np.maximum(variance, 1e-12)[:, None], 1.0)


def n_strongest(n_features: int) -> int:
    """Strongest features compared: ten, five of a short questionnaire, three of nine tests."""
    return 10 if n_features > 25 else 5 if n_features > 9 else 3


def strongest(shares: np.ndarray, n: int) -> np.ndarray:
    """Positions of the n features of which a factor explains most, the first one most."""
    return np.argsort(-shares, kind="stable")[:n]


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
    return len(np.intersect1d(a, b)) / len(np.union1d(a, b))
