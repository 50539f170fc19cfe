"""Posteriors of rows: where the encoder puts them, and a few Newton steps from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsevae.estimators.evaluating import map_rows
from sparsevae.estimators.reading import Outputs
from sparsevae.modules import FactorModule

__all__ = ["newton_steps", "posterior", "row_bounds", "row_moments"]

_STEPS = 2
_LENGTHS = (1.0, 0.4)  # of a step; a row takes the better one, or none
_DEVIATIONS = (0.02, 1.0)  # of a factor, between which differences are taken
_SLOPES_AT_ONCE = 1 << 23


def posterior(module: FactorModule, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log variance of q(z | x) for rows in model units.

    An encoder that does without some inputs in training has many of them (see `FitData.input_dropout`), and
    is less sure of new rows than of those it has seen: what it says is a start for `newton_steps`. Elsewhere
    it is the answer.
    """
    mean, log_variance = module.encode(x)
    if not module.config["input_dropout"] or not module.gaussian_posterior:
        return mean, log_variance
    n_active = max(1, int(module.active().sum()))
    size = max(1, _SLOPES_AT_ONCE // (n_active * module.n_features))
    parts = [
        newton_steps(module, *part, _STEPS)
        for part in zip(x.split(size), mean.split(size), log_variance.split(size), strict=True)
    ]
    means, log_variances = zip(*parts, strict=True)
    return torch.cat(means), torch.cat(log_variances)


def row_moments(module: FactorModule, X: Any) -> np.ndarray:
    """Mean and log variance of each row's `posterior`, side by side: (n_samples, 2 n_factors)."""
    return map_rows(module, X, lambda module, x: torch.cat(posterior(module, x), -1))


def row_bounds(module: FactorModule, X: Any, draws: Tensor, moments: np.ndarray) -> np.ndarray:
    """ELBO of each row in the units of the table, given `row_moments`: (n_samples,)."""

    def bound(module: FactorModule, x: Tensor, known: Tensor) -> Tensor:
        mean, log_variance = known.chunk(2, -1)
        return module.bound(x, draws, (mean, log_variance))

    values = map_rows(module, X, bound, moments).astype(np.float64)
    return values + float(module.observation.log_jacobian())


@torch.no_grad()
def newton_steps(
    module: FactorModule, x: Tensor, mean: Tensor, log_variance: Tensor, n_steps: int
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
    module : FactorModule
        Fitted, without replicates.
    x : Tensor of shape (n_samples, n_features)
        Rows in model units.
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
    prior = torch.linalg.inv(module.prior_covariance()[active][:, active])
    pair = _opposite_draws(module.n_factors).to(x)
    best = module.bound(x, pair, (mean, log_variance))
    for _ in range(n_steps):
        slopes, score, information = _expansion(module, x, mean, torch.exp(0.5 * log_variance))
        precision = prior + (slopes * information.unsqueeze(-2)) @ slopes.mT
        gradient = (slopes @ score.unsqueeze(-1)).squeeze(-1) - mean[:, active] @ prior
        step = torch.linalg.solve(precision, gradient)
        found = log_variance.index_copy(1, active, -precision.diagonal(dim1=-2, dim2=-1).log())
        start = mean
        for length in _LENGTHS:
            moved = start.index_add(1, active, step, alpha=length)
            bound = module.bound(x, pair, (moved, found))
            better = bound > best
            best = torch.where(better, bound, best)
            mean = torch.where(better.unsqueeze(-1), moved, mean)
            log_variance = torch.where(better.unsqueeze(-1), found, log_variance)
    return mean, log_variance


def _expansion(
    module: FactorModule, x: Tensor, mean: Tensor, deviation: Tensor
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
    observation = module.observation
    total = observation.total(x)
    expected = observation.likelihood.mean(outputs.given, size=observation.size(x), total=total)
    information = observation.likelihood.information(expected, dispersion=module.dispersion())
    if total is not None:
        # The shares of a multinomial sum to one: what raises all outputs alike changes nothing.
        columns = torch.as_tensor(np.flatnonzero(observation.total_columns), device=x.device)
        shares = expected[:, columns] / total.clamp_min(1e-12).unsqueeze(-1)
        common = slopes[..., columns] @ shares.unsqueeze(-1)
        slopes[..., columns] = slopes[..., columns] - common
    return slopes, _score(module, x, outputs.given), information.expand_as(expected)


def _score(module: FactorModule, x: Tensor, output: Tensor) -> Tensor:
    # The caller may be in inference mode, whose tensors cannot take part in a gradient: copies can.
    with torch.inference_mode(False), torch.enable_grad():
        output = output.clone().requires_grad_()
        (score,) = torch.autograd.grad(module.log_likelihood(x.clone(), output).sum(), output)
    return score


def _opposite_draws(n_factors: int) -> Tensor:
    """Two draws of opposite sign, one standard deviation away in every factor."""
    signs = torch.randint(0, 2, (n_factors,), generator=torch.Generator().manual_seed(0)) * 2 - 1
    return torch.stack([signs, -signs])
