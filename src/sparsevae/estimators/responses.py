r"""Response curves :math:`m_j(z_k)` in the units of the table, and the data that belong behind them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparsevae.training import Table

__all__ = ["Responses", "directions", "responses", "spread_rows"]

_REACH = 2.5  # standard deviations of a factor
_GRID = 41


class Responses(NamedTuple):
    """Curves of some features on one factor, and points around them."""

    grid: np.ndarray
    """(n_grid,): values of the factor, 2.5 standard deviations to both sides or as far as the rows go."""
    curves: np.ndarray
    """(n_grid, n_features): expected values with all other factors at their mean, zero."""
    at: np.ndarray
    """(n_points,): posterior means of the factor."""
    points: np.ndarray
    """(n_points, n_features): the data, see `responses`."""


def responses(model: Any, factor: int, features: Any, X: Any = None) -> Responses:
    """Response curves of features on a factor.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    factor : int
        Column of the mask.
    features : integer array
        Rows of the mask.
    X : ndarray or CSR matrix of shape (n_samples, n_features), optional
        Checked rows for the points.

    Returns
    -------
    Responses
        Points of real-valued features are partial residuals, the curve at the sample plus what the fit leaves
        of it, so that other factors do not spread them. Counts are divided by the size of their row, and
        yes/no answers are as they are.
    """
    features = np.asarray(features, dtype=int)
    at, points = np.empty(0), np.empty((0, len(features)))
    if X is not None:
        at, points = _points(model, factor, features, X)
    grid = np.linspace(min(-_REACH, at.min(initial=0.0)), max(_REACH, at.max(initial=0.0)), _GRID)
    curves = _alone(model, factor, torch.as_tensor(grid, dtype=torch.float32))[:, features]
    return Responses(grid, curves.double().numpy(), at, points)


def directions(model: Any) -> np.ndarray:
    """Whether a feature rises with a factor (1), falls (-1), or neither (0): (n_features, n_factors).

    Neither, if the curve, within two standard deviations and with the other factors at their mean, comes out
    at less than half of the way it has gone up and down, as z² does, or if it is flat, as that of z1·z2 is.
    """
    result = np.zeros(model.mask_.shape, dtype=int)
    grid = torch.linspace(-2.0, 2.0, _GRID)
    for k in model.active_factors_:
        curves = _alone(model, k, grid).double().numpy()
        net, way = curves[-1] - curves[0], np.abs(np.diff(curves, axis=0)).sum(0)
        result[:, k] = np.where(np.abs(net) >= 0.5 * way, np.sign(net), 0.0)
    return np.where(model.mask_ != 0, result, 0)


def spread_rows(n_rows: int, most: int) -> np.ndarray:
    """Positions of at most so many rows, evenly over a table: the same ones every time."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(int)


@torch.no_grad()
def _points(model: Any, factor: int, features: np.ndarray, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of the factor, and what to draw above them, for rows in the user's units."""
    module = model.module_
    observation = module.observation
    x = Table(X, observation).rows(torch.arange(X.shape[0]))
    z = module.encode(x)[0]
    size, total = observation.size(x), observation.total(x)
    raw = observation.to_user_units(x)
    expected = observation.likelihood.mean(module.decode(z), size=size, total=total)
    partial = _alone(model, factor, z[:, factor]) + raw - observation.to_user_units(expected)
    for columns, relative in (
        (observation.size_columns, size),
        (observation.total_columns, None if total is None else total / observation.mean_words),
    ):
        if relative is not None:
            divided = raw / relative.clamp_min(1e-6).unsqueeze(-1)
            raw = torch.where(torch.as_tensor(columns), divided, raw)
    points = torch.where(torch.as_tensor(observation.real_columns), partial, raw)[:, features]
    return z[:, factor].double().numpy(), points.double().numpy()


def _alone(model: Any, factor: int, values: Tensor) -> Tensor:
    """Expected rows, in the user's units, when one factor varies and the others are at their mean."""
    z = torch.zeros(len(values), model.module_.n_factors)
    z[:, factor] = values
    return model._expected(z)
