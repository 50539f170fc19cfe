r"""How much of a table the factors explain: by factor, by feature and in all.

Fractions are of the variance of a feature: for a real-valued one, of its fitted means and noise together.
What one factor explains of counts and answers is taken on the scale of the decoder's outputs (logarithms,
log-odds), where it does not hang on a few large rows. What all explain together is taken on the data: of the
squared deviations from what a row of its size would hold without any factor. For small effects the two are
about the same. All are taken at posterior means of the factors.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparsevae.inspection.outputs import Outputs, weighted_mean
from sparsevae.modules import Batch, LatentModule

__all__ = [
    "communalities",
    "find_practical",
    "left_shares",
    "order_features",
    "signed_strength",
    "variance_shares",
]

_NEGLIGIBLE = 0.05  # of the fitted variance, which a practical anchor may owe to other factors
_LEAST_COMMUNALITY = 0.05  # of a feature that counts among practical anchors


def signed_strength(mask: np.ndarray, effects: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Root of the variance explained by each link, with the sign of its average slope.

    For a linear model it is the standardised loading. Zero where the mask is.

    Parameters
    ----------
    mask, effects, shares : ndarray of shape (n_features, n_factors)
        Entries, average slopes, and fractions of variance explained.
    """
    sign = np.where(effects < 0, -1.0, 1.0)
    return np.where(mask != 0, sign * np.sqrt(np.maximum(shares, 0.0)), 0.0)


