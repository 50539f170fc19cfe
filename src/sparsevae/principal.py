"""Linear factors of a table: how many there are, and the loadings of the leading ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from sparsevae.exceptions import ParameterError

__all__ = [
    "RandomState",
    "dominant_sign",
    "nearest_covariance",
    "pairwise_correlation",
    "pairwise_covariance",
    "parallel_analysis",
    "parallel_eigenvalues",
    "principal_loadings",
]

RandomState = int | np.random.RandomState | None
_EXACT_SIZE = 500  # eigenvalues of larger matrices come from power iteration
_POWER_ITERATIONS = 4


def parallel_analysis(
    X_standardised: ArrayLike,
    n_permutations: int = 20,
    quantile: float = 0.95,
    random_state: RandomState = None,
    *,
    max_factors: int = 50,
    max_samples: int = 10_000,
) -> int:
    r"""Number of linear factors by Horn's parallel analysis.

    A factor counts as long as its eigenvalue of the correlation matrix exceeds what the same rank reaches
    when every column is permuted on its own: that keeps each feature's distribution and breaks every
    dependence.

    Parameters
    ----------
    X_standardised : array of shape (n_samples, n_features)
        Columns of mean 0 and variance 1; a constant column is all zeros. NaN for what is missing: the
        correlations are then those of the rows that have both features, and permutations keep the holes.
    n_permutations : int
    quantile : float
        Of the permuted eigenvalues, at each rank.
    random_state : int, RandomState or None
    max_factors : int
        The count stops here: no more eigenvalues are computed.
    max_samples : int
        In a longer table that many rows are drawn at random; they settle the matter, and permuting is slow.

    Returns
    -------
    int
        Between 0 and ``max_factors``.
    """
    observed, threshold = parallel_eigenvalues(
        X_standardised,
        n_permutations,
        quantile,
        random_state,
        max_factors=max_factors,
        max_samples=max_samples,
    )
    return int(np.logical_and.accumulate(observed > threshold).sum())


def parallel_eigenvalues(
    X_standardised: ArrayLike,
    n_permutations: int = 20,
    quantile: float = 0.95,
    random_state: RandomState = None,
    *,
    max_factors: int = 50,
    max_samples: int = 10_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues of the correlation matrix, and what they reach in permuted tables.

    Parameters
    ----------
    X_standardised, n_permutations, quantile, random_state, max_factors, max_samples
        As for `parallel_analysis`.

    Returns
    -------
    observed, threshold : ndarray of shape (n_leading,)
    """
    rng = check_random_state(random_state)
    X = np.asarray(X_standardised)
    if len(X) > max_samples:
        X = X[rng.choice(len(X), max_samples, replace=False)]
    columns = np.ascontiguousarray(X.T)  # feature × sample: permuting a row is quick
    n_leading = min(max_factors, *columns.shape)
    if np.isnan(columns).any() and len(columns) > _EXACT_SIZE:
        # Filled with the mean and scaled back to variance 1: correlations shrink, alike in permutations.
        columns = np.nan_to_num(columns) / np.sqrt((~np.isnan(columns)).mean(1, keepdims=True))

    observed = _leading_eigenvalues(columns, n_leading, rng)
    shuffle = np.random.default_rng(rng.randint(np.iinfo(np.int32).max))
    permuted = [
        _leading_eigenvalues(shuffle.permuted(columns, axis=1), n_leading, rng) for _ in range(n_permutations)
    ]
    return observed, np.quantile(permuted, quantile, axis=0)


