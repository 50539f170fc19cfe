"""Laplace rates that mean the same for any table, and the ladder made of them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from sparsevae.estimators.preparing import FitData
from sparsevae.modules import FactorModule
from sparsevae.training import Phase
from sparsevae.training.schedule import Rate, ladder

__all__ = ["SHRINKAGE", "SLAB_RATE", "climb_phases", "default_spike_rate", "rate_is_free", "shrinkage_for"]

SHRINKAGE = 0.1
"""How much the lasso takes off a typical feature's loading, in units of the mask: `default_spike_rate`."""

SLAB_RATE = 1.0
"""Slab rate at the end of the ladder: it selects without shrinking."""

_SHRINKAGES = (0.02, 2.0)  # below, nothing is shrunk away; above, hardly a loading could stay
_ROWS_READ = 1000  # samples at which the worth of loadings is taken


@torch.no_grad()
def default_spike_rate(
    module: FactorModule, n_samples: int, feature_mean: Tensor, shrinkage: float | Tensor = SHRINKAGE
) -> Tensor:
    r"""Lasso rate of the default: what a loading must be worth to be kept.

    .. math:: \lambda_j = \max\left(s\, N \tilde I,\; \sqrt{2 N \log(G K)\, I_j}\right), \qquad s = 0.1

    :math:`I_j` is the Fisher information of one sample about the output of feature j (:math:`1/\sigma_j^2`
    for a real-valued feature), :math:`\tilde I` its median over features. A lasso with rate λ takes about
    :math:`\lambda / (N I)` off a loading. The first term makes that a tenth of the loading of a feature that
    lives on its factor: the support of strong effects then depends neither on the number of samples nor on
    the noise. The second is the largest gradient to be expected among GK entries without effect, and rules
    where data are few or carry little information each, as counts of rare words do. The median serves all
    features: rates in proportion to each feature's own information would let precise features dictate the
    factors.
    """
    information = module.observation.likelihood.information(feature_mean, dispersion=module.dispersion())
    typical = information.median(-1, keepdim=True).values
    size = module.n_features * int(module.active().sum(-1).max())
    noise = torch.sqrt(2.0 * n_samples * math.log(max(size, 2)) * information)
    return torch.maximum(noise, shrinkage * n_samples * typical).unsqueeze(-1).clamp_min(SLAB_RATE)


@torch.no_grad()
def shrinkage_for(module: FactorModule, x: Tensor, features_per_factor: float) -> Tensor:
    r"""The shrinkage at which so many features per factor would stay, judged at the start of the ladder.

    .. math:: s_{jk} = a_{jk}^2 / |w_{jk}|, \qquad
        a_{jk}^2 = \frac1N \sum_i \left(f_j(w_j \odot z_i) - f_j(w_j \odot z_i^{(k = 0)})\right)^2

    Taking a loading away costs about :math:`N I a_{jk}^2 / 2`, and the lasso asks for :math:`s N I |w_{jk}|`;
    of a linear model, whose a is w, exactly the loadings above s survive.

    Parameters
    ----------
    module : FactorModule
        At the start of the ladder.
    x : Tensor of shape (n_samples, n_features)
        Training rows in model units.
    features_per_factor : float

    Returns
    -------
    Tensor of shape (..., 1)
        A shrinkage for `default_spike_rate`, for each replicate.
    """
    z, _ = module.encode(x)
    output = module.decode(z)
    squares = []
    for k in range(module.n_factors):
        without = z.clone()
        without[..., k] = 0.0
        squares.append((output - module.decode(without)).square().mean(-2))
    worth = torch.stack(squares, -1) / module.mask.abs().clamp_min(1e-6)
    kept = features_per_factor * module.active().sum(-1, keepdim=True)
    rank = kept.round().long().clamp(1, module.n_features * module.n_factors) - 1
    return worth.flatten(-2).sort(-1, descending=True).values.gather(-1, rank).clamp(*_SHRINKAGES)


def rate_is_free(estimator: Any) -> bool:
    """Whether the user has left the rate, and what it stands for, to the fit."""
    return estimator.spike_rate is None and estimator.expected_features_per_factor is None


def climb_phases(
    estimator: Any, data: FitData, module: FactorModule, epochs: int, share: float = 1.0
) -> list[Phase]:
    """The ladder of one module (or of replicates side by side), with the user's rates where given.

    ``share`` is that of the default rate to climb with.
    """
    shrinkage: float | Tensor = SHRINKAGE
    if estimator.expected_features_per_factor is not None:
        x = data.table.rows(data.training.rows[:_ROWS_READ])
        shrinkage = shrinkage_for(module, x, estimator.expected_features_per_factor)
    default = default_spike_rate(module, data.training.n_rows, data.feature_mean, shrinkage)
    default = (share * default).clamp_min(SLAB_RATE)
    spike: Rate = default
    slab = SLAB_RATE
    if estimator.slab_rate is not None:
        slab = float(estimator.slab_rate)
        spike = default.clamp_min(slab)
    if estimator.spike_rate is not None:
        spike = float(estimator.spike_rate)
        slab = min(slab, spike)
    patience = max(10, epochs // 5) if data.validation is not None else 0
    if estimator._ingredients.ladder:
        return ladder(epochs, estimator.learning_rate, spike_rate=spike, slab_rate=slab, patience=patience)
    speed = (estimator.learning_rate, 0.1 * estimator.learning_rate)
    return [Phase("final", epochs, speed, spike_rate=spike, slab_rate=slab, patience=patience)]
