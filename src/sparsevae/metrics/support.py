"""How well an estimated support agrees with the true one, whatever the order of the factors.

A support is the pattern of exact non-zeros of a mask of shape (n_features, n_factors). No threshold is
applied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from sparsevae.metrics.base import paired_matrices

__all__ = ["SupportScore", "anchor_f1", "match_supports", "support_f1", "support_score"]


class SupportScore(NamedTuple):
    """Agreement of an estimated support with the true one under the best matching of factors."""

    f1: float
    precision: float
    recall: float
    matching: np.ndarray
    """(n_pairs, 2): column of the estimate, column of the truth."""


def match_supports(mask: ArrayLike, true_mask: ArrayLike | None) -> np.ndarray:
    """Pair the factors of two masks so that as many non-zeros as possible coincide (Hungarian method).

    Parameters
    ----------
    mask : array of shape (n_features, n_factors)
    true_mask : array of shape (n_features, n_true_factors)

    Returns
    -------
    ndarray of int of shape (n_pairs, 2)
        Columns of ``mask`` and of ``true_mask``; pairs with nothing in common are left out.
    """
    estimate, truth = _supports(mask, true_mask)
    common = estimate.T @ truth
    pairs = np.column_stack(linear_sum_assignment(common, maximize=True))
    return pairs[common[pairs[:, 0], pairs[:, 1]] > 0]


def support_score(mask: ArrayLike, true_mask: ArrayLike | None) -> SupportScore:
    """F1, precision and recall of the support under the best matching of factors.

    Parameters
    ----------
    mask : array of shape (n_features, n_factors)
    true_mask : array of shape (n_features, n_true_factors)

    Returns
    -------
    SupportScore

    Notes
    -----
    Non-zeros of an estimated factor without partner are false positives, those of a true factor without
    partner false negatives. F1 is 2 TP / (non-zeros of the estimate + non-zeros of the truth), so the
    matching with the most common non-zeros is the one with the best F1. Two empty supports agree: 1.
    """
    estimate, truth = _supports(mask, true_mask)
    matching = match_supports(mask, true_mask)
    hits = float((estimate[:, matching[:, 0]] * truth[:, matching[:, 1]]).sum())
    found, wanted = float(estimate.sum()), float(truth.sum())
    return SupportScore(
        f1=2 * hits / (found + wanted) if found + wanted else 1.0,
        precision=hits / found if found else float(wanted == 0),
        recall=hits / wanted if wanted else float(found == 0),
        matching=matching,
    )


def support_f1(mask: ArrayLike, true_mask: ArrayLike | None) -> float:
    """F1 of the support under the best matching of factors; see `support_score`.

    Parameters
    ----------
    mask : array of shape (n_features, n_factors)
    true_mask : array of shape (n_features, n_true_factors)

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> support_f1([[0, 2], [0, 1], [3, 0]], [[1, 0], [1, 0], [0, 1]])
    1.0
    """
    return support_score(mask, true_mask).f1


def anchor_f1(mask: ArrayLike, true_mask: ArrayLike | None) -> float:
    """F1 of the support in the rows of the true anchors alone, under the best matching of factors.

    Parameters
    ----------
    mask : array of shape (n_features, n_factors)
    true_mask : array of shape (n_features, n_true_factors)
        Its rows with exactly one non-zero are the anchors.

    Returns
    -------
    float in [0, 1]
    """
    estimate, truth = _supports(mask, true_mask)
    anchors = truth.sum(axis=1) == 1
    return support_f1(estimate[anchors], truth[anchors])


def _supports(mask: ArrayLike, true_mask: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    estimate, truth = paired_matrices("mask", mask, "true_mask", true_mask)
    return (estimate != 0).astype(float), (truth != 0).astype(float)
