r"""Linear factor analysis of a standardised table: the axes of a fit, found in a second.

The model is :math:`x = Lz + e` with :math:`z \sim N(0, C)` and independent noise of variances ψ, the
uniquenesses. Maximum likelihood finds the space of the factors; `rotation.promax` turns it to axes on which
features are simple. Everything here is on numpy arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from sparsevae.principal import pairwise_correlation
from sparsevae.rotation import oblique_rotation, promax, varimax

__all__ = [
    "LinearFactors",
    "analyse_counts",
    "analyse_factors",
    "analyse_sparse_factors",
    "find_parts",
    "find_parts_of_counts",
    "whitened_eigenvectors",
]

_UNIQUENESS = (0.005, 1.0)  # a feature that the factors explain entirely (Heywood) would fix them alone
_EXACT_SIZE = 600  # features up to which eigenvectors are exact; else warm-started power iteration
_SMALL_SIZE = 60  # features up to which power iteration saves nothing
_ITERATIONS = 100
_TOLERANCE = 1e-3
_PART_ITERATIONS = 30
_JITTER = 1e-6
_SPARSE_STARTS = 5  # of the sparsest rotation
_FEW_PART_ITERATIONS = 40  # of the factorisation, where several numbers of parts are compared
_ROUGH_ITERATIONS, _ROUGH_TOLERANCE = 30, 1e-2  # where several numbers of factors are compared
_SPARE = 8  # directions that the power iteration carries beyond those wanted


class LinearFactors(NamedTuple):
    """Factors of a standardised table.

    Attributes
    ----------
    loadings : ndarray of shape (n_features, n_factors)
    correlation : ndarray of shape (n_factors, n_factors)
        Of the factors.
    uniqueness : ndarray of shape (n_features,)
        Noise variances.
    """

    loadings: np.ndarray
    correlation: np.ndarray
    uniqueness: np.ndarray

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self.loadings.shape[1]

    def maps(self) -> np.ndarray:
        """From a standardised row to the posterior mean of its factors: shape (n_features, n_factors)."""
        return (self.loadings / self.uniqueness[:, None]) @ self.posterior_covariance()

    def posterior_covariance(self) -> np.ndarray:
        """Covariance of the factors of a row, given the row: shape (n_factors, n_factors)."""
        information = self.loadings.T @ (self.loadings / self.uniqueness[:, None])
        return np.linalg.inv(np.linalg.inv(self.correlation) + information)

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Log density of each standardised row, without its constant: shape (n_samples,).

        NaN for what is missing: the density is then that of the values that are there.
        """
        if np.isnan(X).any():
            return self._log_likelihood_of_seen(X)
        covariance = self.posterior_covariance()
        scores = (X / self.uniqueness) @ self.loadings
        squares = np.square(X) @ (1.0 / self.uniqueness) - np.einsum(
            "ik,kl,il->i", scores, covariance, scores
        )
        _, prior = np.linalg.slogdet(self.correlation)
        _, posterior = np.linalg.slogdet(covariance)
        return -0.5 * (squares + np.log(self.uniqueness).sum() + prior - posterior)

    def _log_likelihood_of_seen(self, X: np.ndarray) -> np.ndarray:
        """The same with holes: each row has a posterior covariance of its own."""
        seen, filled = (~np.isnan(X)).astype(np.float64), np.nan_to_num(X)
        n_factors = self.n_factors
        scaled = self.loadings / self.uniqueness[:, None]
        products = (scaled[:, :, None] * self.loadings[:, None, :]).reshape(len(scaled), -1)
        precision = np.linalg.inv(self.correlation) + (seen @ products).reshape(-1, n_factors, n_factors)
        scores = filled @ scaled
        solved = np.linalg.solve(precision, scores[:, :, None])[:, :, 0]
        squares = np.square(filled) @ (1.0 / self.uniqueness) - (scores * solved).sum(1)
        _, prior = np.linalg.slogdet(self.correlation)
        _, posterior = np.linalg.slogdet(precision)
        return -0.5 * (squares + seen @ np.log(self.uniqueness) + prior + posterior)


