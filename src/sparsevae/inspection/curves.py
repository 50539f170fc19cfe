r"""Response curves :math:`m_j(z_k)` in the units of the table, and the data that belong behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparsevae.inspection.codes import Codes
from sparsevae.inspection.outputs import expected_rows
from sparsevae.modules import SparseVAEModule

__all__ = ["Responses", "directions", "response_curves"]

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
    """(n_points, n_features): the data, see `response_curves`."""


def response_curves(
    module: SparseVAEModule,
    features: Mapping[int, Sequence[int] | np.ndarray],
    codes: Codes | None = None,
    rows: np.ndarray | None = None,
) -> dict[int, Responses]:
    """Response curves of features on factors, with data behind them if there are any.

    Parameters
    ----------
    module : SparseVAEModule
        Fitted.
    features : mapping from int to integer array
        For each factor the features whose curves are wanted.
    codes : Codes, optional
        Of the table whose rows the points are.
    rows : integer array, optional
        Positions of these rows.

    Returns
    -------
    dict from int to Responses
        Points of real-valued features are partial residuals, the curve at the sample plus what the fit leaves
        of it, so that other factors do not spread them. Counts are divided by the size of their row, and
        yes/no answers are as they are.
    """
    alone = _Alone(module)
    points_of = None if codes is None or rows is None else _Rows(codes, rows)
    result = {}
    for factor, wanted in features.items():
        columns = np.asarray(wanted, dtype=int)
        at, points = np.empty(0), np.empty((0, len(columns)))
        if points_of is not None:
            z = points_of.z[:, factor]
            at = z.double().numpy()
            points = points_of.points(alone(factor, z))[:, columns].double().numpy()
        grid = np.linspace(min(-_REACH, at.min(initial=0.0)), max(_REACH, at.max(initial=0.0)), _GRID)
        curves = alone(factor, torch.as_tensor(grid, dtype=torch.float32))[:, columns]
        result[factor] = Responses(grid, curves.double().numpy(), at, points)
    return result


def directions(module: SparseVAEModule, effects: np.ndarray) -> np.ndarray:
    """Whether a feature rises with a factor (1), falls (-1), or neither (0): (n_features, n_factors).

    Neither, if the curve, within two standard deviations and with the other factors at their mean, comes out
    at less than half of the way it has gone up and down, as z² does, if it is flat, as that of z1·z2 is, or
    if the average slope over the samples (``effects``) has the other sign.
    """
    result = np.zeros(effects.shape, dtype=int)
    alone, grid = _Alone(module), torch.linspace(-2.0, 2.0, _GRID)
    for k in torch.nonzero(module.active()).ravel().tolist():
        curves = alone(k, grid).double().numpy()
        net, way = curves[-1] - curves[0], np.abs(np.diff(curves, axis=0)).sum(0)
        clear = (np.abs(net) >= 0.5 * way) & (np.sign(net) == np.sign(effects[:, k]))
        result[:, k] = np.where(clear, np.sign(net), 0.0)
    return np.where(module.support().numpy(), result, 0)


class _Alone:
    """Expected rows, in the user's units, when one factor varies and the others are at their mean.

    Features that do not use the factor are decoded once for all.
    """

    @torch.no_grad()
    def __init__(self, module: SparseVAEModule) -> None:
        self.module, self.support = module, module.support()
        self.elsewhere = module.decode(torch.zeros(1, module.n_factors))

    @torch.no_grad()
    def __call__(self, factor: int, values: Tensor) -> Tensor:
        z = torch.zeros(len(values), self.module.n_factors)
        z[:, factor] = values
        users = torch.nonzero(self.support[:, factor]).ravel()
        output = self.elsewhere.expand(len(values), -1).index_copy(1, users, self.module.decode(z, users))
        return expected_rows(self.module, output)


class _Rows:
    """Rows of a table, and what belongs behind the curves of any factor."""

    @torch.no_grad()
    def __init__(self, codes: Codes, rows: np.ndarray) -> None:
        module, self.observation = codes.module, codes.module.observation
        batch, self.z = codes.batch(rows), torch.as_tensor(codes.means(rows))
        raw = self.observation.expected_in_user_units(self.observation.likelihood.response(batch.x))
        expected = self.observation.likelihood.expectation(
            module.shifted(batch, module.decode(self.z)),
            module.nuisance.values(),
            size=batch.size,
            total=batch.total,
        )
        if batch.observed is not None:
            raw = torch.where(batch.observed, raw, torch.nan)
        self.left_over = raw - self.observation.expected_in_user_units(expected)
        words = None if batch.total is None else batch.total / self.observation.mean_words
        for columns, relative in (
            (self.observation.size_columns, batch.size),
            (self.observation.total_columns, words),
        ):
            if relative is not None:
                divided = raw / relative.clamp_min(1e-6).unsqueeze(-1)
                raw = torch.where(torch.as_tensor(columns), divided, raw)
        self.raw = raw

    def points(self, curve: Tensor) -> Tensor:
        """What to draw behind a curve with these values at the rows: sample × feature."""
        return torch.where(torch.as_tensor(self.observation.real_columns), curve + self.left_over, self.raw)
