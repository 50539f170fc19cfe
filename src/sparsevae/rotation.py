r"""Where the mask starts: the sparsest oblique rotation of linear factors, or of the slopes of a network.

Loadings A (n_features × n_factors) of uncorrelated factors may be replaced by :math:`A T^{-\top}` with
correlated factors of unit variance, whose correlation is :math:`T^\top T`, without any change to the model;
among these the sparsest is the one to start from. `rotate_slopes` asks the same of a non-linear model, where
every sample has loadings of its own: the slopes of the features at that sample. Everything here is on numpy
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sparsevae.principal import RandomState, dominant_sign

__all__ = ["Rotation", "SlopeRotation", "oblique_rotation", "promax", "rotate_slopes", "varimax"]


class Rotation(NamedTuple):
    """Rotated loadings (n_features, n_factors), correlation of the factors (n_factors, n_factors), loss."""

    loadings: np.ndarray
    factor_correlation: np.ndarray
    loss: float


class SlopeRotation(NamedTuple):
    """T (n_factors, n_factors), root mean square slopes on the new factors (n_features, n_factors), loss."""

    basis: np.ndarray
    loadings: np.ndarray
    loss: float


def varimax(loadings: ArrayLike) -> np.ndarray:
    """Loadings in the orthogonal rotation whose squares vary most within columns (Kaiser 1958)."""
    A = np.asarray(loadings, dtype=np.float64)
    T, gain = np.eye(A.shape[1]), 0.0
    for _ in range(_MAX_ITERATIONS):
        L = A @ T
        left, values, right = np.linalg.svd(A.T @ (L**3 - L * np.square(L).mean(0)))
        T, before, gain = left @ right, gain, values.sum()
        if gain <= before * (1.0 + _VARIMAX_TOLERANCE):
            break
    return A @ T


def promax(loadings: ArrayLike, power: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Turn orthogonal axes to the nearest oblique ones that fit the loadings' powers (Hendrickson and White).

    One step of least squares and not the minimum of a criterion: on real tables the axes of another sample
    are closer to these than to those of sparser rotations (docs/research/replication.md).

    Parameters
    ----------
    loadings : array of shape (n_features, n_factors)
        In the varimax rotation.
    power : float

    Returns
    -------
    loadings : ndarray of shape (n_features, n_factors)
    factor_correlation : ndarray of shape (n_factors, n_factors)
    """
    A = np.asarray(loadings, dtype=np.float64)
    U = np.linalg.lstsq(A, np.sign(A) * np.abs(A) ** power, rcond=None)[0]
    if np.linalg.matrix_rank(U) < len(U):  # factors without loadings: there is nothing to turn
        return A, np.eye(A.shape[1])
    U = U * np.sqrt(np.diag(np.linalg.inv(U.T @ U)))
    inverse = np.linalg.inv(U)
    return A @ U, inverse @ inverse.T


def oblique_rotation(
    loadings: ArrayLike,
    *,
    p: float = 0.5,
    epsilon: float = 1e-3,
    n_starts: int = 20,
    random_state: RandomState = None,
) -> Rotation:
    r"""The sparsest oblique rotation of given loadings.

    .. math:: \min_T \sum_{j,k} (l_{jk}^2 + \epsilon)^{p/2}, \quad
        L = A T^{-\top}, \quad \mathrm{diag}(T^\top T) = 1

    Parameters
    ----------
    loadings : array of shape (n_features, n_factors)
        Loadings A of uncorrelated factors.
    p : float
        Below 1 the loss rewards exact sparsity; smaller is sharper, and has more local minima.
    epsilon : float
        Smooths the loss at zero. The larger, the fewer local minima, and the smaller the correlations that
        are found between factors; below 0.01 it is approached from there, with the better half of the starts
        at each tenfold step.
    n_starts : int
        The unrotated axes and ``n_starts - 1`` random orthogonal ones.
    random_state : int, RandomState or None

    Returns
    -------
    Rotation
        ``(loadings, factor_correlation, loss)`` of the best start. Factors are in the order of their sum of
        squared loadings, each with its largest loading positive.

    Notes
    -----
    Gradient projection (Jennrich 2002, "A simple general method for oblique rotation"), all starts at once.
    """
    starts = _rotate(loadings, p, epsilon, n_starts, random_state)
    return min(starts, key=lambda rotation: rotation.loss)