def analyse_factors(X: np.ndarray, n_factors: int) -> LinearFactors:
    r"""Maximum-likelihood factor analysis, turned by varimax and promax.

    .. math:: L = \Psi^{1/2} V (\Lambda - I)^{1/2}, \qquad \psi_j = 1 - \sum_k l_{jk}^2,

    with the leading eigenvectors V and eigenvalues Λ of :math:`\Psi^{-1/2} R \Psi^{-1/2}`, repeated until ψ
    rests.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Columns of mean 0 and variance 1; a constant column is all zeros. NaN for what is missing: the
        correlations are then those of the rows that have both features.
    n_factors : int
    """
    X, correlation = _correlation(X, _EXACT_SIZE)
    uniqueness, basis = np.full(X.shape[1], 0.5), None
    for _ in range(_ITERATIONS):
        values, basis = whitened_eigenvectors(X, uniqueness, n_factors, correlation, basis)
        loadings, uniqueness, change = _next_loadings(values, basis, uniqueness, n_factors)
        if change < _TOLERANCE:
            break
        basis = None if correlation is not None else basis  # exact eigenvectors need no beginning
    return LinearFactors(*promax(varimax(loadings)), uniqueness)


def analyse_sparse_factors(X: np.ndarray, n_factors: int) -> LinearFactors:
    """`analyse_factors`, turned on to the axes of the sparsest loadings.

    Exact where features have exact zeros; on most real tables these axes are others in every sample.
    """
    smooth = analyse_factors(X, n_factors)
    uncorrelated = smooth.loadings @ np.linalg.cholesky(smooth.correlation)
    turned = oblique_rotation(uncorrelated, n_starts=_SPARSE_STARTS, random_state=0)
    return LinearFactors(turned.loadings, turned.factor_correlation, smooth.uniqueness)


def analyse_counts(X: np.ndarray, counts: Iterable[int]) -> Iterator[LinearFactors]:
    """`analyse_factors` for one number of factors after the other, roughly: to compare the numbers.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    counts : iterable of int
        Decreasing: each analysis begins with the space of the one before.
    """
    n_features = X.shape[1]
    X, correlation = _correlation(X, n_features)
    X = X[:0]  # the correlations say it all
    basis = None
    for count in counts:
        uniqueness = np.full(n_features, 0.5)  # those of more factors would keep a pair of features apart
        for _ in range(_ROUGH_ITERATIONS):
            values, basis = whitened_eigenvectors(X, uniqueness, count, correlation, basis)
            loadings, uniqueness, change = _next_loadings(values, basis, uniqueness, count)
            if n_features <= _SMALL_SIZE:
                basis = None
            elif basis.shape[1] == count:  # exact ones; the power iteration wants spare ones
                basis = np.hstack([basis, _directions(n_features, _SPARE)])
            if change < _ROUGH_TOLERANCE:
                break
        yield LinearFactors(*promax(varimax(loadings)), uniqueness)


