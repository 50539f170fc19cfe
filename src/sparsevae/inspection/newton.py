"""Posteriors of rows: where the encoder puts them, and a few Newton steps from there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparsevae.inspection.outputs import Outputs
from sparsevae.modules import Batch, LatentModule

__all__ = ["expand_likelihood", "newton_expansion", "newton_steps", "posterior"]

_STEPS = 2  # Newton steps; a third changes little
_LENGTHS = (1.0, 0.4)  # of a step; a row takes the better one, or none
_DEVIATIONS = (0.02, 1.0)  # of a factor, between which differences are taken
_SLOPES_AT_ONCE = 1 << 23


def posterior(module: LatentModule, batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean and log variance of q(z | x).

    An encoder that does without some inputs in training has many of them (see `FitData.input_dropout`), and
    is less sure of new rows than of those it has seen: what it says is a start for `newton_steps`, and so it
    is for rows with missing entries, of which each has its own pattern, and for rows of a group that the fit
    did not see. Elsewhere it is the answer.
    """
    mean, log_variance = module.encode(batch)
    if not module.gaussian_posterior:
        return mean, log_variance
    if not module.config.input_dropout:
        strange = torch.zeros(len(mean), dtype=torch.bool)
        if batch.observed is not None:
            strange |= ~batch.observed.all(-1)
        if batch.group is not None:
            strange |= batch.group >= module.config.n_groups
        if not strange.any():
            return mean, log_variance
        holed = torch.nonzero(strange).ravel()
        some = _improved(module, batch.rows(holed), mean[holed], log_variance[holed])
        return mean.index_copy(0, holed, some[0]), log_variance.index_copy(0, holed, some[1])
    return _improved(module, batch, mean, log_variance)


