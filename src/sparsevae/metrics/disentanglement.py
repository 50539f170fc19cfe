"""How well codes (estimated factors) recover true factors: DCI, and matching by rank correlation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.ensemble import GradientBoostingRegressor

from sparsevae.exceptions import DataError
from sparsevae.metrics.base import paired_matrices

__all__ = ["DCI", "code_importances", "dci", "match_codes", "spearman_matrix", "spearman_mcc"]


class DCI(NamedTuple):
    """Disentanglement, completeness, informativeness; all at most 1, higher is better."""

    disentanglement: float
    completeness: float
    informativeness: float


def dci(codes: ArrayLike, factors: ArrayLike | None, *, random_state: int | None = 0) -> DCI:
    r"""Disentanglement, completeness and informativeness of codes about factors.

    .. math::
        D = \sum_c \frac{R_{c\cdot}}{R_{\cdot\cdot}} \Big(1 - H_K\big(R_{ck} / R_{c\cdot}\big)\Big), \qquad
        C = \sum_k \frac{R_{\cdot k}}{R_{\cdot\cdot}} \Big(1 - H_M\big(R_{ck} / R_{\cdot k}\big)\Big)

    with :math:`R_{ck}` the importance of code c for factor k, and entropies :math:`H_K, H_M` in the base of
    the number of factors and of codes.

    Parameters
    ----------
    codes : array of shape (n_samples, n_codes)
        Estimated factors. Constant columns (inactive factors) are left out.
    factors : array of shape (n_samples, n_factors)
        True factors, continuous.
    random_state : int or None, default=0

    Returns
    -------
    DCI

    Notes
    -----
    Eastwood & Williams (2018). Importances are those of gradient boosted trees fitted on all given rows, one
    model per factor. Informativeness is the mean over factors of R2 on a random half of the rows with trees
    fitted on the other half, not below 0. The released code of the paper fits on 16 rows only, where the
    score depends on which rows they are: use several hundred. Codes that say nothing score 0.
    """
    importances = code_importances(codes, factors, random_state=random_state)
    total = importances.sum()
    if total == 0:
        return DCI(0.0, 0.0, 0.0)
    by_code, by_factor = importances.sum(axis=1), importances.sum(axis=0)
    disentanglement = by_code @ _concentration(importances) / total
    completeness = by_factor @ _concentration(importances.T) / total
    return DCI(
        float(disentanglement),
        float(completeness),
        _informativeness(codes, factors, random_state=random_state),
    )


def code_importances(
    codes: ArrayLike, factors: ArrayLike | None, *, random_state: int | None = 0
) -> np.ndarray:
    """Return the importance of each code for each factor in gradient boosted trees.

    Parameters
    ----------
    codes : array of shape (n_samples, n_codes)
    factors : array of shape (n_samples, n_factors)
    random_state : int or None, default=0

    Returns
    -------
    ndarray of shape (n_varying_codes, n_factors)
        Without the constant columns of ``codes``; a column sums to 1, or to 0 where nothing helps.
    """
    codes, factors = _varying(codes, factors)
    importances = np.zeros((codes.shape[1], factors.shape[1]))
    if codes.shape[1]:
        for k, factor in enumerate(factors.T):
            trees = GradientBoostingRegressor(random_state=random_state).fit(codes, factor)
            importances[:, k] = trees.feature_importances_
    return importances


def spearman_matrix(codes: ArrayLike, factors: ArrayLike | None) -> np.ndarray:
    """Spearman's rank correlation of every code with every factor; 0 where one of the two is constant.

    Parameters
    ----------
    codes : array of shape (n_samples, n_codes)
    factors : array of shape (n_samples, n_factors)

    Returns
    -------
    ndarray of shape (n_codes, n_factors)
    """
    codes, factors = paired_matrices("codes", codes, "factors", factors)
    if len(codes) < 2:
        raise DataError(f"Expected at least two rows to rank; got {len(codes)}.")
    return np.clip(_standardised_ranks(codes).T @ _standardised_ranks(factors), -1.0, 1.0)


def match_codes(codes: ArrayLike, factors: ArrayLike | None) -> np.ndarray:
    """Pair codes with factors so that the sum of absolute rank correlations is largest.

    Parameters
    ----------
    codes : array of shape (n_samples, n_codes)
    factors : array of shape (n_samples, n_factors)

    Returns
    -------
    ndarray of int of shape (min(n_codes, n_factors), 2)
        Column of ``codes``, column of ``factors``.
    """
    strength = np.abs(spearman_matrix(codes, factors))
    return np.column_stack(linear_sum_assignment(strength, maximize=True))


def spearman_mcc(codes: ArrayLike, factors: ArrayLike | None) -> float:
    """Mean absolute rank correlation of each true factor with the code matched to it.

    Parameters
    ----------
    codes : array of shape (n_samples, n_codes)
    factors : array of shape (n_samples, n_factors)

    Returns
    -------
    float in [0, 1]
        A factor left without a code counts 0.

    Notes
    -----
    Ranks, because the theory promises factors only up to coordinate-wise transformations (Theorem 1).
    """
    strength = np.abs(spearman_matrix(codes, factors))
    rows, columns = linear_sum_assignment(strength, maximize=True)
    n_factors = strength.shape[1]
    return float(strength[rows, columns].sum() / n_factors) if n_factors else 1.0


def _varying(codes: ArrayLike, factors: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    codes, factors = paired_matrices("codes", codes, "factors", factors)
    if len(codes) < 4:
        raise DataError(
            f"Expected at least four rows, and for a stable score several hundred; got {len(codes)}."
        )
    if not factors.shape[1] or np.any(np.ptp(factors, axis=0) == 0):
        raise DataError(
            "Expected at least one factor and no constant one; got a constant or none. Leave it out."
        )
    return codes[:, np.ptp(codes, axis=0) > 0], factors


def _concentration(importances: np.ndarray) -> np.ndarray:
    """One minus the entropy of each row, in the base of the number of columns; 1 for a single column."""
    n_columns = importances.shape[1]
    if n_columns == 1:
        return np.ones(len(importances))
    sums = importances.sum(axis=1, keepdims=True)
    shares = np.divide(importances, sums, out=np.full_like(importances, 1 / n_columns), where=sums > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return 1 + (shares * logs).sum(axis=1) / np.log(n_columns)


def _informativeness(codes: ArrayLike, factors: ArrayLike | None, *, random_state: int | None) -> float:
    codes, factors = _varying(codes, factors)
    order = np.random.default_rng(random_state).permutation(len(codes))
    train, test = order[::2], order[1::2]
    scores = []
    for factor in factors.T:
        trees = GradientBoostingRegressor(random_state=random_state).fit(codes[train], factor[train])
        error = np.mean((factor[test] - trees.predict(codes[test])) ** 2)
        spread = np.var(factor[test])
        scores.append(max(0.0, 1 - error / spread) if spread > 0 else 0.0)
    return float(np.mean(scores))


def _standardised_ranks(values: np.ndarray) -> np.ndarray:
    ranks = rankdata(values, axis=0) if values.shape[1] else values
    ranks = ranks - ranks.mean(axis=0)
    norms = np.sqrt((ranks**2).sum(axis=0))
    return np.divide(ranks, norms, out=np.zeros_like(ranks), where=norms > 0)
