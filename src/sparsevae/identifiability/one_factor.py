r"""Groups of features that share one factor: their loadings, and what the correlations look like if it is so.

A group g with loadings h on its factor has correlations :math:`h_i h_j` inside, and with any other feature l
:math:`h_i c_{gl}`, where :math:`c_{gl}` is the correlation of l with the factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["factor_correlation", "find_combinations", "group_loadings", "structured_rows"]

_ITERATIONS = 300
_SETTLED = 1e-6
_COMBINED = 0.05  # share of its variance of its own below which a group is a combination of others
_LEAST_EIGENVALUE = 0.01
_SINGLE = 0.1  # by how much several others must predict a group better than the nearest one does


def group_loadings(correlation: np.ndarray, group: np.ndarray) -> np.ndarray:
    r"""Correlation of each feature of a group with the group's factor.

    The rank-one fit to the group's rows of the correlation matrix, in which the diagonal is unknown: each
    step fills in :math:`h_i^2` there.

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    group : integer array of shape (n_members,)
        At least two.

    Returns
    -------
    ndarray of shape (n_members,)
        Their sum is not negative.
    """
    rows = correlation[group].astype(np.float64)
    inner = rows[:, group]
    rows[:, group] = 0.0
    np.fill_diagonal(inner, 0.0)
    direction = np.where(inner[np.abs(inner).sum(1).argmax()] < 0, -1.0, 1.0) / np.sqrt(len(group))
    squares = np.abs(inner).max(1)
    for _ in range(_ITERATIONS):
        filled = inner @ direction + squares * direction
        direction = rows @ (rows.T @ direction) + inner @ filled + squares * filled
        direction /= np.linalg.norm(direction)
        weight = 1.0 - float((direction**4).sum())  # of all pairs, each by the product of its squares
        size = max(float(direction @ inner @ direction) / max(weight, 1e-12), 1e-12)
        updated = np.clip(size * direction**2, 0.0, 1.0)
        settled = np.abs(updated - squares).max() < _SETTLED
        squares = updated
        if settled:
            break
    loadings = np.sqrt(size) * direction
    return loadings if loadings.sum() >= 0 else -loadings


def factor_correlation(
    correlation: np.ndarray, groups: Sequence[np.ndarray], loadings: Sequence[np.ndarray]
) -> np.ndarray:
    """Correlation of the factors behind the groups, free of the noise of the features.

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    groups, loadings : sequences of arrays
        Members and their loadings.

    Returns
    -------
    ndarray of shape (n_groups, n_groups)
    """
    n_groups = len(groups)
    between = np.eye(n_groups)
    projected = np.array([h @ correlation[g] / (h @ h) for g, h in zip(groups, loadings, strict=True)])
    for b, (g, h) in enumerate(zip(groups, loadings, strict=True)):
        column = projected[:, g] @ h / (h @ h)
        others = np.arange(n_groups) != b
        between[others, b] = column[others]
    return np.clip(0.5 * (between + between.T), -1.0, 1.0)


def structured_rows(
    correlation: np.ndarray, groups: Sequence[np.ndarray], loadings: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the correlation matrix that the groups touch, as their one-factor structure predicts them.

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    groups, loadings : sequences of arrays
        Members and their loadings; at least one group.

    Returns
    -------
    members : integer array of shape (n_members,)
    rows : ndarray of shape (n_members, n_features)
    """
    members, sizes = np.concatenate(groups), [len(g) for g in groups]
    first, group_of = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(groups)), sizes)
    h = np.concatenate(loadings)
    weights = (h / np.add.reduceat(h**2, first)[group_of]).astype(correlation.dtype)
    h = h.astype(correlation.dtype)
    # Correlations of each group's factor: with all features, and with the factors of the groups.
    factor = np.add.reduceat(weights[:, None] * correlation[members], first, axis=0)
    between = np.add.reduceat(factor[:, members] * weights, first, axis=1)
    np.fill_diagonal(between, 1.0)
    factor[:, members] = between[:, group_of] * h
    return members, h[:, None] * factor[group_of]


def find_combinations(between: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    r"""Groups whose factor is a linear combination of others: replicates of a mixed feature, not anchors.

    Proportional rows say that features depend on the factors in the same way, not that they depend on a
    single one. A group that the other groups predict almost fully, and clearly better than the nearest of
    them does, is a combination. Which of the groups in such a tie are the combined ones cannot be read off
    the correlations alone; by parsimony it is the smallest group, and among equals the one that lies inside
    the others (smallest sum of absolute coefficients).

    Parameters
    ----------
    between : array of shape (n_groups, n_groups)
        Correlation of the factors.
    sizes : sequence of int
        Members of each group.

    Returns
    -------
    boolean array of shape (n_groups,)
    """
    kept = list(range(len(sizes)))
    while len(kept) > 2:
        C = between[np.ix_(kept, kept)]
        own, coefficients = _regressions(C)
        nearest = 1.0 - np.square(C - np.eye(len(kept))).max(1)
        tied = np.flatnonzero((own < _COMBINED) & (nearest - own > _SINGLE))
        if not len(tied):
            break
        weight = np.abs(coefficients).sum(1)
        kept.pop(min(tied, key=lambda g: (sizes[kept[g]], weight[g])))
    combined = np.ones(len(sizes), dtype=bool)
    combined[kept] = False
    return combined


def _regressions(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of each factor's variance that the others leave, and its coefficients on them."""
    values, vectors = np.linalg.eigh(C)
    # An estimate free of noise variance need not be positive definite.
    precision = (vectors / np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
    own = 1.0 / precision.diagonal()
    coefficients = -precision * own[:, None]
    np.fill_diagonal(coefficients, 0.0)
    return own, coefficients
