r"""What factors leave over between features, of use where cells are filled in.

A sparse model says in few links what most of the correlations come from; small ones remain, and a regression
on all other features knows them. For tables of real numbers the expectation of a missing cell is

.. math:: \Lambda + \alpha (\mu - \Lambda) + \beta (L - \Lambda)

with the model's expectation μ, the linear regression Λ on the seen cells by the correlations M that the model
implies, and the same regression L by :math:`(1 - a) R + a M`: the table's correlations R, shrunk towards the
model's. For a linear model that says it all, M is R, and the three are one. α, β and a are those that predict
cells best that were hidden for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparsevae.annotations.missing import has_missing
from sparsevae.inspection.codes import Codes, fixed_draws
from sparsevae.inspection.imputation import expect_cells, hide_cells
from sparsevae.principal import pairwise_correlation
from sparsevae.summaries import dense_table

__all__ = ["Leftover", "fill_cells", "find_leftover"]

_MOST_FEATURES = 300  # whose correlations are kept with the model
_LEAST_ROWS = 100
_ROWS_TO_HIDE, _ROWS_TO_CORRELATE = 3000, 20_000
_HIDDEN, _HIDINGS = 0.1, 3  # of the cells, and how often others are hidden: the shares are noisy after once
_SHRINKAGES = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
_LARGEST = 1.5  # of α and β


class Leftover(NamedTuple):
    """How cells are filled in, beyond the model.

    Attributes
    ----------
    precisions : ndarray of shape (2, n_features, n_features)
        Inverses of the correlations that the model implies, and of the shrunk ones of the table.
    shares : ndarray of shape (2,)
        α and β.
    """

    precisions: np.ndarray
    shares: np.ndarray


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
    table = _standardised(codes, dense_table(X[codes.spread_rows(_ROWS_TO_CORRELATE)]))
    mixed = (1.0 - shrinkage) * _correlation(table) + shrinkage * implied
    return Leftover(np.stack([np.linalg.inv(implied), np.linalg.inv(mixed)]), shares)


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
    return np.where(np.isnan(z), filled * scale + location, expected)


def _predict_hidden(codes: Codes, whole: np.ndarray, implied: np.ndarray) -> dict[float, np.ndarray]:
    """For each shrinkage μ, L and the truth of cells that are hidden here, all less Λ: (n_hidden, 3)."""
    precision = np.linalg.inv(implied)
    found: dict[float, list[np.ndarray]] = {a: [] for a in _SHRINKAGES}
    for draw in range(_HIDINGS):
        seen, hidden = hide_cells(whole, _HIDDEN, np.random.RandomState(draw), codes.X.shape[1])
        truth, z = _standardised(codes, whole)[hidden], _standardised(codes, seen)
        own = _regress(z, precision)[hidden]
        expected = _standardised(codes, expect_cells(Codes(codes.module, seen)))[hidden]
        correlation = _correlation(z)
        for a in _SHRINKAGES:
            more = _regress(z, np.linalg.inv((1.0 - a) * correlation + a * implied))[hidden]
            found[a].append(np.column_stack([expected - own, more - own, truth - own]))
    return {a: np.concatenate(columns) for a, columns in found.items()}


def _standardised(codes: Codes, table: np.ndarray) -> np.ndarray:
    return codes.module.observation.to_model_units(table).double().numpy()


def _regress(z: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Conditional means of the missing cells of standardised rows; zero elsewhere.

    .. math:: z_m = -Q_{mm}^{-1} Q_{ms} z_s
    """
    result = np.zeros_like(z)
    holes = np.isnan(z)
    pulls = np.where(holes, 0.0, z) @ precision
    for i in np.flatnonzero(holes.any(1)):
        own = np.flatnonzero(holes[i])
        result[i, own] = -np.linalg.solve(precision[np.ix_(own, own)], pulls[i, own])
    return result


def _correlation(z: np.ndarray) -> np.ndarray:
    """Correlations of the table; 0 for features that do not vary."""
    found = np.nan_to_num(pairwise_correlation(z))
    constant = np.nanstd(z, 0) < 1e-6
    found[constant], found[:, constant] = 0.0, 0.0
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


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
