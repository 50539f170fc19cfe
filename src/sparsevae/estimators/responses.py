r"""Response curves :math:`m_j(z_k)` in the units of the table, and the data that belong behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparsevae.estimators.posterior import posterior
from sparsevae.training import Table

__all__ = ["Responses", "directions", "responses", "responses_of_factors", "spread_rows"]

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
    return responses_of_factors(model, {factor: features}, X)[factor]


def responses_of_factors(model: Any, features: Mapping[int, Any], X: Any = None) -> dict[int, Responses]:
    """Response curves on several factors: as `responses` of each, with the rows encoded and decoded once.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    features : mapping from int to integer array
        For each factor the features whose curves are wanted.
    X : ndarray or CSR matrix of shape (n_samples, n_features), optional
        Checked rows for the points.
    """
    alone = _Alone(model)
    rows = None if X is None else _Rows(model, X)
    result = {}
    for factor, wanted in features.items():
        columns = np.asarray(wanted, dtype=int)
        at, points = np.empty(0), np.empty((0, len(columns)))
        if rows is not None:
            at = rows.z[:, factor].double().numpy()
            points = rows.points(alone(factor, rows.z[:, factor]))[:, columns].double().numpy()
        grid = np.linspace(min(-_REACH, at.min(initial=0.0)), max(_REACH, at.max(initial=0.0)), _GRID)
        curves = alone(factor, torch.as_tensor(grid, dtype=torch.float32))[:, columns]
        result[factor] = Responses(grid, curves.double().numpy(), at, points)
    return result


def directions(model: Any) -> np.ndarray:
    """Whether a feature rises with a factor (1), falls (-1), or neither (0): (n_features, n_factors).

    Neither, if the curve, within two standard deviations and with the other factors at their mean, comes out
    at less than half of the way it has gone up and down, as z² does, if it is flat, as that of z1·z2 is, or
    if the average slope over the samples has the other sign.
    """
    result = np.zeros(model.mask_.shape, dtype=int)
    alone, grid = _Alone(model), torch.linspace(-2.0, 2.0, _GRID)
    for k in model.active_factors_:
        curves = alone(k, grid).double().numpy()
        net, way = curves[-1] - curves[0], np.abs(np.diff(curves, axis=0)).sum(0)
        clear = (np.abs(net) >= 0.5 * way) & (np.sign(net) == np.sign(model.effects_[:, k]))
        result[:, k] = np.where(clear, np.sign(net), 0.0)
    return np.where(model.mask_ != 0, result, 0)


def spread_rows(n_rows: int, most: int) -> np.ndarray:
    """Positions of at most so many rows, evenly over a table: the same ones every time."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(int)


class _Alone:
    """Expected rows, in the user's units, when one factor varies and the others are at their mean.

    Features that do not use the factor are decoded once for all.
    """

    @torch.no_grad()
    def __init__(self, model: Any) -> None:
        self.model = model
        self.support = model.module_.support()
        self.elsewhere = model.module_.decode(torch.zeros(1, model.module_.n_factors))

    @torch.no_grad()
    def __call__(self, factor: int, values: Tensor) -> Tensor:
        module = self.model.module_
        z = torch.zeros(len(values), module.n_factors)
        z[:, factor] = values
        users = torch.nonzero(self.support[:, factor]).ravel()
        output = self.elsewhere.expand(len(values), -1).index_copy(1, users, module.decode(z, users))
        return self.model._expected_of(output)


class _Rows:
    """Rows of a table, and what belongs behind the curves of any factor."""

    @torch.no_grad()
    def __init__(self, model: Any, X: Any) -> None:
        module, self.observation = model.module_, model.module_.observation
        x = Table(X, self.observation).rows(torch.arange(X.shape[0]))
        self.z = posterior(module, x)[0]
        size, total = self.observation.size(x), self.observation.total(x)
        raw = self.observation.to_user_units(x)
        expected = self.observation.likelihood.mean(module.decode(self.z), size=size, total=total)
        self.left_over = raw - self.observation.to_user_units(expected)
        for columns, relative in (
            (self.observation.size_columns, size),
            (self.observation.total_columns, None if total is None else total / self.observation.mean_words),
        ):
            if relative is not None:
                divided = raw / relative.clamp_min(1e-6).unsqueeze(-1)
                raw = torch.where(torch.as_tensor(columns), divided, raw)
        self.raw = raw

    def points(self, curve: Tensor) -> Tensor:
        """What to draw behind a curve with these values at the rows: sample × feature."""
        return torch.where(torch.as_tensor(self.observation.real_columns), curve + self.left_over, self.raw)
