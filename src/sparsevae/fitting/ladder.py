"""The ladder: Laplace rates that mean the same for any table, from a lasso to the spike and slab."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from sparsevae.fitting.data import FitData
from sparsevae.fitting.recipes import Ladder
from sparsevae.fitting.settings import FitSettings
from sparsevae.modules import Batch, SparseVAEModule
from sparsevae.modules.mask import Rate
from sparsevae.training import Phase

__all__ = ["climb_phases", "default_spike_rate", "ladder_phases", "patience_for", "shrinkage_for"]

_SHRINKAGES = (0.02, 2.0)  # below, nothing is shrunk away; above, hardly a loading could stay
_ROWS_READ = 1000  # samples at which the worth of loadings is taken


@torch.no_grad()
def default_spike_rate(
    module: SparseVAEModule,
    n_samples: float,
    feature_mean: Tensor,
    shrinkage: float | Tensor = 0.1,
    smallest: float = 1.0,
    observed_fraction: Tensor | None = None,
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
    information = module.observation.likelihood.information(feature_mean, module.nuisance.values())
    if observed_fraction is not None:  # of one row, holes counted
        information = information * observed_fraction
    typical = information.median(-1, keepdim=True).values
    size = module.n_features * int(module.active().sum(-1).max())
    noise = torch.sqrt(2.0 * n_samples * math.log(max(size, 2)) * information)
    return torch.maximum(noise, shrinkage * n_samples * typical).unsqueeze(-1).clamp_min(smallest)


@torch.no_grad()
def shrinkage_for(module: SparseVAEModule, batch: Batch, features_per_factor: float) -> Tensor:
    r"""The shrinkage at which so many features per factor would stay, judged at the start of the ladder.

    .. math:: s_{jk} = a_{jk}^2 / |w_{jk}|, \qquad
        a_{jk}^2 = \frac1N \sum_i \left(f_j(w_j \odot z_i) - f_j(w_j \odot z_i^{(k = 0)})\right)^2

    Taking a loading away costs about :math:`N I a_{jk}^2 / 2`, and the lasso asks for :math:`s N I |w_{jk}|`;
    of a linear model, whose a is w, exactly the loadings above s survive.

    Parameters
    ----------
    module : SparseVAEModule
        At the start of the ladder.
    batch : Batch
        Training rows.
    features_per_factor : float

    Returns
    -------
    Tensor of shape (..., 1)
        A shrinkage for `default_spike_rate`, for each replicate.
    """
    z, _ = module.encode(batch)
    output = module.decode(z)
    squares = []
    for k in range(module.n_factors):
        without = z.clone()
        without[..., k] = 0.0
        squares.append((output - module.decode(without)).square().mean(-2))
    worth = torch.stack(squares, -1) / module.mask.weight.abs().clamp_min(1e-6)
    kept = features_per_factor * module.active().sum(-1, keepdim=True)
    rank = kept.round().long().clamp(1, module.n_features * module.n_factors) - 1
    return worth.flatten(-2).sort(-1, descending=True).values.gather(-1, rank).clamp(*_SHRINKAGES)


def climb_phases(
    settings: FitSettings, data: FitData, module: SparseVAEModule, epochs: int, rate: float = 1.0
) -> list[Phase]:
    """The ladder of one module (or of replicates side by side), with the user's rates where given.

    ``rate`` is relative to the default rate.
    """
    recipe = settings.recipe
    wanted: float | Tensor = recipe.shrinkage
    if settings.expected_features_per_factor is not None:
        batch = data.training.first(_ROWS_READ)
        wanted = shrinkage_for(module, batch, settings.expected_features_per_factor)
    default = default_spike_rate(
        module, data.training.n_samples, data.feature_mean, wanted, recipe.slab_rate, data.observed_fraction
    )
    default = (rate * default).clamp_min(recipe.slab_rate)
    spike: Rate = default
    slab = recipe.slab_rate
    if settings.slab_rate is not None:
        slab = float(settings.slab_rate)
        spike = default.clamp_min(slab)
    if settings.spike_rate is not None:
        spike = float(settings.spike_rate)
        slab = min(slab, spike)
    patience = patience_for(epochs, data)
    if recipe.ladder is not None:
        return ladder_phases(
            recipe.ladder, epochs, settings.learning_rate, spike_rate=spike, slab_rate=slab, patience=patience
        )
    speed = (settings.learning_rate, 0.1 * settings.learning_rate)
    return [Phase("final", epochs, speed, spike_rate=spike, slab_rate=slab, patience=patience)]


def ladder_phases(
    ladder: Ladder,
    n_epochs: int,
    learning_rate: float,
    *,
    spike_rate: Rate,
    slab_rate: Rate,
    patience: int = 0,
) -> list[Phase]:
    """Begin like a lasso, end like a spike and slab, each rung from where the last one ended.

    Parameters
    ----------
    ladder : Ladder
    n_epochs : int
        Of all rungs together.
    learning_rate : float
    spike_rate : float or Tensor
        λ0, on every rung, and of the lasso.
    slab_rate : float or Tensor
        λ1 of the last rung; it falls geometrically from λ0.
    patience : int
        Of the last rung, see `Phase`.
    """
    lasso, climb = round(ladder.lasso * n_epochs), round(ladder.climb * n_epochs)
    n_rungs = min(ladder.n_rungs, climb + 1)

    def slab_at(height: float) -> Rate:
        return spike_rate * (slab_rate / spike_rate) ** height

    full = (learning_rate, learning_rate)
    phases = []
    if lasso:
        warmup = min(ladder.penalty_warmup, lasso)
        first = Phase("lasso", lasso, full, spike_rate, slab_at(0.0), penalty_warmup=warmup)
        phases.append(replace(first, zeros_may_return=True))
    for rung, epochs in enumerate(_spread(climb, n_rungs - 1), start=1):
        phases.append(Phase("ladder", epochs, full, spike_rate, slab_at(rung / n_rungs)))
    last = (learning_rate, 0.1 * learning_rate)
    final = n_epochs - lasso - climb
    phases.append(Phase("final", final, last, spike_rate, slab_at(1.0), patience=patience))
    return phases


def patience_for(epochs: int, data: FitData) -> int:
    """Epochs without a better held-out bound after which a phase ends; 0 where no row is held out."""
    return max(10, epochs // 5) if data.validation is not None else 0


def _spread(total: int, parts: int) -> list[int]:
    cuts = [math.floor(total * i / parts) for i in range(parts + 1)] if parts else []
    return [b - a for a, b in pairwise(cuts)]
