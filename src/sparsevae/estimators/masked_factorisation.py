"""Non-negative matrix factorisation where entries are missing or rows have weights."""

from __future__ import annotations

import numpy as np

__all__ = ["factorise_masked", "first_components", "solve_codes"]

_SMALLEST = 1e-12
_FLAT = 1e-2  # of the mean of a component: what its zeros start at, so that they may grow


def factorise_masked(
    X: np.ndarray,
    weight: np.ndarray,
    components: np.ndarray,
    *,
    alpha: float,
    l1_ratio: float,
    max_iter: int,
    tolerance: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    r"""Factorise a table by coordinate descent on what is observed of it.

    .. math:: \min_{Z, H \ge 0} \sum_i w_i \left(\tfrac12 \sum_{j \text{ observed}} (x_{ij} - z_i^\top h_j)^2
        + \tfrac{\alpha}{2}\|z_i\|^2\right) + \tfrac{\alpha}{2}\|H\|_F^2

    (absolute values in place of squares for ``l1_ratio`` of the penalty): a row of weight two is a row that
    is there twice.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN for what is missing.
    weight : ndarray of shape (n_samples,)
    components : ndarray of shape (n_factors, n_features)
        Where to begin.
    alpha, l1_ratio : float
    max_iter : int
        Sweeps.
    tolerance : float
        Fall of the objective in ten sweeps, relative to that of zero codes, below which to stop.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_factors)
    components : ndarray of shape (n_factors, n_features)
    n_iter : int
    objective : float
    """
    there = ~np.isnan(X)
    filled = np.where(there, X, 0.0)
    H = components.copy()
    Z = solve_codes(X, H, alpha=alpha, l1_ratio=l1_ratio, max_iter=10)
    enough = tolerance * 0.5 * float((weight * np.square(filled).sum(1)).sum())
    previous, objective, n_iter = np.inf, np.inf, 0
    shares = there * weight[:, None]
    for n_iter in range(1, max_iter + 1):
        residual = np.where(there, filled - Z @ H, 0.0)
        _sweep(residual, there, Z, H, alpha, l1_ratio)
        _sweep(residual.T, shares.T, H.T, Z.T, alpha, l1_ratio)
        if n_iter % 10 == 0:
            objective = _objective(residual, weight, Z, H, alpha, l1_ratio)
            if previous - objective <= enough:
                break
            previous = objective
    return Z, H, n_iter, objective


def solve_codes(
    X: np.ndarray,
    components: np.ndarray,
    *,
    alpha: float,
    l1_ratio: float,
    max_iter: int,
    tolerance: float = 0.0,
) -> np.ndarray:
    """Codes of each row by itself, given the components: (n_samples, n_factors).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN for what is missing.
    components : ndarray of shape (n_factors, n_features)
    alpha, l1_ratio : float
    max_iter : int
    tolerance : float
        Largest change of a code in a sweep, relative to the largest code, at which to stop.
    """
    there = ~np.isnan(X)
    Z = np.zeros((len(X), len(components)))
    residual = np.where(there, X, 0.0).astype(np.float64)
    for _ in range(max_iter):
        before = Z.copy()
        _sweep(residual, there, Z, components, alpha, l1_ratio)
        if np.abs(Z - before).max(initial=0.0) <= tolerance * max(np.abs(Z).max(initial=0.0), _SMALLEST):
            break
    return Z


def first_components(X: np.ndarray, weight: np.ndarray, n_factors: int) -> np.ndarray:
    """Where components begin: positive parts of the principal directions, holes at the feature's mean.

    Weighted second moments are all that is looked at: rows that are there twice and rows of weight two give
    the same numbers.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,)
    n_factors : int

    Returns
    -------
    ndarray of shape (n_factors, n_features)
    """
    there = ~np.isnan(X)
    count = (there * weight[:, None]).sum(0)
    mean = (np.where(there, X, 0.0) * weight[:, None]).sum(0) / np.maximum(count, _SMALLEST)
    filled = np.where(there, X, mean)
    moments = (filled * weight[:, None]).T @ filled / weight.sum()
    values, vectors = np.linalg.eigh(moments)
    first = np.zeros((n_factors, X.shape[1]))
    for k in range(n_factors):
        if k < len(values):
            direction = vectors[:, -1 - k] * np.sqrt(max(values[-1 - k], 0.0))
            up, down = np.maximum(direction, 0.0), np.maximum(-direction, 0.0)
            first[k] = up if (up**2).sum() >= (down**2).sum() else down
        first[k] = np.maximum(
            first[k], _FLAT * max(first[k].mean(), _FLAT * np.sqrt(moments.diagonal().mean()))
        )
    return first


def _sweep(
    residual: np.ndarray, shares: np.ndarray, Z: np.ndarray, H: np.ndarray, alpha: float, l1_ratio: float
) -> None:
    """One pass over the columns of Z, in place; the residual follows."""
    there = shares > 0
    for k in range(Z.shape[1]):
        weighted = shares * H[k]
        slope = (weighted * residual).sum(1) - alpha * l1_ratio
        curvature = (weighted * H[k]).sum(1)
        denominator = np.maximum(curvature + alpha * (1.0 - l1_ratio), _SMALLEST)
        updated = np.maximum((slope + curvature * Z[:, k]) / denominator, 0.0)
        residual -= np.where(there, np.outer(updated - Z[:, k], H[k]), 0.0)
        Z[:, k] = updated


def _objective(
    residual: np.ndarray, weight: np.ndarray, Z: np.ndarray, H: np.ndarray, alpha: float, l1_ratio: float
) -> float:
    def penalty(rows: np.ndarray) -> np.ndarray:
        return alpha * (l1_ratio * rows.sum(1) + 0.5 * (1.0 - l1_ratio) * np.square(rows).sum(1))

    fit = 0.5 * np.square(residual).sum(1) + penalty(Z)
    return float((weight * fit).sum() + penalty(H).sum())
