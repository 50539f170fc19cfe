r"""Correlations of the factors by maximum likelihood, given which features depend on which factor.

The spine's axes come from a rotation, which trades correlation of the factors against small loadings: zeros
of the mask are put in afterwards. Here they are given, as in a confirmatory factor analysis,
:math:`R = L \Phi L^\top + \Psi` with :math:`l_{jk} = 0` outside the support, and Φ is what fits best. Moments
of posterior means would be shrunken; expectation-maximisation adds the posterior covariance to them.
"""

from __future__ import annotations

import numpy as np

from sparsevae.factor_analysis import LinearFactors

__all__ = ["confirm_factors", "free_loadings", "is_confirmable", "settle_links"]

_CUTS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3)  # of a feature's strongest link, below which its other links may go

_ITERATIONS = 500
_TOLERANCE = 1e-5
_UNIQUENESS = (0.005, 1.0)
_START = 0.6  # size of the first loadings


def is_confirmable(support: np.ndarray) -> bool:
    """Whether every factor has two features of its own, which identify the correlations of the factors.

    Parameters
    ----------
    support : boolean ndarray of shape (n_features, n_factors)
    """
    anchors = support & (support.sum(1) == 1)[:, None]
    return bool((anchors.sum(0) >= 2).all())


def confirm_factors(correlation: np.ndarray, signs: np.ndarray) -> LinearFactors | None:
    """Loadings, correlations and uniquenesses of factors whose links are given.

    Parameters
    ----------
    correlation : ndarray of shape (n_features, n_features)
        Of the features.
    signs : ndarray of shape (n_features, n_factors)
        Signs of the loadings, to start from; zero where there is no link.

    Returns
    -------
    LinearFactors or None
        None if it has not settled, or the correlations are not positive definite.
    """
    used = signs != 0
    n_factors = used.shape[1]
    L = _START * np.sign(signs) / np.sqrt(np.maximum(used.sum(1), 1))[:, None]
    phi, psi = np.eye(n_factors), np.clip(1.0 - np.square(L).sum(1), *_UNIQUENESS)
    both = used[:, :, None] & used[:, None, :]  # feature × factor × factor
    alone = np.eye(n_factors) * ~used[:, None, :]
    for _ in range(_ITERATIONS):
        scaled = L / psi[:, None]
        covariance = np.linalg.inv(np.linalg.inv(phi) + L.T @ scaled)
        maps = scaled @ covariance
        products = correlation @ maps  # of features and factors
        moments = covariance + maps.T @ products
        L = np.linalg.solve(np.where(both, moments, alone), (products * used)[:, :, None])[:, :, 0]
        psi = np.clip(1.0 - (L * products).sum(1), *_UNIQUENESS)
        scale = np.sqrt(np.diag(moments))
        before, phi = phi, moments / np.outer(scale, scale)
        L = L * scale
        if np.abs(phi - before).max() < _TOLERANCE:
            return LinearFactors(L, phi, psi) if np.linalg.eigvalsh(phi)[0] > 1e-3 else None
    return None


def settle_links(
    correlation: np.ndarray, strength: np.ndarray, n_samples: float, free: LinearFactors
) -> tuple[np.ndarray, LinearFactors] | None:
    """Links that anchors hold, and the factors given these.

    A rotation leaves small loadings of all anchors of one factor on another where the two correlate. They
    may go, together, if what is left fits better by BIC: than with other cuts, and than loadings without
    zeros.

    Parameters
    ----------
    correlation : ndarray of shape (n_features, n_features)
    strength : ndarray of shape (n_features, n_factors)
        Signed sizes of the links; zero for none.
    n_samples : float
    free : LinearFactors
        As many factors, without zeros.

    Returns
    -------
    (support, LinearFactors) or None
        None where no choice of links has two anchors for every factor and fits as well.
    """
    n_features, n_factors = strength.shape
    dense = n_features * n_factors - n_factors * (n_factors - 1) // 2
    best, found = _criterion(correlation, free, dense, n_samples), None
    size, seen = np.abs(strength), set()
    for cut in _CUTS:
        support = (size > 0) & (size >= cut * size.max(1, keepdims=True))
        if not is_confirmable(support) or support.sum() in seen:
            continue
        seen.add(int(support.sum()))
        factors = confirm_factors(correlation, np.where(support, np.sign(strength), 0.0))
        if factors is None:
            continue
        n_free = int(support.sum()) + n_factors * (n_factors - 1) // 2
        value = _criterion(correlation, factors, n_free, n_samples)
        if value > best:
            best, found = value, (support, factors)
    return found


def free_loadings(factors: LinearFactors, support: np.ndarray) -> np.ndarray:
    r"""Loadings without a penalty on the links given, with the axes held: shape (n_features, n_factors).

    .. math:: \min_w (w - l_j)^\top C (w - l_j), \qquad w_k = 0 \text{ outside the support}

    Parameters
    ----------
    factors : LinearFactors
        Without zeros.
    support : boolean ndarray of shape (n_features, n_factors)
    """
    products = factors.loadings @ factors.correlation
    both = support[:, :, None] & support[:, None, :]
    alone = np.eye(support.shape[1]) * ~support[:, None, :]
    gram = np.where(both, factors.correlation, alone)
    return np.linalg.solve(gram, (products * support)[:, :, None])[:, :, 0]


def _criterion(correlation: np.ndarray, factors: LinearFactors, n_free: int, n_samples: float) -> float:
    """Log-likelihood of a correlation matrix less half the logarithm of the rows per free number."""
    L = factors.loadings
    implied = L @ factors.correlation @ L.T + np.diag(factors.uniqueness)
    _, determinant = np.linalg.slogdet(implied)
    fit = determinant + np.trace(np.linalg.solve(implied, correlation))
    return float(-0.5 * n_samples * fit - 0.5 * n_free * np.log(max(n_samples, 2.0)))
