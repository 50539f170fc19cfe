r"""What factors leave over between features, of use where cells are filled in.

A sparse model says in few links what most of the correlations come from; small ones remain, and a regression
on all other features knows them. For tables of real numbers the expectation of a missing cell is

.. math:: \Lambda + \alpha (\mu - \Lambda) + \beta (L - \Lambda)

with the model's expectation μ, the linear regression Λ on the seen cells by the correlations M that the model
implies, and the same regression L by :math:`(1 - a) S + a M`: the table's covariance S, shrunk towards the
model's. For a linear model that says it all, M is S, and the three are one. α, β and a are those that predict
cells best that were hidden for it.

S is of all cells that are seen, by expectation maximisation. Covariances of pairs, each from the rows that
have both, are less exact the more is missing, and the sparser the model, the more hangs on them.

Where many values of a feature are at one end of its range (zeros of counts, the last step of an answer), that
end is taken for a bound, and the expectation stops there: a value within the bounds is never further from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparsevae.annotations.missing import has_missing
from sparsevae.inspection.codes import Codes, fixed_draws
from sparsevae.inspection.imputation import expect_cells, hide_cells
from sparsevae.summaries import dense_table

__all__ = ["Leftover", "fill_cells", "find_leftover"]

_MOST_FEATURES = 300  # whose correlations are kept with the model
_LEAST_ROWS = 100
_ROWS_TO_HIDE, _ROWS_TO_READ = 3000, 20_000
_HIDDEN, _HIDINGS = 0.1, 3  # of the cells, and how often others are hidden: the shares are noisy after once
_SHRINKAGES = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
_LARGEST = 1.5  # of α and β
_STEPS = 5  # of expectation maximisation: with 30 % holes, within 0.0002 of the error at its end
_AT_END = 0.01  # of a feature's values, from which on the end of its range is a bound


class Leftover(NamedTuple):
    """How cells are filled in, beyond the model.

    Attributes
    ----------
    precisions : ndarray of shape (2, n_features, n_features)
        Inverses of the correlations that the model implies, and of the shrunk covariance of the table.
    shares : ndarray of shape (2,)
        α and β.
    bounds : ndarray of shape (2, n_features), optional
        Least and largest value of each feature, in the table's units; infinite where there is none.
    """

    precisions: np.ndarray
    shares: np.ndarray
    bounds: np.ndarray | None = None


def find_leftover(codes: Codes) -> Leftover | None:
    """Learn from the table of a fit; None if it has no holes, other values than real numbers, or few rows.

    Parameters
    ----------
    codes : Codes
    """
    module, X = codes.module, codes.X
    suits = module.observation.real_columns.all() and module.row_groups is None and has_missing(X)
    if not suits or not 2 <= X.shape[1] <= _MOST_FEATURES or codes.n_counted < _LEAST_ROWS:
        return None
    rows = codes.spread_rows(_ROWS_TO_HIDE)
    implied = _implied_correlation(codes, rows)
    best, shares, shrinkage = np.inf, np.zeros(2), 1.0
    for a, cells in _predict_hidden(codes, dense_table(X[rows]), implied).items():
        predicted, truth = cells[:, :2], cells[:, 2]
        if not len(truth):
            return None
        solved, *_ = np.linalg.lstsq(predicted, truth, rcond=None)
        solved = np.clip(solved, 0.0, _LARGEST)
        loss = float(np.square(truth - predicted @ solved).mean())
        if loss < best:
            best, shares, shrinkage = loss, solved, a
    table = dense_table(X[codes.spread_rows(_ROWS_TO_READ)])
    mixed = (1.0 - shrinkage) * _covariance(_standardised(codes, table), implied) + shrinkage * implied
    return Leftover(np.stack([np.linalg.inv(implied), np.linalg.inv(mixed)]), shares, _find_bounds(table))


def fill_cells(codes: Codes, leftover: Leftover | None) -> np.ndarray:
    """Expected value of each missing cell given what is seen of its row, in the table's units.

    Parameters
    ----------
    codes : Codes
    leftover : Leftover, optional
        None: the model's expectation.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Other cells have the model's expectation.
    """
    expected = expect_cells(codes)
    if leftover is None:
        return expected
    z = _standardised(codes, dense_table(codes.X))
    own, more = (_regress(z, precision) for precision in leftover.precisions)
    model, (alpha, beta) = _standardised(codes, expected), leftover.shares
    filled = own + alpha * (model - own) + beta * (more - own)
    scale, location = (
        getattr(codes.module.observation, name).double().numpy() for name in ("scale", "location")
    )
    filled = filled * scale + location
    if leftover.bounds is not None:
        filled = np.clip(filled, *leftover.bounds)
    return np.where(np.isnan(z), filled, expected)


def _predict_hidden(codes: Codes, whole: np.ndarray, implied: np.ndarray) -> dict[float, np.ndarray]:
    """For each shrinkage μ, L and the truth of cells that are hidden here, all less Λ: (n_hidden, 3)."""
    precision = np.linalg.inv(implied)
    found: dict[float, list[np.ndarray]] = {a: [] for a in _SHRINKAGES}
    for draw in range(_HIDINGS):
        seen, hidden = hide_cells(whole, _HIDDEN, np.random.RandomState(draw), codes.X.shape[1])
        truth, z = _standardised(codes, whole)[hidden], _standardised(codes, seen)
        own = _regress(z, precision)[hidden]
        expected = _standardised(codes, expect_cells(Codes(codes.module, seen)))[hidden]
        covariance = _covariance(z, implied)
        for a in _SHRINKAGES:
            more = _regress(z, np.linalg.inv((1.0 - a) * covariance + a * implied))[hidden]
            found[a].append(np.column_stack([expected - own, more - own, truth - own]))
    return {a: np.concatenate(columns) for a, columns in found.items()}


def _standardised(codes: Codes, table: np.ndarray) -> np.ndarray:
    return codes.module.observation.to_model_units(table).double().numpy()


def _regress(z: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Conditional means of the missing cells of standardised rows; zero elsewhere.

    .. math:: z_m = -Q_{mm}^{-1} Q_{ms} z_s
    """
    result = np.zeros_like(z)
    pulls = np.nan_to_num(z) @ precision
    for i, own, spread in _holes(z, precision):
        result[i, own] = -spread @ pulls[i, own]
    return result


