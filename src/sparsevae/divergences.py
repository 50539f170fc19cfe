"""Kullback-Leibler divergences of the factors' posterior from their prior: Gaussian, or spike and slab."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

__all__ = ["kl_bernoulli", "kl_correlated_normal", "kl_spike_slab", "kl_standard_normal"]


def kl_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""Divergence of N(μ, diag σ²) from N(0, I), summed over factors.

    .. math:: D_{KL} = -\tfrac12 \sum_k \left[1 + \log\sigma_k^2 - \mu_k^2 - \sigma_k^2\right]

    Parameters
    ----------
    mean, log_variance : Tensor of shape (..., n_samples, n_factors)

    Returns
    -------
    Tensor of shape (..., n_samples)

    Notes
    -----
    Appendix "Derivation of ELBO for identity prior covariance". :math:`\sigma^2 - 1` is taken by ``expm1``,
    so that a posterior close to the prior does not lose its divergence to rounding.
    """
    return 0.5 * (mean.square() + torch.expm1(log_variance) - log_variance).sum(-1)


def kl_correlated_normal(mean: Tensor, log_variance: Tensor, covariance: Tensor) -> Tensor:
    r"""Divergence of N(μ, diag σ²) from N(0, Σ_z).

    .. math:: D_{KL} = -\tfrac12 \left\{\sum_k [1 + \log\sigma_k^2]
        - \mathrm{tr}(\Sigma_z^{-1}\mathrm{diag}(\sigma^2)) - \mu^\top\Sigma_z^{-1}\mu
        - \log|\Sigma_z|\right\}

    Parameters
    ----------
    mean, log_variance : Tensor of shape (..., n_samples, n_factors)
    covariance : Tensor of shape (..., n_factors, n_factors)
        Symmetric and positive definite.

    Returns
    -------
    Tensor of shape (..., n_samples)

    Notes
    -----
    Appendix "Derivation of ELBO for general prior covariance" (`appendix:elbo_general_sigma`). With
    :math:`\Sigma_z = LL^\top` the quadratic form is :math:`\|L^{-1}\mu\|^2`, and the diagonal of
    :math:`\Sigma_z^{-1}` is the sum of squares down each column of :math:`L^{-1}`.
    """
    factor = torch.linalg.cholesky(covariance)
    identity = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    inverse_factor = torch.linalg.solve_triangular(factor, identity, upper=False)
    log_determinant = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    precision_diagonal = inverse_factor.square().sum(-2)  # ... × factor
    trace = (log_variance.exp() * precision_diagonal.unsqueeze(-2)).sum(-1)
    quadratic = (mean @ inverse_factor.mT).square().sum(-1)
    entropy_terms = (1.0 + log_variance).sum(-1)
    return 0.5 * (trace + quadratic + log_determinant.unsqueeze(-1) - entropy_terms)


def kl_bernoulli(logits: Tensor, prior_logits: Tensor) -> Tensor:
    r"""Divergence of one coin from another, elementwise, with both given by their log-odds.

    .. math:: D_{KL} = \gamma \log\frac{\gamma}{\gamma'} + (1-\gamma) \log\frac{1-\gamma}{1-\gamma'}

    Parameters
    ----------
    logits, prior_logits : Tensor
        Of shapes that broadcast.

    Notes
    -----
    Log-odds keep both logarithms finite where a probability rounds to 0 or 1.
    """
    heads = torch.sigmoid(logits) * (logsigmoid(logits) - logsigmoid(prior_logits))
    tails = torch.sigmoid(-logits) * (logsigmoid(-logits) - logsigmoid(-prior_logits))
    return heads + tails


def kl_spike_slab(
    mean: Tensor,
    log_variance: Tensor,
    logits: Tensor,
    prior_mean: Tensor,
    prior_log_variance: Tensor,
    prior_logits: Tensor,
) -> Tensor:
    r"""Divergence between two spike-and-slab distributions with a common spike at zero, summed over factors.

    Each is :math:`\gamma_k N(\mu_k, \sigma_k^2) + (1-\gamma_k)\,\delta_0`, and

    .. math:: D_{KL} = \sum_k \left\{ \gamma_k \left[\log\frac{\sigma'_k}{\sigma_k}
        + \frac{\sigma_k^2 + (\mu_k - \mu'_k)^2}{2\sigma_k'^2} - \tfrac12\right]
        + \gamma_k\log\frac{\gamma_k}{\gamma'_k}
        + (1-\gamma_k)\log\frac{1-\gamma_k}{1-\gamma'_k} \right\}

    Parameters
    ----------
    mean, log_variance, logits : Tensor of shape (..., n_factors)
        Slab and log-odds of the slab.
    prior_mean, prior_log_variance, prior_logits : Tensor of shape (..., n_factors)
        The same of the second distribution; shapes broadcast.

    Returns
    -------
    Tensor of shape (...)

    Notes
    -----
    Tonolini et al. (2020). γ multiplies the whole of the slab's divergence, and what stands over
    :math:`2\sigma'^2` is a variance. As in `kl_standard_normal` the variances enter by ``expm1``.
    """
    difference = log_variance - prior_log_variance
    distance = (mean - prior_mean).square() * torch.exp(-prior_log_variance)
    slab = 0.5 * (torch.expm1(difference) - difference + distance)
    return (torch.sigmoid(logits) * slab + kl_bernoulli(logits, prior_logits)).sum(-1)
