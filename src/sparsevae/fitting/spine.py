r"""The linear spine of a fit: axes that come back in other rows, and sparse loadings on them.

A factor analysis of the standardised table fixes the axes. Its loadings L are then made sparse with the axes
held: near its maximum the likelihood of feature j is a quadratic in its loadings,

.. math:: \frac{N}{2\psi_j} (w_j - l_j)^\top C (w_j - l_j),

and the Spike-and-Slab Lasso prior is added to that. Left free, a lasso would turn the axes to where it is
cheapest, and on real tables that is another place in every sample (docs/research/replication.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from sparsevae.aliases import State
from sparsevae.factor_analysis import LinearFactors, analyse_factors, find_parts
from sparsevae.fitting.axes import Analysis, choose_axes
from sparsevae.fitting.constraints import count_linear_factors, fix_covariance_, freeze_constant_
from sparsevae.fitting.data import FitData, linear_inputs
from sparsevae.fitting.initial import start_at_means_
from sparsevae.fitting.settings import FitSettings, new_module
from sparsevae.modules import Batch, SparseVAEModule
from sparsevae.priors import inclusion_probability, penalty_weight, update_inclusion_rate
from sparsevae.training import Batches, StoredBatches

__all__ = ["SHRINKAGES", "Spine", "find_spine", "linear_module", "network_module", "sparse_loadings"]

SHRINKAGES = (0.0, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2)
"""What the lasso takes off a loading, along the path. From 0.1 to 0.2 half of the links disappear."""
_STRICTER = (0.3, 0.5)  # shown to readers of a fit, never chosen
_PARTS_KEEP = 0.5  # of the gain of rotated factors, from which on parts are preferred for counts
_FEWEST_FEATURES, _FEWEST_ROWS = 3, 10  # of a factor analysis
_FEW_HOLES = 0.05  # of the table, which the encoder of the linear model can do without
_RUNGS = 6  # from the lasso to the spike and slab
_SWEEPS = 12  # of coordinate descent on each rung
_GLM_ROWS = 4000  # rows that loadings on the scale of the likelihood's parameters are fitted to
_GLM_CELLS = 1 << 22  # of them at a time


class Spine(NamedTuple):
    """A sparse linear factor model of the standardised table.

    Attributes
    ----------
    factors : LinearFactors
        With sparse loadings.
    shrinkage : float
        At which point of the path they are.
    path : list of (float, float, int)
        Shrinkage, held-out gain per row over no factors, and links, for every point of the path.
    n_linear : int
        Number of factors that parallel analysis shows, whatever is allowed.
    stricter : sequence of (float, float, int)
        The path goes on: points that are there to be looked at, not to be chosen.
    supports : boolean ndarray of shape (n_points, n_features, n_factors), optional
        Links of all rows at each point of the path and of its stricter end, on the same axes.
    """

    factors: LinearFactors
    shrinkage: float
    path: list[tuple[float, float, int]]
    n_linear: int
    stricter: Sequence[tuple[float, float, int]] = ()
    supports: np.ndarray | None = None

    @property
    def gain_kept(self) -> float:
        """Fraction of the best gain of the path that the chosen point has."""
        gains = {shrinkage: gain for shrinkage, gain, _ in self.path}
        best = max(gains.values(), default=0.0)
        return min(gains[self.shrinkage] / best, 1.0) if best > 0 else 1.0

    def to_dict(self) -> State:
        """Plain values and arrays."""
        return {
            "factors": list(self.factors),
            "shrinkage": self.shrinkage,
            "path": [list(p) for p in self.path],
            "n_linear": self.n_linear,
            "stricter": [list(p) for p in self.stricter],
            "supports": self.supports,
        }

    @classmethod
    def from_dict(cls, values: State) -> Spine:
        """What `to_dict` described."""
        path, stricter = (
            [(float(s), float(gain), int(links)) for s, gain, links in values[part]]
            for part in ("path", "stricter")
        )
        factors = LinearFactors(*values["factors"])
        return cls(factors, values["shrinkage"], path, values["n_linear"], stricter, values["supports"])


def find_spine(settings: FitSettings, data: FitData) -> Spine | None:
    """Axes and number of factors from all rows; links by what they gain on held-out rows.

    The sparsest point of the path that keeps ``gain_kept`` of the best held-out gain is taken. The most
    predictive spine has all factors that parallel analysis shows, whether they come back or not. None where a
    table is too small for a factor analysis, or of a kind that has none here.
    """
    if not _suits(settings, data):
        return None
    everything = linear_inputs(data.everything)
    varying = np.flatnonzero(np.nanstd(everything, 0) > 1e-6)
    if len(varying) < _FEWEST_FEATURES or len(everything) < _FEWEST_ROWS:
        return None
    count = max(1, count_linear_factors(data, data.everything))
    n_factors = min(count, settings.n_factors, len(varying) - 1)
    if settings.most_predictive:
        analyse: Analysis = analyse_factors
        points = [] if data.validation is None else _path(analyse, data, varying, n_factors)
    else:
        analyse, n_factors, points = _choose_path(data, varying, n_factors)
    path, stricter = points[: len(SHRINKAGES)], points[len(SHRINKAGES) :]
    chosen = 0.0
    if path:
        best = max(gain for _, gain, _ in path)
        able = [shrinkage for shrinkage, gain, _ in path if gain >= settings.gain_kept * best]
        chosen = max(able) if best > 0 else SHRINKAGES[-1]
    found = _analyse(analyse, everything, varying, n_factors)
    n_samples = _samples(data, data.everything)
    sparse = {shrinkage: sparse_loadings(found, n_samples, shrinkage) for shrinkage, _, _ in points}
    if chosen not in sparse:
        return Spine(sparse_loadings(found, n_samples, chosen), chosen, path, count)
    supports = np.stack([factors.loadings != 0 for factors in sparse.values()])
    return Spine(sparse[chosen], chosen, path, count, stricter, supports)


Path = list[tuple[float, float, int]]


def _choose_path(data: FitData, varying: np.ndarray, n_factors: int) -> tuple[Analysis, int, Path]:
    """Axes that come back, how many, and held-out gains along the path of their links.

    Parts give way to rotated factors where a table has contrasts and they miss most of it.
    """
    if data.validation is None:
        return analyse_factors, n_factors, []
    counts = bool(data.source.observation.count_columns.all())
    # All rows say which axes return, so that the draw of the held-out ones does not.
    analyse, n_factors = choose_axes(linear_inputs(data.everything)[:, varying], n_factors, counts=counts)
    path = _path(analyse, data, varying, n_factors)
    if analyse is find_parts:
        rotated = _path(analyse_factors, data, varying, n_factors)
        if _best_gain(path) < _PARTS_KEEP * _best_gain(rotated):
            return analyse_factors, n_factors, rotated
    return analyse, n_factors, path


def _best_gain(path: Path) -> float:
    """Of the points that may be chosen."""
    return max(gain for _, gain, _ in path[: len(SHRINKAGES)])


def _path(analyse: Analysis, data: FitData, varying: np.ndarray, n_factors: int) -> Path:
    """Shrinkage, held-out gain per row over no factors, and links, of models of the training rows."""
    assert data.validation is not None
    held_out = linear_inputs(data.validation)[:, varying]
    training = analyse(linear_inputs(data.training)[:, varying], n_factors)
    null = -0.5 * np.nansum(np.square(held_out), 1).mean()
    n_samples = _samples(data, data.training)[varying]
    path = []
    for shrinkage in (*SHRINKAGES, *_STRICTER):
        sparse = sparse_loadings(training, n_samples, shrinkage)
        gain = float(sparse.log_likelihood(held_out).mean() - null)
        path.append((shrinkage, gain, int((sparse.loadings != 0).sum())))
    return path


def sparse_loadings(factors: LinearFactors, n_samples: float | np.ndarray, shrinkage: float) -> LinearFactors:
    r"""Loadings under the Spike-and-Slab Lasso prior, with the axes held.

    Parameters
    ----------
    factors : LinearFactors
        Without zeros.
    n_samples : float or array of shape (n_features,)
        Of each feature, where some values are missing.
    shrinkage : float
        What the lasso takes off a loading; the spike rate follows as in `ladder.default_spike_rate`.

    Notes
    -----
    Coordinate descent on the rungs of a ladder from the lasso to the spike and slab; what a feature loses of
    its loadings is added to its noise.
    """
    L, C = factors.loadings, factors.correlation
    n_features, n_factors = L.shape
    psi, samples = factors.uniqueness[:, None], np.reshape(n_samples, (-1, 1))
    noise = np.sqrt(2.0 * samples * math.log(max(2, n_features * n_factors)) / psi)
    spike = np.maximum(noise, shrinkage * samples / np.median(psi))
    W, rate = L.copy(), torch.full((n_factors,), 0.5, dtype=torch.float64)
    spike_t = torch.as_tensor(spike)
    for rung in range(_RUNGS + 1):
        slab_t = spike_t ** (1.0 - rung / _RUNGS)
        for _ in range(_SWEEPS):
            mask = torch.as_tensor(W)
            inclusion = inclusion_probability(mask, rate, spike_rate=spike_t, slab_rate=slab_t)
            if rung:
                rate = update_inclusion_rate(inclusion, 1.0, float(n_features))
            price = penalty_weight(inclusion, spike_rate=spike_t, slab_rate=slab_t).numpy()
            before = W.copy()
            for k in range(n_factors):
                target = W[:, k] - (W - L) @ C[:, k]
                threshold = (price[:, k : k + 1] * psi / samples)[:, 0]
                W[:, k] = np.sign(target) * np.maximum(np.abs(target) - threshold, 0.0)
            if np.abs(W - before).max() < 1e-5:
                break
    lost = np.einsum("jk,kl,jl->j", W - L, C, W - L)
    return LinearFactors(W, C, np.clip(factors.uniqueness + lost, None, 1.0))


def linear_module(
    settings: FitSettings, data: FitData, spine: Spine, *, held: bool = True
) -> SparseVAEModule:
    """The spine as a module without a network: the sparse linear factor model.

    Parameters
    ----------
    settings : FitSettings
    data : FitData
    spine : Spine
    held : bool
        Whether its encoder keeps the axes; where many values are missing it never does.
    """
    linear = replace(settings, config=replace(settings.config, hidden_sizes=()))
    return _module_of(linear, data, spine, held)


def network_module(
    settings: FitSettings, data: FitData, linear: SparseVAEModule, spine: Spine
) -> SparseVAEModule:
    """A network on top of the spine, which begins as the linear model."""
    module = _module_of(replace(settings, config=replace(settings.config, spine=1.0)), data, spine, True)
    with torch.no_grad():
        module.mask.weight.copy_(linear.mask.weight)
        module.mask.inclusion_rate.copy_(linear.mask.inclusion_rate)
        module.factor_covariance.copy_(linear.factor_covariance)
        module.decoder.intercept.copy_(linear.decoder.intercept)
        assert module.encoder.linear is not None
        assert linear.encoder.linear is not None
        module.encoder.linear.copy_(linear.encoder.linear)
        module.encoder.mean_bias.copy_(linear.encoder.mean_bias)
        module.encoder.log_variance_bias.copy_(linear.encoder.log_variance_bias)
        module.nuisance.load_state_dict(linear.nuisance.state_dict())
    module.mask.set_rates(**linear.mask.rates())
    return module


def _suits(settings: FitSettings, data: FitData) -> bool:
    """Whether a linear analysis of the encoder's inputs says where the factors of a table are."""
    source = data.source
    if settings.config.n_groups:
        return False  # shifts and variances of groups are learnt with the factors, which a spine has before
    if not all(part.ordered for part, _ in source.observation.likelihood.split(source.n_features)):
        return False  # the numbers of categories have no order, and so no correlation
    # Parts that add up are found by a factorisation that knows no holes.
    return not (source.has_missing and source.observation.count_columns.all())


