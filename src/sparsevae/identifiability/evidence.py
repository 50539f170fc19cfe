"""Whether two anchors of one factor share a response curve, by the fit and by the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from sparsevae.identifiability.moments import FoldMoments
from sparsevae.identifiability.rank_test import (
    contrast_correlation,
    degrees_of_freedom,
    instruments,
    likelihood_ratio,
)
from sparsevae.identifiability.slopes import curve_differences

__all__ = ["PairEvidence", "pair_evidence"]

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
        share, p_value = _contrast_tests(table, features[first], features[second])
    return PairEvidence(first, second, difference, share, p_value)


def _contrast_tests(
    table: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    moments = FoldMoments(table, n_folds=2, random_state=0)
    halves = [((0,), (1,)), ((1,), (0,))]
    statistic, share, freedom = np.zeros(len(rows)), np.zeros(len(rows)), 0
    for own, other in halves:
        basis = instruments(moments.correlation(other), moments.n_samples(other))
        squared = contrast_correlation(moments.correlation(own), basis, rows, columns)
        n_samples = moments.n_samples(own)
        statistic += likelihood_ratio(squared, n_samples, basis.shape[1])
        freedom += degrees_of_freedom(basis.shape[1])
        share += 0.5 * np.maximum(squared - degrees_of_freedom(basis.shape[1]) / n_samples, 0.0)
    return share, chi2.sf(statistic, freedom)
