r"""Linear factor analysis of a standardised table: the axes of a fit, found in a second.

The model is :math:`x = Lz + e` with :math:`z \sim N(0, C)` and independent noise of variances ψ, the
uniquenesses. Maximum likelihood finds the space of the factors; `rotation.promax` turns it to axes on which
features are simple. Everything here is on numpy arrays.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from sparsevae.principal import pairwise_correlation
from sparsevae.rotation import promax, varimax

__all__ = ["LinearFactors", "analyse_factors", "find_parts", "whitened_eigenvectors"]

_UNIQUENESS = (0.005, 1.0)  # a feature that the factors explain entirely (Heywood) would fix them alone
_EXACT_SIZE = 600  # features up to which eigenvectors are exact; else warm-started power iteration
_ITERATIONS = 100
_TOLERANCE = 1e-3
_PART_ITERATIONS = 30
_JITTER = 1e-6
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
    n_features = X.shape[1]
    uniqueness, basis = np.full(n_features, 0.5), None
    correlation = None
    if n_features <= _EXACT_SIZE:
        correlation = pairwise_correlation(X) if np.isnan(X).any() else X.T @ X / len(X)
    elif np.isnan(X).any():  # filled with the mean and scaled back to variance 1: correlations shrink
        X = np.nan_to_num(X) / np.sqrt(np.maximum((~np.isnan(X)).mean(0), 1e-12)).astype(X.dtype)
    for _ in range(_ITERATIONS):
        values, basis = whitened_eigenvectors(X, uniqueness, n_factors, correlation, basis)
        leading = np.sqrt(np.maximum(values[:n_factors] - 1.0, 0.0))
        loadings = basis[:, :n_factors] * leading * np.sqrt(uniqueness)[:, None]
        before, uniqueness = uniqueness, np.clip(1.0 - np.square(loadings).sum(1), *_UNIQUENESS)
        if np.abs(uniqueness - before).max() < _TOLERANCE:
            break
    return LinearFactors(*promax(varimax(loadings)), uniqueness)


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
        Where the power iteration begins.
    """
    root = 1.0 / np.sqrt(uniqueness)
    n_features = len(root)
    if correlation is not None:
        first = n_features - n_vectors
        values, vectors = eigh(correlation * root[:, None] * root, subset_by_index=(first, n_features - 1))
        return values[::-1], vectors[:, ::-1]
    white = X * root.astype(X.dtype)
    if basis is None:
        size = min(n_vectors + _SPARE, *X.shape)
        basis = np.random.default_rng(0).standard_normal((n_features, size)).astype(X.dtype)
    for _ in range(2):
        basis, _ = np.linalg.qr(white.T @ (white @ basis))
    _, singular, turned = np.linalg.svd(white @ basis, full_matrices=False)
    return np.square(singular) / len(X), basis @ turned.T


def find_parts(X: np.ndarray, n_factors: int) -> LinearFactors:
    r"""Factors of counts: parts that only add up, with the correlations and noise that fit them best.

    Non-negative factorisation gives the directions of the loadings; with these held, a few steps of
    expectation-maximisation give :math:`\Sigma_z` and ψ. On counts such axes come back in other rows more
    often than those of a rotation (docs/notes/replication.md).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Standardised columns, whose smallest values stand for a count of zero.
    n_factors : int
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # directions have settled long before
        parts = NMF(n_factors, init="nndsvda", random_state=0, max_iter=_ITERATIONS).fit(X - X.min(0))
    L = parts.components_.T.astype(np.float64)
    L = L / np.maximum(np.linalg.norm(L, axis=0), 1e-12)
    moments, squares = np.eye(n_factors), np.square(X).mean(0)
    uniqueness = np.full(len(L), 0.7)
    for _ in range(_PART_ITERATIONS):
        factors = LinearFactors(L, moments, uniqueness)
        codes = X @ factors.maps()
        products = X.T @ codes / len(X)
        moments = factors.posterior_covariance() + codes.T @ codes / len(X) + _JITTER * np.eye(n_factors)
        explained = 2.0 * (L * products).sum(1) - np.einsum("jk,kl,jl->j", L, moments, L)
        uniqueness = np.clip(squares - explained, *_UNIQUENESS)
    scale = np.sqrt(np.diag(moments))
    return LinearFactors(L * scale, moments / np.outer(scale, scale), uniqueness)