def principal_loadings(correlation: ArrayLike, n_factors: int) -> np.ndarray:
    r"""Loadings of the leading principal components, each scaled to its standard deviation.

    .. math:: A = V_{1:K}\,\mathrm{diag}(\lambda_1, \dots, \lambda_K)^{1/2}

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    n_factors : int

    Returns
    -------
    ndarray of shape (n_features, n_factors)
        Largest first; each column's largest entry is positive.
    """
    R = np.asarray(correlation, dtype=np.float64)
    n_features = len(R)
    if not 1 <= n_factors <= n_features:
        raise ParameterError(
            f"Expected n_factors between 1 and the number of features, {n_features}; got {n_factors}. "
            "Take fewer factors for the start and leave the spare ones unset."
        )
    values, vectors = eigh(R, subset_by_index=(n_features - n_factors, n_features - 1))
    loadings = vectors[:, ::-1] * np.sqrt(np.clip(values[::-1], 0.0, None))
    return loadings * dominant_sign(loadings)


def pairwise_covariance(X: ArrayLike, weight: np.ndarray | None = None) -> np.ndarray:
    """Covariances of each pair of columns over the rows that have both, made positive semidefinite.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        NaN for what is missing.
    weight : ndarray of shape (n_samples,), optional
        How often each row counts.

    Returns
    -------
    ndarray of shape (n_features, n_features), in float64
    """
    values = np.asarray(X, dtype=np.float64)
    there = ~np.isnan(values)
    shares = np.ones((len(values), 1)) if weight is None else np.asarray(weight, dtype=np.float64)[:, None]
    mean = (shares * np.where(there, values, 0.0)).sum(0) / np.maximum((shares * there).sum(0), 1e-12)
    centred = np.where(there, values - mean, 0.0)
    if there.all():
        return (shares * centred).T @ centred / shares.sum()
    pairs = (shares * there).T @ there.astype(np.float64)
    return nearest_covariance((shares * centred).T @ centred / np.maximum(pairs, 1e-12))


def pairwise_correlation(X: ArrayLike, weight: np.ndarray | None = None) -> np.ndarray:
    """Correlations of each pair of columns over the rows that have both, made positive semidefinite.

    Parameters
    ----------
    X, weight
        As for `pairwise_covariance`.

    Returns
    -------
    ndarray of shape (n_features, n_features)
    """
    values = np.asarray(X)
    if weight is None and not np.isnan(values).any():
        return np.atleast_2d(np.corrcoef(values, rowvar=False))
    covariance = pairwise_covariance(values, weight)
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    return covariance / deviation / deviation[:, None]


def nearest_covariance(matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix without its negative eigenvalues, with the same diagonal.

    Covariances of pairs that come from different rows need not belong together.
    """
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= 0:
        return matrix
    cut = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(np.maximum(matrix.diagonal(), 0.0) / np.maximum(cut.diagonal(), 1e-300))
    return cut * scale * scale[:, None]


def dominant_sign(L: np.ndarray) -> np.ndarray:
    """Per column -1 or 1, by which its entry of largest size becomes positive."""
    largest = np.take_along_axis(L, np.abs(L).argmax(0)[None, :], 0)[0]
    return np.where(largest < 0, -1.0, 1.0)


def _leading_eigenvalues(columns: np.ndarray, n_leading: int, rng: np.random.RandomState) -> np.ndarray:
    """Largest eigenvalues of the correlation matrix, in falling order."""
    n_features, n_samples = columns.shape
    if np.isnan(columns).any():
        correlation = pairwise_correlation(columns.T)
        subset = (n_features - n_leading, n_features - 1)
        return eigh(correlation, eigvals_only=True, subset_by_index=subset)[::-1]
    shorter = columns if n_features <= n_samples else columns.T
    size = len(shorter)
    if size <= _EXACT_SIZE:
        gram = shorter @ shorter.T / n_samples
        return eigh(gram, eigvals_only=True, subset_by_index=(size - n_leading, size - 1))[::-1]
    # Block power iteration: slightly low at the edge of the noise, alike in the data and in permutations.
    basis = rng.standard_normal((size, min(n_leading + 10, size))).astype(columns.dtype)
    for _ in range(_POWER_ITERATIONS):
        basis, _ = np.linalg.qr(shorter @ (shorter.T @ basis))
    return np.linalg.svd(shorter.T @ basis, compute_uv=False)[:n_leading] ** 2 / n_samples
