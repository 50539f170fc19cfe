r"""Are two features anchors of one factor? A test on correlations that holds in any unit.

If :math:`x_i = \lambda_i g(z) + e_i` and :math:`x_j = \lambda_j g(z) + e_j` share a factor and its response
curve, then with :math:`v = \lambda_i / \lambda_j` the contrast :math:`x_i - v x_j` is noise alone: it has no
correlation with any other feature, so that rows i and j of the off-diagonal correlation matrix are
proportional. Conversely, a feature with a second factor, or with another curve, leaves something in the
contrast that other features know about. The measure is therefore the squared multiple correlation of the
contrast with the other features, at the v for which it is smallest. The other features enter through a few
linear combinations of them, the *instruments*.

Notes
-----
Theorem 2 of the paper compares covariances, which presumes anchors that load equally. Proportional rows of
the correlation matrix are the scale-free form of that comparison (Bing, Bunea and Wegkamp 2020, arXiv
2010.02288, on "parallel rows"); as a test it is the classical one for one canonical correlation between a
pair and the rest.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.stats import norm

__all__ = [
    "Projection",
    "candidate_pairs",
    "contrast_correlation",
    "degrees_of_freedom",
    "explained_contrasts",
    "instruments",
    "likelihood_ratio",
    "project",
]

_DENSE = 400  # features up to which all eigenvectors are computed at once
_MOST_INSTRUMENTS = 100
_POWER_STEPS = 5
_FAMILY_LEVEL = 0.01  # chance of any false correlation among all pairs
_LEAST_SHARED = 0.6  # of what two anchors of one factor must correlate by, given how well each is predicted
_SMALLEST = 1e-9
_COPIES = 1e-5  # variance of a contrast that is rounding alone
_BLOCK = 64  # features whose products with all others are held at once


def instruments(correlation: np.ndarray, n_samples: int) -> np.ndarray:
    r"""Leading eigenvectors of a correlation matrix: those above the edge of pure noise, and one more.

    The edge is that of Marchenko and Pastur, :math:`(1 + \sqrt{G/N})^2`.

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    n_samples : int
        From which it was computed.

    Returns
    -------
    ndarray of shape (n_features, n_instruments)
        At least two columns, at most n_features - 3.
    """
    n_features = len(correlation)
    most = int(np.clip(n_features - 3, 2, _MOST_INSTRUMENTS))
    values, vectors = eigh(correlation) if n_features <= _DENSE else _leading_space(correlation, most)
    order = np.argsort(-values)
    edge = (1.0 + np.sqrt(n_features / n_samples)) ** 2
    wanted = np.clip((values > edge).sum() + 1, 2, most)
    return vectors[:, order[:wanted]]


def candidate_pairs(
    correlation: np.ndarray, basis: np.ndarray, n_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Pairs that may be anchors of one factor: correlated by as much as their ties to others ask for.

    Two anchors of one factor correlate by :math:`h_i h_j`, the product of their correlations with it, and
    neither can be predicted from other features better than by its :math:`h`. A pair that correlates by much
    less than the product of these multiple correlations is none.

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    basis : array of shape (n_features, n_instruments)
    n_samples : int

    Returns
    -------
    rows, columns : integer arrays of shape (n_pairs,)
        With ``rows < columns``.
    """
    n_features = len(correlation)
    n_pairs = max(1, n_features * (n_features - 1) // 2)
    least = np.tanh(norm.isf(_FAMILY_LEVEL / (2 * n_pairs)) / np.sqrt(max(n_samples - 3, 1)))
    predicted = 1.0 - _residual_variance(correlation, basis)
    predicted = np.clip(predicted - basis.shape[1] / n_samples, 0.0, 1.0)
    root = np.sqrt(_LEAST_SHARED * predicted)
    rows, columns = [], []
    for i in range(n_features - 1):
        strength = np.abs(correlation[i, i + 1 :])
        partners = np.flatnonzero(strength >= np.maximum(least, root[i] * root[i + 1 :]))
        rows.append(np.full(len(partners), i))
        columns.append(partners + i + 1)
    return np.concatenate([*rows, []]).astype(int), np.concatenate([*columns, []]).astype(int)


def contrast_correlation(
    correlation: np.ndarray, basis: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    r"""Squared multiple correlation of the best contrast of each pair with all other features.

    .. math:: \min_v \; R^2\big(x_i - v\,x_j \;\big|\; U_{-ij}^\top x_{-ij}\big), \qquad
        |r_{ij}| \le |v| \le 1 / |r_{ij}|, \; \operatorname{sign} v = \operatorname{sign} r_{ij}

    The bounds are those that loadings of one common factor obey: without them a feature that is tied to
    nothing but j would pass with v = 0.

    Parameters
    ----------
    correlation : array of shape (n_features, n_features)
    basis : array of shape (n_features, n_instruments)
        U; the instruments of a pair are :math:`U^\top x` without the contributions of i and j.
    rows, columns : integer arrays of shape (n_pairs,)
        Rows in rising order.

    Returns
    -------
    ndarray of shape (n_pairs,)
        0 for a pair of anchors with one curve and no noise in the correlations, up to 1.
    """
    return explained_contrasts(project(basis, correlation @ basis), correlation, rows, columns)


class Projection(NamedTuple):
    """All features on the instruments W, with V = cov(W) and A = cov(x, W); a row per feature.

    U holds what each feature contributes to each instrument, to be taken out when it is in a contrast.
    """

    U: np.ndarray
    A: np.ndarray
    UV: np.ndarray
    """U V⁻¹"""
    AV: np.ndarray
    """A V⁻¹"""


def project(
    basis: np.ndarray,
    with_basis: np.ndarray,
    further: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> Projection:
    r"""Covariances of all features with the instruments :math:`U^\top x`, and with further ones if given.

    Parameters
    ----------
    basis : array of shape (n_features, n_instruments)
        U.
    with_basis : array of shape (n_features, n_instruments)
        Covariance of the features with the instruments: the correlation matrix times U, the costly part.
    further : three arrays, optional
        Covariance of the features with further instruments to which the features to be compared contribute
        nothing, of shape (n_features, n_further); of the instruments with these; of these with each other.
    """
    U = basis.astype(np.float64)
    A = with_basis.astype(np.float64)
    V = U.T @ A
    if further is not None:
        with_features, with_instruments, among = further
        U = np.hstack([U, np.zeros_like(with_features, dtype=np.float64)])
        A = np.hstack([A, with_features])
        V = np.block([[V, with_instruments], [with_instruments.T, among]])
    inverse = np.linalg.inv(V)
    return Projection(U, A, U @ inverse, A @ inverse)


def explained_contrasts(
    projection: Projection, correlation: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """`contrast_correlation` for instruments that are already projected on."""
    result = np.empty(len(rows))
    edges = np.searchsorted(rows, np.arange(0, len(correlation) + _BLOCK, _BLOCK))
    for begin, end in pairwise(edges):
        if begin < end:
            i, j = rows[begin:end], columns[begin:end]
            s = correlation[i, j].astype(np.float64)
            result[begin:end] = _least_explained(*_pair_residual_covariance(projection, s, i, j), s)
    return np.clip(result, 0.0, 1.0 - _SMALLEST)


def likelihood_ratio(squared_correlation: np.ndarray, n_samples: int, n_instruments: int) -> np.ndarray:
    r"""Statistic of the hypothesis that the contrast is unrelated to the instruments, with Bartlett's factor.

    .. math:: T = -\left(N - 1 - \tfrac{q + 3}{2}\right) \log(1 - R^2)

    Parameters
    ----------
    squared_correlation : array
    n_samples, n_instruments : int

    Returns
    -------
    ndarray
        About chi-squared with `degrees_of_freedom` under the hypothesis, if the instruments were chosen on
        other samples.
    """
    factor = max(n_samples - 1 - 0.5 * (n_instruments + 3), 1.0)
    return -factor * np.log1p(-np.asarray(squared_correlation))


def degrees_of_freedom(n_instruments: int) -> int:
    """One less than the instruments: the best v takes one."""
    return n_instruments - 1


def _leading_space(correlation: np.ndarray, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues and eigenvectors by subspace iteration: any instruments are valid."""
    start = np.random.default_rng(0).standard_normal((len(correlation), n_vectors + 10))
    basis = start.astype(correlation.dtype)
    for _ in range(_POWER_STEPS):
        basis = np.linalg.qr(correlation @ basis)[0]
    values, rotation = eigh(basis.T @ (correlation @ basis))
    return values, basis @ rotation


def _residual_variance(correlation: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Variance of each feature that all others, through the instruments, leave unexplained."""
    U, A, UV, AV = project(basis, correlation @ basis)
    left = np.maximum(1.0 - (AV * A).sum(1), _SMALLEST)
    return 1.0 / ((1.0 - (AV * U).sum(1)) ** 2 / left + (UV * U).sum(1))


def _pair_residual_covariance(
    projection: Projection, s: np.ndarray, i: np.ndarray, j: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Variance of i, of j, and their covariance, given instruments that leave out both.

    With b = {i, j} the residual covariance given all of W is F = R_b - A_b V⁻¹ A_b'. Taking the contributions
    of b out of W is a change of variables, under which block b of the joint precision becomes (I - J)' F⁻¹ (I
    - J) + U_b V⁻¹ U_b' with J = A_b V⁻¹ U_b'; its inverse is wanted.
    """
    U, A, UV, AV = projection
    first, last = i[0], i[-1] + 1
    mine, own = slice(first, last), i - first

    def products(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``left · right`` of i with i, j with j, i with j; a product of matrices beats gathering."""
        diagonal = (left * right).sum(1)
        return diagonal[i], diagonal[j], (left[mine] @ right.T)[own, j]

    q_ii, q_jj, q_ij = products(AV, A)
    j_ii, j_jj, j_ij = products(AV, U)
    j_ji = (U[mine] @ AV.T)[own, j]
    h_ii, h_jj, h_ij = products(UV, U)
    p_ii, p_jj, p_ij = _inverse(1.0 - q_ii, 1.0 - q_jj, s - q_ij)
    a, b, c, d = 1.0 - j_ii, -j_ij, -j_ji, 1.0 - j_jj  # I - J
    t_ii = a * a * p_ii + 2 * a * c * p_ij + c * c * p_jj + h_ii
    t_jj = b * b * p_ii + 2 * b * d * p_ij + d * d * p_jj + h_jj
    t_ij = a * b * p_ii + (a * d + b * c) * p_ij + c * d * p_jj + h_ij
    return _inverse(t_ii, t_jj, t_ij)


def _least_explained(a: np.ndarray, b: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Smallest share of a contrast's variance that is explained, over the v that loadings may have."""
    m_ii, m_jj, m_ij = 1.0 - a, 1.0 - b, s - c
    sign, lowest = np.where(s < 0, -1.0, 1.0), np.maximum(np.abs(s), 1e-3)

    def explained(v: np.ndarray) -> np.ndarray:
        total = 1.0 - 2.0 * v * s + v * v
        part = m_ii - 2.0 * v * m_ij + v * v * m_jj
        # Two copies of one column have no contrast, and nothing in it to explain.
        return np.divide(part, total, out=np.zeros_like(part), where=total > _COPIES)

    best = np.minimum(explained(sign * lowest), explained(sign / lowest))
    for v in _stationary(m_ii, m_jj, m_ij, s):
        inside = (v * sign >= lowest) & (v * sign <= 1.0 / lowest)
        best = np.where(inside, np.minimum(best, explained(np.where(inside, v, 1.0))), best)
    return best


def _inverse(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inverse of symmetric 2 × 2 matrices [[a, c], [c, b]]."""
    determinant = np.maximum(a * b - c * c, _SMALLEST)
    return b / determinant, a / determinant, -c / determinant


def _stationary(m_ii: np.ndarray, m_jj: np.ndarray, m_ij: np.ndarray, s: np.ndarray) -> list[np.ndarray]:
    """Both v at which the explained share of the contrast has slope zero; infinite where there is none."""
    a, b, c = m_ij - s * m_jj, m_jj - m_ii, s * m_ii - m_ij
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    # Stable: no difference of nearly equal numbers.
    t = -0.5 * (b + np.where(b < 0, -root, root))
    far = np.full_like(t, np.inf)
    first = np.divide(t, a, out=far.copy(), where=np.abs(a) > _SMALLEST)
    second = np.divide(c, t, out=far.copy(), where=np.abs(t) > _SMALLEST)
    return [first, second]
