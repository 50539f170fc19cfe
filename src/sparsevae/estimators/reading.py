"""What a fit says in the user's units: slopes, variance explained, and the order and sign of the factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsevae.modules import FactorModule
from sparsevae.modules.surgery import permute_factors_

__all__ = ["average_slopes", "order_factors_", "variance_explained"]

_ANCHORS_FIRST = 1e6  # more than any entry of a mask
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
    slopes = np.zeros((estimator.module_.n_features, z.shape[1]))
    for k in torch.nonzero(estimator.module_.active()).ravel().tolist():
        shift = torch.zeros(z.shape[1])
        shift[k] = _STEP
        difference = estimator._expected(z + shift) - estimator._expected(z - shift)
        slopes[:, k] = (difference.mean(0) / (2 * _STEP)).numpy()
    return slopes


def variance_explained(estimator: Any, z: Tensor) -> np.ndarray:
    """Share of the data's variance that the fitted means lose when a factor is held at zero.

    The mean over features of ``E[(m_j(z) - m_j(z with z_k = 0))²] / Var(x_j)``, with the variance of the
    feature as the model sees it: fitted variance plus noise.
    """
    module = estimator.module_
    explained = np.zeros(z.shape[1])
    with torch.no_grad():
        output = module.decode(z)
        variance = output.var(0) + (module.noise_variance if module.real.any() else 1.0)
        for k in torch.nonzero(module.active()).ravel().tolist():
            without = z.clone()
            without[:, k] = 0.0
            lost = (output - module.decode(without)).square().mean(0)
            explained[k] = float((lost / variance).mean())
    return explained


def order_factors_(estimator: Any, module: FactorModule, z: Tensor, named: Sequence[int] = ()) -> np.ndarray:
    """Put factors in order of variance explained, each signed so that its strongest anchor rises with it.

    A factor without anchors is signed by its strongest feature. Inactive factors come last.

    Parameters
    ----------
    estimator : FactorEstimator
        Fitted.
    module : FactorModule
        Reordered in place.
    z : Tensor of shape (n_samples, n_factors)
    named : sequence of int
        Factors that the user has named by their position, which keep it.

    Returns
    -------
    ndarray of shape (n_factors,)
        The old position of each factor.
    """
    explained = variance_explained(estimator, z)
    active = module.active().numpy().astype(bool)
    ranked = np.lexsort((-explained, ~active))
    order = np.arange(len(explained))
    free = ~np.isin(order, named)
    order[free] = ranked[free[ranked]]
    slopes, mask = average_slopes(estimator, z), module.mask.numpy()
    anchors = (mask != 0).sum(1) == 1
    sign = np.ones(len(order), dtype=np.float32)
    for new, k in enumerate(order):
        usable = (mask[:, k] != 0) & (slopes[:, k] != 0)
        if usable.any():
            strength = np.where(usable, np.abs(mask[:, k]), -1.0) + np.where(
                usable & anchors, _ANCHORS_FIRST, 0.0
            )
            sign[new] = np.sign(slopes[strength.argmax(), k])
    permute_factors_(module, torch.as_tensor(order), torch.as_tensor(sign))
    return order