def order_features(mask: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """Features by their strongest factor, anchors of it first, each by strength; without factor last."""
    size, used = np.abs(strength), mask != 0
    # A link may explain nothing: it still comes before no link.
    strongest = np.where(used.any(1), (size + 1e-9 * used).argmax(1), used.shape[1])
    return np.lexsort((-size.max(1), used.sum(1) > 1, strongest))


@torch.no_grad()
def variance_shares(outputs: Outputs, batch: Batch) -> np.ndarray:
    r"""Fraction of each feature's variance that is lost when a factor is held at zero.

    .. math:: \frac{\operatorname{Var}_i\big(\eta_{ij}(z_i) - \eta_{ij}(z_i \text{ with } z_{ik} = 0)\big)}
        {\operatorname{Var}_i(\eta_{ij}) + 1/I_j}

    with the outputs :math:`\eta` of the decoder and the Fisher information :math:`I_j` of one value about its
    output, at the mean of the feature: of a Gaussian feature :math:`1/I_j` is its noise variance. It is the
    size of a link whatever the shape of its curve, and may be compared among features.

    Parameters
    ----------
    outputs : Outputs
        Of a fitted module.
    batch : Batch
        The same samples.

    Returns
    -------
    ndarray of shape (n_features, n_factors)
        At most one. Zero where the mask is.
    """
    module = outputs.module
    variance = (_output_spread(outputs, batch) + _output_noise(module, batch)).clamp_min(1e-12)
    shares = torch.zeros(module.n_features, module.n_factors)
    for k in outputs.active:
        lost = _spread(outputs.given - outputs.changed(k, 0.0), batch.weight)
        shares[:, k] = (lost / variance).clamp_max(1.0)
    return shares.double().numpy()


@torch.no_grad()
def communalities(outputs: Outputs, batch: Batch) -> np.ndarray:
    """Fraction of each feature's variance that all factors explain together: shape (n_features,).

    Parameters
    ----------
    outputs, batch
        As for `variance_shares`. Real-valued features have variance one in the units of the model.
    """
    module = outputs.module
    means = _expected(module, outputs.given, batch)
    x = module.observation.likelihood.response(batch.x)
    left = _mean_where_observed((x - means).square(), batch)
    reproduced = 1.0 - left / _deviations(module, batch).clamp_min(1e-12)
    explained = 1.0 - module.noise_variance
    if module.row_groups is not None and batch.group is not None:
        explained = explained - _spread(module.row_groups.offset(batch.group), batch.weight)
    share = torch.where(_real(module), explained, reproduced).clamp(0.0, 1.0)
    return torch.where(module.support().any(1), share, 0.0).double().numpy()


@torch.no_grad()
def left_shares(outputs: Outputs, batch: Batch) -> np.ndarray:
    r"""What changes of a feature's fitted values when every factor but one is held at its mean.

    .. math:: \frac{\operatorname{Var}_i\big(m_{ij}(z_i) - m_{ij}(z_{ik} \text{ alone})\big)}
        {\operatorname{Var}_i(m_{ij}(z_i))}

    Parameters
    ----------
    outputs, batch
        As for `variance_shares`.

    Returns
    -------
    ndarray of shape (n_features, n_factors)
        Small where a feature is as good as an anchor of the factor; 1 for a factor that is not active.

    Notes
    -----
    Under the multinomial m is the output before the softmax: the total of a row makes every expected count
    depend on every factor, those of exact anchors too.
    """
    module = outputs.module
    means = _fitted(module, outputs.given, batch)
    fitted = _spread(means, batch.weight).clamp_min(1e-12)
    shares = torch.ones(module.n_features, module.n_factors)
    for k in outputs.active:
        alone = torch.zeros_like(outputs.z)
        alone[:, k] = outputs.z[:, k]
        lost = _spread(means - _fitted(module, module.decode(alone), batch), batch.weight)
        shares[:, k] = lost / fitted
    return shares.double().numpy()


def find_practical(left: np.ndarray, communality: np.ndarray) -> np.ndarray:
    """Whether each feature is a practical anchor of each factor: boolean, (n_features, n_factors).

    Parameters
    ----------
    left : ndarray of shape (n_features, n_factors)
        From `left_shares`.
    communality : ndarray of shape (n_features,)
    """
    return (left <= _NEGLIGIBLE) & (communality >= _LEAST_COMMUNALITY)[:, None]


def _fitted(module: LatentModule, output: Tensor, batch: Batch) -> Tensor:
    """Expected values; of features that share a total, outputs."""
    means = _expected(module, output, batch)
    shared = torch.as_tensor(module.observation.total_columns, device=output.device)
    return torch.where(shared, output, means) if bool(shared.any()) else means


def _expected(module: LatentModule, output: Tensor, batch: Batch) -> Tensor:
    """Expected values of rows of the sizes seen, in the units of the model: sample × feature."""
    likelihood, parameters = module.observation.likelihood, module.nuisance.values()
    given = module.shifted(batch, output)
    return likelihood.expectation(given, parameters, size=batch.size, total=batch.total)


def _output_spread(outputs: Outputs, batch: Batch) -> Tensor:
    """Variance of each feature's outputs, with the shifts of groups: shape (n_features,)."""
    eta = outputs.module.shifted(batch, outputs.given)
    return eta.var(0) if batch.weight is None else _spread(eta, batch.weight)


def _output_noise(module: LatentModule, batch: Batch) -> Tensor:
    """What the noise of one value is worth on the scale of its output: shape (n_features,)."""
    mean = _mean_where_observed(batch.x, batch)
    information = module.observation.likelihood.information(mean, module.nuisance.values())
    return 1.0 / information.clamp_min(1e-12)


def _deviations(module: LatentModule, batch: Batch) -> Tensor:
    """Mean squared deviation from what a row would hold without any factor: shape (n_features,)."""
    observation, x = module.observation, module.observation.likelihood.response(batch.x)
    exposure = torch.ones_like(x)
    for columns, size in (
        (observation.size_columns, batch.size),
        (observation.total_columns, batch.total),
    ):
        if size is not None:
            exposure[:, torch.as_tensor(columns)] = size.unsqueeze(-1)
    if batch.observed is not None:
        x, exposure = x * batch.observed, exposure * batch.observed
    rate = batch.row_sum(x) / batch.row_sum(exposure).clamp_min(1e-12)
    return _mean_where_observed((x - exposure * rate).square(), batch)


def _spread(values: Tensor, weight: Tensor | None) -> Tensor:
    """Variance over samples, each as often as its weight says."""
    if weight is None:
        return values.var(0, unbiased=False)
    return weighted_mean((values - weighted_mean(values, weight)).square(), weight)


def _mean_where_observed(values: Tensor, batch: Batch) -> Tensor:
    if batch.observed is None:
        return weighted_mean(values, batch.weight)
    there = batch.observed.to(values)
    return batch.row_sum(values * there) / batch.row_sum(there).clamp_min(1e-12)


def _real(module: LatentModule) -> Tensor:
    return torch.as_tensor(module.observation.real_columns)