def rotate_slopes(
    moments: ArrayLike,
    *,
    p: float = 0.5,
    epsilon: float = 1e-2,
    n_starts: int = 20,
    random_state: RandomState = None,
) -> SlopeRotation:
    r"""The oblique change of factors under which features have the sparsest slopes.

    A feature that does not depend on a factor has slope zero on it at every sample. With
    :math:`M_j = \frac1N\sum_i \nabla f_j(z_i) \nabla f_j(z_i)^\top` and new factors :math:`T^\top z`,

    .. math:: \min_T \sum_{j,k} (l_{jk}^2 + \epsilon)^{p/2}, \quad
        l_{jk}^2 = (T^{-1} M_j T^{-\top})_{kk}, \quad \mathrm{diag}(T^\top T) = 1.

    For a linear model :math:`M_j = a_j a_j^\top`, and this is `oblique_rotation`.

    Parameters
    ----------
    moments : array of shape (n_features, n_factors, n_factors)
        :math:`M_j`, of a model whose factors are uncorrelated with unit variance.
    p, epsilon, n_starts, random_state
        As in `oblique_rotation`.

    Returns
    -------
    SlopeRotation
        ``(basis, loadings, loss)`` of the best start: T, :math:`l_{jk}`, and the minimum.
    """
    M = np.asarray(moments, dtype=np.float64)
    T, loss = _descend(_of_moments(M, p), M.shape, epsilon, n_starts, random_state)
    best, inverse = T[np.argmin(loss)], np.linalg.inv(T[np.argmin(loss)])
    squares = np.einsum("kl,jlm,km->jk", inverse, M, inverse, optimize=True)
    return SlopeRotation(best, np.sqrt(np.clip(squares, 0.0, None)), float(loss.min()))


_MAX_ITERATIONS = 500
_FIRST_ITERATIONS = 40  # of all starts; the best quarter goes on,
_FEWEST_STARTS = 5  # but not fewer than this
_MAX_HALVINGS = 30
_VARIMAX_TOLERANCE = 1e-8
_TOLERANCE = 1e-5
_SMOOTH = 0.01


# Of bases T^{-1} (start × factor × factor) and a smoothing level: the loss of each, its derivative in T^{-1}.
_Objective = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def _rotate(
    loadings: ArrayLike, p: float, epsilon: float, n_starts: int, random_state: RandomState
) -> list[Rotation]:
    A = np.asarray(loadings, dtype=np.float64)
    T, loss = _descend(_of_loadings(A, p), A.shape, epsilon, n_starts, random_state)
    rotated = A @ _transposed(np.linalg.inv(T))
    return [_canonical(L, t.T @ t, value) for L, t, value in zip(rotated, T, loss, strict=True)]