def _correlation(X: np.ndarray, largest: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The table, and the correlations of its features if these are few enough."""
    holes = bool(np.isnan(X).any())
    if X.shape[1] <= largest:
        return X, pairwise_correlation(X) if holes else X.T @ X / len(X)
    if holes:  # filled with the mean and scaled back to variance 1: correlations shrink
        X = np.nan_to_num(X) / np.sqrt(np.maximum((~np.isnan(X)).mean(0), 1e-12)).astype(X.dtype)
    return X, None


def _next_loadings(
    values: np.ndarray, basis: np.ndarray, uniqueness: np.ndarray, n_factors: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Loadings at given uniquenesses, the uniquenesses that they leave, and by how much these differ."""
    leading = np.sqrt(np.maximum(values[:n_factors] - 1.0, 0.0))
    loadings = basis[:, :n_factors] * leading * np.sqrt(uniqueness)[:, None]
    after = np.clip(1.0 - np.square(loadings).sum(1), *_UNIQUENESS)
    return loadings, after, float(np.abs(after - uniqueness).max())


def whitened_eigenvectors(
    X: np.ndarray,
    uniqueness: np.ndarray,
    n_vectors: int,
    correlation: np.ndarray | None = None,
    basis: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Leading eigenvalues and eigenvectors of :math:`\Psi^{-1/2} R \Psi^{-1/2}`, largest first.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    uniqueness : ndarray of shape (n_features,)
    n_vectors : int
    correlation : ndarray of shape (n_features, n_features), optional
        R, where it is small enough to be kept; else products with X stand for it.
    basis : ndarray of shape (n_features, n_vectors + spare), optional
        Where the power iteration begins; without it eigenvectors of a correlation matrix are exact.
    """
    root = 1.0 / np.sqrt(uniqueness)
    n_features = len(root)
    if correlation is not None:
        white = correlation * root[:, None] * root
        if basis is None:
            first = n_features - n_vectors
            values, vectors = eigh(white, subset_by_index=(first, n_features - 1))
            return values[::-1], vectors[:, ::-1]
        for _ in range(2):
            basis, _ = np.linalg.qr(white @ basis)
        values, turned = np.linalg.eigh(basis.T @ white @ basis)
        return values[::-1], basis @ turned[:, ::-1]
    white = X * root.astype(X.dtype)
    if basis is None:
        basis = _directions(n_features, min(n_vectors + _SPARE, *X.shape)).astype(X.dtype)
    for _ in range(2):
        basis, _ = np.linalg.qr(white.T @ (white @ basis))
    _, singular, turned = np.linalg.svd(white @ basis, full_matrices=False)
    return np.square(singular) / len(X), basis @ turned.T


def _directions(n_features: int, n_vectors: int) -> np.ndarray:
    """Random directions, always the same: shape (n_features, n_vectors)."""
    return np.random.default_rng(0).standard_normal((n_features, n_vectors))


def find_parts(X: np.ndarray, n_factors: int, n_iterations: int = _ITERATIONS) -> LinearFactors:
    r"""Factors of counts: parts that only add up, with the correlations and noise that fit them best.

    Non-negative factorisation gives the directions of the loadings; with these held, a few steps of
    expectation-maximisation give :math:`\Sigma_z` and ψ. It begins at random directions that are the same for
    any rows: those of the rows themselves lead less often to the same parts (docs/research/replication.md).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Standardised columns, whose smallest values stand for a count of zero.
    n_factors : int
    n_iterations : int
        Of the factorisation, at most.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # directions have settled long before
        parts = NMF(n_factors, init="random", random_state=0, max_iter=n_iterations).fit(X - X.min(0))
    L = parts.components_.T.astype(np.float64)
    L = L / np.maximum(np.linalg.norm(L, axis=0), 1e-12)
    moments, squares = np.eye(n_factors), np.square(X).mean(0)
    correlation = X.T @ X / len(X) if X.shape[1] <= min(_EXACT_SIZE, len(X)) else None
    uniqueness = np.full(len(L), 0.7)
    for _ in range(_PART_ITERATIONS):
        factors = LinearFactors(L, moments, uniqueness)
        maps = factors.maps()
        products = X.T @ (X @ maps) / len(X) if correlation is None else correlation @ maps
        moments = factors.posterior_covariance() + maps.T @ products + _JITTER * np.eye(n_factors)
        explained = 2.0 * (L * products).sum(1) - np.einsum("jk,kl,jl->j", L, moments, L)
        uniqueness = np.clip(squares - explained, *_UNIQUENESS)
    scale = np.sqrt(np.diag(moments))
    return LinearFactors(L * scale, moments / np.outer(scale, scale), uniqueness)


def find_parts_of_counts(X: np.ndarray, counts: Iterable[int]) -> Iterator[LinearFactors]:
    """`find_parts` for one number of parts after the other, roughly: to compare the numbers."""
    for count in counts:
        yield find_parts(X, count, _FEW_PART_ITERATIONS)
