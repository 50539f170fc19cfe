"""Factors of one fit in another: matched by what they load on and by how they rank the samples.

Theorem 1 identifies factors up to coordinate-wise transformations and their order. Rank correlation is blind
to the former, the matching to the latter; a Pearson correlation or a comparison column by column would not
be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from sparsevae.metrics import spearman_matrix

__all__ = ["FactorMatch", "match_factors", "support_overlap"]


class FactorMatch(NamedTuple):
    """For each factor of the reference, its partner in another fit; all of shape (n_factors,)."""

    partner: np.ndarray
    """Column of the other fit, -1 for none."""
    overlap: np.ndarray
    """Shared non-zeros over all non-zeros of the two supports, 0 without partner."""
    rank_correlation: np.ndarray
    """Absolute rank correlation of the two factors over the samples, 0 without partner."""


def match_factors(
    mask: np.ndarray, codes: np.ndarray, other_mask: np.ndarray, other_codes: np.ndarray
) -> FactorMatch:
    """Match the factors of two fits one to one (Hungarian method).

    The matching maximises the sum over pairs of the overlap of supports and the absolute rank correlation.

    Parameters
    ----------
    mask, other_mask : arrays of shape (n_features, n_factors)
        The two may have different numbers of factors.
    codes, other_codes : arrays of shape (n_samples, n_factors)
        Posterior means of the same samples under both fits.

    Returns
    -------
    FactorMatch
        Inactive factors, with an empty column in a mask, have no partner.
    """
    n_factors = mask.shape[1]
    result = FactorMatch(np.full(n_factors, -1), np.zeros(n_factors), np.zeros(n_factors))
    mine, theirs = np.flatnonzero((mask != 0).any(0)), np.flatnonzero((other_mask != 0).any(0))
    if not len(mine) or not len(theirs):
        return result
    overlap = support_overlap(mask[:, mine], other_mask[:, theirs])
    ranks = np.abs(spearman_matrix(codes[:, mine], other_codes[:, theirs]))
    rows, columns = linear_sum_assignment(overlap + ranks, maximize=True)
    result.partner[mine[rows]] = theirs[columns]
    result.overlap[mine[rows]] = overlap[rows, columns]
    result.rank_correlation[mine[rows]] = ranks[rows, columns]
    return result


def support_overlap(mask: np.ndarray, other_mask: np.ndarray) -> np.ndarray:
    """Jaccard index of every column's support with every column's of another mask: (n_factors, n_others)."""
    mine, theirs = (mask != 0).astype(float), (other_mask != 0).astype(float)
    shared = mine.T @ theirs
    either = mine.sum(0)[:, None] + theirs.sum(0) - shared
    return np.divide(shared, either, out=np.zeros_like(shared), where=either > 0)
