r"""What the assumptions A1 and A2 say about a fitted decoder: its response curves and its slopes at the data.

The slope of feature l on factor k at sample i is :math:`s_{ilk} = w_{lk} B_{ilk}` in the paper's notation. It
is taken as a central difference over a fifth of a standard deviation around the posterior mean: an average
slope, which a kink of the ReLU does not decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sparsevae.inspection.outputs import Outputs
from sparsevae.modules import SparseVAEModule

__all__ = ["Dominance", "anchor_positions", "curve_differences", "dominance", "response_curves"]

_STEP = 0.1  # in standard deviations of a factor
_SLOPES_AT_ONCE = 1 << 22  # sample × feature × factor


class Dominance(NamedTuple):
    """How closely every feature follows the factor of each anchor; rows in the order of the anchors given."""

    similarity: np.ndarray
    """(n_anchors, n_features): first-order correlation of the signals; 1 for an anchor of equal curve."""
    ratio: np.ndarray
    """(n_anchors, n_features): right side of A2 over its left side, in the units of the model."""


def anchor_positions(support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features that depend on one factor only, and that factor.

    Parameters
    ----------
    support : boolean array of shape (n_features, n_factors)

    Returns
    -------
    features, factors : integer arrays of shape (n_anchors,)
        Features in rising order.
    """
    features = np.flatnonzero(support.sum(1) == 1)
    return features, support[features].argmax(1)


@torch.no_grad()
def response_curves(module: SparseVAEModule, z: Tensor, features: np.ndarray) -> np.ndarray:
    """Decoder outputs of some features at some values of the factors: shape (n_samples, len(features)).

    An anchor's output depends on its factor alone, so that its column is its response curve at the samples.
    """
    if not len(features):
        return np.zeros((len(z), 0))
    return module.decode(z, torch.as_tensor(features)).double().numpy()


def curve_differences(curves: np.ndarray) -> np.ndarray:
    r"""How much of one response curve another does not explain, up to shift and scale, for each pair.

    .. math:: 1 - \operatorname{cor}\big(f_j(z), f_l(z)\big)^2

    which is the residual variance of regressing one standardised curve on the other over the samples.

    Parameters
    ----------
    curves : array of shape (n_samples, n_curves)

    Returns
    -------
    ndarray of shape (n_curves, n_curves)
        0 for equal curves, 1 for unrelated ones and for any that is flat.
    """
    centred = curves - curves.mean(0)
    size = np.sqrt((centred**2).sum(0))
    # What is left of a flat curve is rounding.
    varies = size > 1e-6 * (1.0 + np.abs(curves).max(0, initial=0.0)) * np.sqrt(len(curves))
    unit = np.divide(centred, size, out=np.zeros_like(centred), where=varies)
    difference = np.clip(1.0 - np.square(unit.T @ unit), 0.0, 1.0)
    np.fill_diagonal(difference, 0.0)
    return difference


def dominance(
    module: SparseVAEModule,
    z: Tensor,
    factor_correlation: np.ndarray,
    anchors: np.ndarray,
    factors: np.ndarray,
) -> Dominance:
    r"""Check assumption A2 at posterior means, for each anchor against every feature.

    A2 bounds first-order covariances. In the units of the model its two sides are

    .. math:: \sum_i s_{ijk}^2 \;\ge\; \sum_i |s_{ijk}| \sum_{k'} |s_{ilk'}|

    whose ratio depends on the scale of feature l. What does not is the first-order correlation of the
    signals,

    .. math:: \frac{\big|\sum_i s_{ijk} \sum_{k'} C_{kk'} s_{ilk'}\big|}
        {\sqrt{\sum_i s_{ijk}^2 C_{kk}}\;\sqrt{\sum_i s_{il}^\top C\, s_{il}}}

    which is 1 if l is an anchor of k with a proportional curve and below 1 otherwise: what A2 is there to
    ensure.

    Parameters
    ----------
    module : SparseVAEModule
    z : Tensor of shape (n_samples, n_factors)
        Posterior means.
    factor_correlation : array of shape (n_factors, n_factors)
        C.
    anchors, factors : integer arrays of shape (n_anchors,)

    Returns
    -------
    Dominance
    """
    support = module.support().numpy()
    active = np.flatnonzero(support.any(0))
    C = np.asarray(factor_correlation, dtype=np.float64)[np.ix_(active, active)]
    position = np.searchsorted(active, factors)
    shape = (len(anchors), module.n_features)
    covariance, absolute = np.zeros(shape), np.zeros(shape)
    variance, own = np.zeros(module.n_features), np.zeros(len(anchors))
    step = max(1, _SLOPES_AT_ONCE // max(1, module.n_features * len(active)))
    for block in z.split(step):
        slopes = _slopes(module, block, active)  # sample × feature × active factor
        spread = slopes @ C
        variance += (slopes * spread).sum((0, 2))
        total = np.abs(slopes).sum(2)
        for k in np.unique(position):
            rows = np.flatnonzero(position == k)
            mine = slopes[:, anchors[rows], k]
            covariance[rows] += mine.T @ spread[:, :, k]
            absolute[rows] += np.abs(mine).T @ total
            own[rows] += (mine**2).sum(0)
    scale = np.sqrt(np.outer(own, np.maximum(variance, 0.0)))
    similarity = np.divide(np.abs(covariance), scale, out=np.zeros(shape), where=scale > 0)
    ratio = np.divide(absolute, own[:, None], out=np.full(shape, np.inf), where=own[:, None] > 0)
    return Dominance(np.minimum(similarity, 1.0), ratio)


@torch.no_grad()
def _slopes(module: SparseVAEModule, z: Tensor, active: np.ndarray) -> np.ndarray:
    """Central differences of the outputs; only features that use a factor are decoded for it."""
    slopes = np.zeros((len(z), module.n_features, len(active)))
    outputs = Outputs(module, z)
    for a, k in enumerate(active):
        up, down = (outputs.changed(k, z[:, k] + step) for step in (_STEP, -_STEP))
        slopes[:, :, a] = (up - down).double().numpy() / (2 * _STEP)
    return slopes