def _of_loadings(A: np.ndarray, p: float) -> _Objective:
    r"""The loss of linear loadings, :math:`L = A T^{-\top}`."""

    def evaluate(inverse: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
        L = A @ _transposed(inverse)  # start × feature × factor
        loss, weight = _sparsity_loss(np.square(L), p, epsilon)
        return loss, _transposed(weight * L) @ A

    return evaluate


def _of_moments(M: np.ndarray, p: float) -> _Objective:
    r"""The loss of slopes with second moments M, :math:`l_{jk}^2 = (T^{-1} M_j T^{-\top})_{kk}`."""
    n_features, n_factors, _ = M.shape
    beside = np.ascontiguousarray(M.transpose(1, 0, 2).reshape(n_factors, -1))  # factor × (feature · factor)

    def evaluate(inverse: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
        rows = inverse.reshape(-1, n_factors)  # one product for all rows of all bases
        products = (rows @ beside).reshape(-1, n_features, n_factors)
        squares = np.matmul(products, rows[:, :, None]).reshape(*inverse.shape[:2], n_features)
        loss, weight = _sparsity_loss(squares, p, epsilon)
        slope = np.matmul(weight.reshape(-1, 1, n_features), products)
        return loss, slope.reshape(inverse.shape)

    return evaluate


def _descend(
    objective: _Objective, shape: tuple[int, ...], epsilon: float, n_starts: int, random_state: RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Bases T of the starts that lasted to the sharpest loss, and their losses; ``shape`` is the data's."""
    rng, n_factors, size = check_random_state(random_state), shape[-1], math.prod(shape)
    T = np.empty((n_starts, n_factors, n_factors))
    T[0] = np.eye(n_factors)
    T[1:] = np.linalg.qr(rng.standard_normal((n_starts - 1, n_factors, n_factors)))[0]
    levels = _smoothing_levels(epsilon)
    if len(levels) == 1:  # no smoother loss on which starts would be given up
        T = _gradient_projection(objective, T, epsilon, _TOLERANCE * size, _FIRST_ITERATIONS)
        T = _best(objective, T, epsilon, max(_FEWEST_STARTS, len(T) // 4))
    for level in levels[:-1]:
        T = _gradient_projection(objective, T, level, 10.0 * _TOLERANCE * size)
        T = _best(objective, T, level, (len(T) + 1) // 2)
    T = _gradient_projection(objective, T, epsilon, _TOLERANCE * size)
    loss, _ = objective(np.linalg.inv(T), epsilon)
    return T, loss


def _best(objective: _Objective, T: np.ndarray, level: float, n_kept: int) -> np.ndarray:
    """The starts of the lowest losses."""
    loss, _ = objective(np.linalg.inv(T), level)
    return T[np.argsort(loss, kind="stable")[:n_kept]]


def _smoothing_levels(epsilon: float) -> list[float]:
    """From a smooth loss down to the one asked for: a sharp loss at once has too many local minima."""
    levels = [epsilon]
    while levels[-1] * 10.0 < _SMOOTH:
        levels.append(levels[-1] * 10.0)
    return levels if epsilon >= _SMOOTH else [_SMOOTH, *levels[::-1]]


def _gradient_projection(
    objective: _Objective,
    T: np.ndarray,
    epsilon: float,
    tolerance: float,
    max_iterations: int = _MAX_ITERATIONS,
) -> np.ndarray:
    """Descend from every start T (start × factor × factor) at once; those that have arrived drop out."""
    T = T.copy()
    step = np.ones(len(T))
    running = np.arange(len(T))
    inverse = np.linalg.inv(T)
    loss, slope = objective(inverse, epsilon)
    for _ in range(max_iterations):
        # dQ/dT, then its part along the manifold of unit columns.
        gradient = -_transposed(inverse) @ slope @ _transposed(inverse)
        gradient -= T[running] * (T[running] * gradient).sum(1, keepdims=True)
        norm = np.sqrt(np.square(gradient).sum((1, 2)))
        going = np.flatnonzero(norm > tolerance)
        if going.size == 0:
            break
        running, inverse, loss, slope = (v[going] for v in (running, inverse, loss, slope))
        gradient, norm = gradient[going], norm[going]

        # Armijo's rule for each start on its own: those that pass keep their step, the others halve theirs.
        step[running] *= 2.0
        open_ = np.arange(len(running))
        for _ in range(_MAX_HALVINGS):
            chosen = running[open_]
            trial = T[chosen] - step[chosen, None, None] * gradient[open_]
            trial /= np.linalg.norm(trial, axis=1, keepdims=True)
            trial_inverse = np.linalg.inv(trial)
            trial_loss, trial_slope = objective(trial_inverse, epsilon)
            passed = trial_loss < loss[open_] - 0.5 * np.square(norm[open_]) * step[chosen]
            done = open_[passed]
            T[running[done]], inverse[done] = trial[passed], trial_inverse[passed]
            loss[done], slope[done] = trial_loss[passed], trial_slope[passed]
            open_ = open_[~passed]
            if open_.size == 0:
                break
            step[running[open_]] /= 2.0
        if open_.size:  # no step of any size goes down: as far as the arithmetic can tell, arrived
            going = np.setdiff1d(np.arange(len(running)), open_)
            running, inverse, loss, slope = (v[going] for v in (running, inverse, loss, slope))
    return T


def _sparsity_loss(squares: np.ndarray, p: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each start from its squared loadings, and what times a loading is the derivative in it."""
    smooth = np.maximum(squares, 0.0)  # as sums of products they may round to less
    smooth += epsilon
    # The power is most of the work, and two square roots are ten times quicker.
    power = np.sqrt(np.sqrt(smooth)) if p == 0.5 else smooth ** (p / 2.0)
    return power.sum((1, 2)), p * power / smooth


def _canonical(L: np.ndarray, correlation: np.ndarray, loss: float) -> Rotation:
    order = np.argsort(-np.square(L).sum(0), kind="stable")
    sign = dominant_sign(L[:, order])
    return Rotation(L[:, order] * sign, correlation[np.ix_(order, order)] * np.outer(sign, sign), float(loss))


def _transposed(stack: np.ndarray) -> np.ndarray:
    return np.swapaxes(stack, -1, -2)
