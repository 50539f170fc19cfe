"""What a fit to some rows says of all rows: of the package's estimators, and of a factor analysis."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning

from sparsevae.aliases import Parameters
from sparsevae.annotations.levels import known_cells
from sparsevae.annotations.missing import with_nan
from sparsevae.estimators.base import TableEstimator
from sparsevae.identifiability.jobs import Table, transform_params
from sparsevae.metrics.replication import FactorSet, linear_shares
from sparsevae.summaries import column_moments, dense_table

__all__ = ["dense_values", "factor_set", "standardise", "varimax_set"]

Turn = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def factor_set(
    model: TableEstimator, table: Table, rows: np.ndarray, row_params: Parameters | None = None
) -> FactorSet:
    """Active factors of a fitted estimator, over all rows of a table.

    Parameters
    ----------
    model : estimator
        Fitted; with ``variance_shares_``, ``effects_`` or, for a linear one, ``mask_``.
    table : data frame, ndarray or CSR matrix of shape (n_samples, n_features)
        An answer that the rows of the fit did not have counts as missing.
    rows : integer array
        Those of the fit.
    row_params : mapping, optional
        Arguments of ``fit`` with an entry per row; ``transform`` gets those that it knows.
    """
    params = transform_params(model, row_params or {})
    if hasattr(model, "levels_"):
        seen = known_cells(dense_values(table), model.levels_)
        params["observed"] = seen & np.asarray(params.get("observed", True), dtype=bool)
    active = model.active_factors_
    codes = np.asarray(model.transform(table, **params), dtype=np.float64)[:, active]
    if hasattr(model, "variance_shares_"):
        return FactorSet(codes, model.variance_shares_[:, active])
    slopes = model.effects_ if hasattr(model, "effects_") else model.mask_
    values = table if sparse.issparse(table) else dense_values(table)
    variance = column_moments(values[rows])[1]
    return FactorSet(codes, linear_shares(slopes[:, active], codes[rows], variance))


def varimax_set(
    half: np.ndarray, everything: np.ndarray, n_factors: int, seed: int, *, turn: Turn | None = None
) -> FactorSet:
    """Maximum-likelihood factor analysis with a varimax rotation.

    Parameters
    ----------
    half, everything : ndarray of shape (n_samples, n_features)
        Rows of the fit and all rows, as `standardise` returns them.
    n_factors, seed : int
    turn : callable, optional
        From the loadings to others, and the correlations of their factors: a further, oblique rotation.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = FactorAnalysis(n_factors, rotation="varimax", random_state=seed).fit(half)
    loadings, correlation = model.components_.T, np.eye(n_factors)
    if turn is not None:
        loadings, correlation = turn(loadings)
    weights = loadings / model.noise_variance_[:, None]
    precision = np.linalg.inv(correlation) + loadings.T @ weights
    maps = weights @ np.linalg.inv(precision)
    return FactorSet(everything @ maps, linear_shares(loadings, half @ maps, half.var(0)))


def standardise(half: np.ndarray, everything: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of mean 0 and variance 1 in the half, and all rows in the same units."""
    mean, scale = half.mean(0), np.maximum(half.std(0), 1e-6)
    return (half - mean) / scale, (everything - mean) / scale


def dense_values(table: Table) -> np.ndarray:
    """The numbers of a table in float64, NaN for what is missing."""
    values = with_nan(table)
    if hasattr(values, "iloc"):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(dense_table(values), dtype=np.float64)