def _samples(data: FitData, rows: Batches) -> np.ndarray:
    """How many rows, by weight, have a value of each feature: shape (n_features,)."""
    n_samples = np.full(data.source.n_features, float(rows.n_samples))
    if isinstance(rows, StoredBatches):  # loadings are as exact as the rows in memory make them
        n_samples = np.minimum(n_samples, len(linear_inputs(rows)))
    if data.observed_fraction is None:
        return n_samples
    return n_samples * data.observed_fraction.double().cpu().numpy()


def _analyse(
    analyse: Analysis,
    inputs: np.ndarray,
    varying: np.ndarray,
    n_factors: int,
) -> LinearFactors:
    """Factors of all features; those that do not vary have no loadings."""
    found = analyse(inputs[:, varying], n_factors)
    loadings, uniqueness = np.zeros((inputs.shape[1], n_factors)), np.ones(inputs.shape[1])
    loadings[varying], uniqueness[varying] = found.loadings, found.uniqueness
    return LinearFactors(loadings, found.correlation, uniqueness)


@torch.no_grad()
def _module_of(settings: FitSettings, data: FitData, spine: Spine, held: bool) -> SparseVAEModule:
    # Factors are read off a row by the posterior of the linear model, and stay so: an encoder that learns
    # turns the axes. Where many values are missing rows need a map each: that encoder learns from there.
    held = held and data.holes <= _FEW_HOLES
    config = replace(settings.config, held_means=held, input_dropout=0.0)
    module = new_module(replace(settings, config=config), data, 1).select(0)
    factors, n_used = spine.factors, spine.factors.n_factors

    def tensor(values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=module.mask.weight.device)

    start_at_means_(module, data.feature_mean)
    if settings.config.hidden_sizes:
        module.decoder.heads.zero_()
    encoder = module.encoder
    if encoder.mean_weight is not None:
        encoder.mean_weight.zero_()
    encoder.log_variance_weight.zero_()
    encoder.log_variance_bias.zero_()
    variances = np.diag(factors.posterior_covariance())
    encoder.log_variance_bias[:n_used] = tensor(np.log(np.maximum(variances, 1e-4)))
    assert encoder.linear is not None
    encoder.linear.zero_()
    encoder.linear[:n_used] = tensor(factors.maps().T)
    module.factor_covariance[:n_used, :n_used] = tensor(factors.correlation)
    fix_covariance_(settings, module)
    module.mask.weight.zero_()
    module.mask.weight[:, :n_used] = tensor(factors.loadings)
    if data.source.observation.real_columns.all():
        module.noise_variance.copy_(tensor(factors.uniqueness))
    else:
        _fit_loadings_(module, data.training.spread(_GLM_ROWS), data.feature_mean)
    freeze_constant_(module, data)
    module.mask.frozen |= ~module.support()  # links are settled: what comes later may change their size only
    rate = math.sqrt(2.0 * float(data.everything.n_samples) * math.log(max(2, factors.loadings.size)))
    module.mask.set_rates(rate, settings.recipe.slab_rate)
    for _ in range(20):
        module.mask.update_inclusion()
    return module