@torch.no_grad()
def newton_expansion(
    module: LatentModule, batch: Batch, prior: tuple[Tensor, Tensor] | None, n_steps: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Posterior modes of rows and the likelihood around them, under the module's prior or another one.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates.
    batch : Batch
    prior : (Tensor of shape (n_active,), Tensor of shape (n_active, n_active)), optional
        Mean and inverse covariance of the active factors.
    n_steps : int

    Returns
    -------
    mean : Tensor of shape (n_samples, n_factors)
    slopes : Tensor of shape (n_samples, n_active, n_features)
    score, information : Tensor of shape (n_samples, n_features)
    precision : Tensor of shape (n_samples, n_active, n_active)
    """
    active = torch.nonzero(module.active()).ravel()
    mean, log_variance = module.encode(batch)
    centre, inverse = _prior(module, batch, active) if prior is None else prior
    for step in range(n_steps + 1):
        slopes, score, information = _expansion(module, batch, mean, torch.exp(0.5 * log_variance))
        precision = inverse + (slopes * information.unsqueeze(-2)) @ slopes.mT
        if step == n_steps:
            break
        distance = mean[:, active] if centre is None else mean[:, active] - centre
        pull = (inverse @ distance.unsqueeze(-1)).squeeze(-1)
        gradient = (slopes @ score.unsqueeze(-1)).squeeze(-1) - pull
        moved = torch.linalg.solve(precision, gradient).clamp(-2.0, 2.0)
        mean = module.padded(batch, mean.index_add(1, active, moved))
        found = log_variance.index_copy(1, active, -precision.diagonal(dim1=-2, dim2=-1).log())
        log_variance = module.padded(batch, found)
    return mean, slopes, score, information, precision


def _improved(
    module: LatentModule, batch: Batch, mean: Tensor, log_variance: Tensor
) -> tuple[Tensor, Tensor]:
    n_active = max(1, int(module.active().sum()))
    size = max(1, _SLOPES_AT_ONCE // (n_active * module.n_features))
    parts = [
        newton_steps(module, *part, _STEPS)
        for part in zip(batch.split(size), mean.split(size), log_variance.split(size), strict=True)
    ]
    means, log_variances = zip(*parts, strict=True)
    return torch.cat(means), torch.cat(log_variances)


@torch.no_grad()
def newton_steps(
    module: LatentModule, batch: Batch, mean: Tensor, log_variance: Tensor, n_steps: int
) -> tuple[Tensor, Tensor]:
    r"""Improve a diagonal Gaussian posterior by Gauss-Newton steps, each row by itself.

    .. math:: P = \Sigma_z^{-1} + J^\top I J, \qquad
        \mu \leftarrow \mu + P^{-1} (J^\top s - \Sigma_z^{-1} \mu), \qquad \sigma_k^2 \leftarrow 1 / P_{kk}

    J has the slopes of the outputs on the factors, over one standard deviation of the posterior; s is the
    slope of the log likelihood on the outputs, I its Fisher information. :math:`1 / P_{kk}` are the variances
    of the diagonal Gaussian nearest to :math:`N(\mu, P^{-1})`. Of a full step, a short one and none, a row
    takes what bounds its log p(x) best.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates.
    batch : Batch
    mean, log_variance : Tensor of shape (n_samples, n_factors)
        Where to begin.
    n_steps : int

    Returns
    -------
    mean, log_variance : Tensor of shape (n_samples, n_factors)
    """
    active = torch.nonzero(module.active()).ravel()
    if not len(active):
        return mean, log_variance
    centre, prior = _prior(module, batch, active)
    pair = _opposite_draws(module.n_factors).to(batch.x)
    best = module.bound(batch, pair, (mean, log_variance))
    for _ in range(n_steps):
        slopes, score, information = _expansion(module, batch, mean, torch.exp(0.5 * log_variance))
        precision = prior + (slopes * information.unsqueeze(-2)) @ slopes.mT
        distance = mean[:, active] if centre is None else mean[:, active] - centre
        if prior.ndim == 2:
            gradient = (slopes @ score.unsqueeze(-1)).squeeze(-1) - distance @ prior
        else:
            gradient = (slopes @ score.unsqueeze(-1) - prior @ distance.unsqueeze(-1)).squeeze(-1)
        step = torch.linalg.solve(precision, gradient)
        found = log_variance.index_copy(1, active, -precision.diagonal(dim1=-2, dim2=-1).log())
        found = module.padded(batch, found)
        start = mean
        for length in _LENGTHS:
            moved = module.padded(batch, start.index_add(1, active, step, alpha=length))
            bound = module.bound(batch, pair, (moved, found))
            better = bound > best
            best = torch.where(better, bound, best)
            mean = torch.where(better.unsqueeze(-1), moved, mean)
            log_variance = torch.where(better.unsqueeze(-1), found, log_variance)
    return mean, log_variance


def _expansion(
    module: LatentModule, batch: Batch, mean: Tensor, deviation: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of the outputs (sample × active factor × feature); score and information of each output."""
    outputs = Outputs(module, mean)
    steps = deviation.clamp(*_DEVIATIONS)
    slopes = torch.stack(
        [
            (outputs.changed(k, mean[:, k] + steps[:, k]) - outputs.given) / steps[:, k, None]
            for k in outputs.active
        ],
        1,
    )
    observation, total = module.observation, batch.total
    likelihood, parameters = observation.likelihood, module.nuisance.values()
    given = module.shifted(batch, outputs.given)
    information = likelihood.information_at(given, parameters, size=batch.size, total=total)
    if total is not None:
        expected = likelihood.expectation(given, parameters, size=batch.size, total=total)
        # The probabilities of a multinomial sum to one: what raises all outputs alike changes nothing.
        columns = torch.as_tensor(np.flatnonzero(observation.total_columns), device=batch.x.device)
        weights = expected[:, columns] / total.clamp_min(1e-12).unsqueeze(-1)
        if batch.observed is not None:  # words that are not observed have left the softmax
            weights = weights * batch.observed[:, columns]
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-12)
            information = information.clone()
            information[:, columns] = weights * total.unsqueeze(-1)
        common = slopes[..., columns] @ weights.unsqueeze(-1)
        slopes[..., columns] = slopes[..., columns] - common
    information = information.expand_as(outputs.given)
    if batch.observed is not None:
        information = torch.where(batch.observed, information, 0.0)
    return slopes, _score(module, batch, outputs.given), information


def expand_likelihood(module: LatentModule, batch: Batch, output: Tensor) -> tuple[Tensor, Tensor]:
    """Slope of the log likelihood on each output, and the Fisher information: sample × feature each."""
    likelihood, parameters = module.observation.likelihood, module.nuisance.values()
    given = module.shifted(batch, output)
    information = likelihood.information_at(given, parameters, size=batch.size, total=batch.total)
    information = information.expand_as(output)
    if batch.observed is not None:
        information = torch.where(batch.observed, information, 0.0)
    return _score(module, batch, output), information


def _prior(module: LatentModule, batch: Batch, active: Tensor) -> tuple[Tensor | None, Tensor]:
    """Mean (None for zero) and inverse covariance of the active factors, for all rows or for each."""
    if module.row_groups is None or batch.group is None:
        return None, torch.linalg.inv(module.prior_covariance()[active][:, active])
    mean, precision = module.prior_of(batch)
    return mean[:, active], precision[:, active][:, :, active]


def _score(module: LatentModule, batch: Batch, output: Tensor) -> Tensor:
    # The caller may be in inference mode, whose tensors cannot take part in a gradient: copies can.
    with torch.inference_mode(False), torch.enable_grad():
        output = output.clone().requires_grad_()
        (score,) = torch.autograd.grad(module.log_likelihood(batch.copied(), output).sum(), output)
    return score


def _opposite_draws(n_factors: int) -> Tensor:
    """Two draws of opposite sign, one standard deviation away in every factor."""
    signs = torch.randint(0, 2, (n_factors,), generator=torch.Generator().manual_seed(0)) * 2 - 1
    return torch.stack([signs, -signs])