def _holes(z: np.ndarray, precision: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    r"""Rows with missing cells m, these cells, and their covariance given the rest, :math:`Q_{mm}^{-1}`."""
    holes = np.isnan(z)
    for i in np.flatnonzero(holes.any(1)):
        own = np.flatnonzero(holes[i])
        yield int(i), own, np.linalg.inv(precision[own[:, None], own])


def _covariance(z: np.ndarray, prior: np.ndarray, n_steps: int = _STEPS) -> np.ndarray:
    r"""Covariance of standardised rows with holes, by expectation maximisation from the prior M.

    .. math:: S \leftarrow \frac{G M + \sum_i (\hat z_i \hat z_i^\top + V_i)}{G + N}

    with the holes of :math:`\hat z_i` filled as by `_regress`, and their covariance V given the rest of the
    row. The prior counts as many rows as there are features, G: S has an inverse however few the N rows are.
    """
    (n_rows, n_features), S = z.shape, prior
    for _ in range(n_steps):
        precision = np.linalg.inv(S)
        filled, spreads = np.nan_to_num(z), np.zeros_like(prior)
        pulls = filled @ precision
        for i, own, spread in _holes(z, precision):
            filled[i, own] = -spread @ pulls[i, own]
            spreads[own[:, None], own] += spread
        S = (n_features * prior + filled.T @ filled + spreads) / (n_features + n_rows)
    return S


def _find_bounds(table: np.ndarray) -> np.ndarray:
    """Ends of the range of each feature that many of its values are at, else infinite: (2, n_features)."""
    ends = np.stack([np.fmin.reduce(table, 0), np.fmax.reduce(table, 0)]).astype(np.float64)
    many = np.maximum(_AT_END * (~np.isnan(table)).sum(0), 2)
    shared = np.stack([(table == end).sum(0) >= many for end in ends])
    return np.where(shared, ends, np.array([[-np.inf], [np.inf]]))


@torch.no_grad()
def _implied_correlation(codes: Codes, rows: np.ndarray) -> np.ndarray:
    """Correlations of rows that the model would draw for the factors of these rows."""
    module, batch = codes.module, codes.batch(rows)
    mean, log_variance = torch.as_tensor(codes.moments(rows)).chunk(2, -1)

    def output(draw: Tensor) -> Tensor:
        return module.shifted(batch, module.decode(module.draw_posterior(batch, (mean, log_variance), draw)))

    outputs = torch.cat([output(draw) for draw in fixed_draws(module.n_noise).float()]).double().numpy()
    covariance = np.cov(outputs.T, bias=True) + np.diag(module.noise_variance.double().numpy())
    deviation = np.sqrt(covariance.diagonal())
    return np.asarray(covariance / deviation / deviation[:, None])
