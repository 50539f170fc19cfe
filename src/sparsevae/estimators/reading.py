"""What a fit says in the user's units: slopes, and the order and sign of the factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.modules import FactorModule
from sparsevae.modules.surgery import permute_factors_

__all__ = ["average_slopes", "order_factors_", "strongest_features"]

_STEP = 0.1  # of a central difference, in standard deviations of a factor: an average slope, not a kink's


def average_slopes(estimator: Any, z: Tensor) -> np.ndarray:
    r"""Signed average slope of each feature's mean on each factor, in the units of the table.

    .. math:: \frac1N \sum_i \frac{m_j(z_i + h e_k) - m_j(z_i - h e_k)}{2h}

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted.
    z : Tensor of shape (n_samples, n_factors)
        Where the slopes are taken.

    Returns
    -------
    ndarray of shape (n_features, n_factors)
    """
    return _slopes(estimator.module_, estimator._expected, z)


def order_factors_(
    estimator: Any, module: FactorModule, z: Tensor, explained: np.ndarray, named: Sequence[int] = ()
) -> np.ndarray:
    """Put factors in order of variance explained, each signed so that its strongest anchor rises with it.

    The strongest anchor is the one with the largest average slope relative to its scale: an anchor that falls
    and rises again, such as z², has a large entry in the mask and no direction. A factor without anchors is
    signed by its strongest feature. Inactive factors come last.

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted.
    module : FactorModule
        Reordered in place.
    z : Tensor of shape (n_samples, n_factors)
        Where the slopes are taken.
    explained : ndarray of shape (n_factors,)
        Variance that each factor explains.
    named : sequence of int
        Factors that the user has named by their position, which keep it.

    Returns
    -------
    ndarray of shape (n_factors,)
        The old position of each factor.
    """
    active = module.active().numpy().astype(bool)
    ranked = np.lexsort((-explained, ~active))
    order = np.arange(len(explained))
    free = ~np.isin(order, named)
    order[free] = ranked[free[ranked]]
    slopes = average_slopes(estimator, z)
    # Outputs are relative to a feature's scale: standard deviations, logarithms or logits.
    strength = np.abs(_slopes(module, module.decode, z))
    used = module.support().numpy() & (slopes != 0)
    anchors = used & (module.support().sum(1) == 1).numpy()[:, None]
    sign = np.ones(len(order), dtype=np.float32)
    for new, k in enumerate(order):
        candidates = anchors[:, k] if anchors[:, k].any() else used[:, k]
        if candidates.any():
            sign[new] = np.sign(slopes[np.where(candidates, strength[:, k], -1.0).argmax(), k])
    permute_factors_(module, torch.as_tensor(order), torch.as_tensor(sign))
    return order


def strongest_features(
    strength: np.ndarray, n: int, factors: Any, features: Any, **values: np.ndarray
) -> pd.DataFrame:
    """The n strongest features of each factor, strongest first; features of strength zero are left out.

    Parameters
    ----------
    strength : ndarray of shape (n_features, n_factors)
    n : int
    factors, features : sequence
        Names.
    **values : ndarray of shape (n_features, n_factors)
        What further columns show.

    Returns
    -------
    DataFrame
        Columns: factor, rank, feature, and those of ``values``.
    """
    rows = [
        (factors[k], rank, features[j], *(value[j, k] for value in values.values()))
        for k in range(len(factors))
        for rank, j in enumerate(np.argsort(-strength[:, k], kind="stable")[:n], start=1)
        if strength[j, k] > 0
    ]
    return pd.DataFrame(rows, columns=["factor", "rank", "feature", *values])


@torch.no_grad()
def _slopes(module: FactorModule, function: Callable[[Tensor], Tensor], z: Tensor) -> np.ndarray:
    """Average central difference of a function of the factors: (n_features, n_factors)."""
    slopes = np.zeros((module.n_features, z.shape[1]))
    for k in torch.nonzero(module.active()).ravel().tolist():
        shift = torch.zeros(z.shape[1])
        shift[k] = _STEP
        difference = function(z + shift) - function(z - shift)
        slopes[:, k] = (difference.mean(0) / (2 * _STEP)).numpy()
    return slopes