@torch.no_grad()
def _fit_loadings_(module: SparseVAEModule, batch: Batch, feature_mean: torch.Tensor) -> None:
    r"""Loadings on the scale of the likelihood's parameters, by a step of Fisher scoring on the codes.

    The response of feature j is its score over its information at the feature's mean; the support stays.
    """
    likelihood, parameters = module.observation.likelihood, module.nuisance.values()
    information = likelihood.information(feature_mean, parameters)

    def respond(part: Batch) -> torch.Tensor:
        """Response of each row, as often as it counts; zero where nothing is seen."""
        with torch.enable_grad():
            output = likelihood.initial_output(feature_mean).expand_as(part.x).clone().requires_grad_()
            density = likelihood.log_prob(part.x, output, parameters, size=part.size, observed=part.observed)
            (score,) = torch.autograd.grad(part.row_sum(density.unsqueeze(-1)).sum(), output)
        return (score / information).double()

    support, n_factors = module.support(), module.n_factors
    products = torch.zeros(module.n_features, n_factors, dtype=torch.float64, device=information.device)
    grams = torch.zeros(1 if batch.observed is None else module.n_features, n_factors, n_factors).to(products)
    for part in batch.split(max(1, _GLM_CELLS // module.n_features)):
        z = module.encode(part)[0].double()
        weighted = z if part.weight is None else z * part.weight.unsqueeze(-1)
        products += respond(part).T @ z
        if part.observed is None:
            grams += weighted.T @ z
        else:
            pairs = (weighted.unsqueeze(-1) * z.unsqueeze(-2)).flatten(1)
            grams += (part.observed.double().T @ pairs).view_as(grams)
    for j in range(module.n_features):
        own = torch.nonzero(support[j]).ravel()
        if len(own):
            gram = grams[0 if batch.observed is None else j]
            ridge = torch.eye(len(own), dtype=torch.float64) / information[j].double()
            solved = torch.linalg.solve(gram[own][:, own] + ridge, products[j, own])
            module.mask.weight[j, own] = torch.where(solved == 0, 1e-6, solved).float()
