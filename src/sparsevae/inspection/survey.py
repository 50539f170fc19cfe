"""Tables of factor analysis: loadings with communalities, reliability, and residual correlations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sparsevae.principal import pairwise_covariance

__all__ = ["complexity", "correlation_of", "cronbach_alpha", "omega", "residual_size", "survey_rows"]


def survey_rows(
    loadings: pd.DataFrame, communalities: np.ndarray, order: np.ndarray, cut: float
) -> pd.DataFrame:
    """Loadings beside communality, uniqueness and complexity, with sums of squares below.

    Parameters
    ----------
    loadings : DataFrame of shape (n_features, n_factors)
        Standardised.
    communalities : ndarray of shape (n_features,)
    order : ndarray of int
        The order of the features.
    cut : float
        Loadings of a smaller size are left empty.
    """
    values = loadings.to_numpy()
    table = loadings.where(np.abs(loadings) >= cut) if cut > 0 else loadings.copy()
    table["communality"] = communalities
    table["uniqueness"] = 1.0 - communalities
    table["complexity"] = complexity(values)
    table = table.iloc[order]
    sums = np.square(values).sum(0)
    empty = [np.nan] * 3
    table.loc["sum of squares"] = [*sums, *empty]
    table.loc["proportion of variance"] = [*(sums / len(values)), *empty]
    return table


def complexity(loadings: np.ndarray) -> np.ndarray:
    r"""Hofmann's index of how many factors a feature uses: :math:`(\sum_k l_k^2)^2 / \sum_k l_k^4`.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_factors)

    Returns
    -------
    ndarray of shape (n_features,)
        1 for a feature of one factor; NaN for one of none.
    """
    squares = np.square(loadings)
    fourth = np.square(squares).sum(1)
    return np.divide(np.square(squares.sum(1)), fourth, out=np.full(len(squares), np.nan), where=fourth > 0)


def omega(loadings: np.ndarray, correlation: np.ndarray, uniqueness: np.ndarray, k: int) -> float:
    r"""McDonald's ω of the scale of the features given: the part of its variance that factor k explains.

    .. math:: \omega_k = \frac{(\sum_j |l_{jk}|)^2}{s^\top (L \Phi L^\top + U) s},
        \qquad s_j = \mathrm{sign}(l_{jk})

    Parameters
    ----------
    loadings : ndarray of shape (n_items, n_factors)
        Standardised, of the items of the scale.
    correlation : ndarray of shape (n_factors, n_factors)
    uniqueness : ndarray of shape (n_items,)
    k : int
        The factor; items that fall with it are turned round.
    """
    if not len(loadings):
        return float("nan")
    signs = np.where(loadings[:, k] < 0, -1.0, 1.0)
    composite = signs @ loadings
    total = composite @ correlation @ composite + uniqueness.sum()
    return float(np.square(composite[k]) / total) if total > 0 else float("nan")


def cronbach_alpha(items: np.ndarray) -> float:
    r"""Cronbach's α of standardised items, turned to one direction: :math:`p \bar r / (1 + (p - 1) \bar r)`.

    Parameters
    ----------
    items : ndarray of shape (n_samples, n_items)
    """
    n_items = items.shape[1]
    if n_items < 2:
        return float("nan")
    correlation = correlation_of(items)
    mean = (correlation.sum() - n_items) / (n_items * (n_items - 1))
    return float(n_items * mean / (1.0 + (n_items - 1) * mean))


def residual_size(residuals: np.ndarray) -> float:
    r"""SRMR, the root mean square of residual correlations, the zeros on the diagonal included.

    .. math:: \sqrt{\sum_{i \ge j} r_{ij}^2 \Big/ \tfrac{p (p + 1)}{2}}
    """
    lower = residuals[np.tril_indices(len(residuals))]
    return float(np.sqrt(np.square(lower).mean()))


def correlation_of(X: np.ndarray) -> np.ndarray:
    """Correlations of columns; 0 with a column that does not vary, 1 with itself.

    Where values are missing (NaN), those of each pair over the rows that have both.
    """
    if np.isnan(X).any():
        covariance = pairwise_covariance(X)
        scale = np.sqrt(covariance.diagonal())
        varies = scale > 1e-9 * np.abs(X).max(0, initial=0.0, where=~np.isnan(X))
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=varies)
        correlation = covariance * inverse * inverse[:, None]
    else:
        centred = X - X.mean(0)
        scale = np.sqrt(np.square(centred).sum(0))
        centred = centred / np.where(scale > 0, scale, 1.0)
        correlation = centred.T @ centred
    np.fill_diagonal(correlation, 1.0)
    return correlation
