"""Kullback-Leibler divergences from the diagonal Gaussian posterior of the factors to their prior."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["kl_correlated_normal", "kl_standard_normal"]


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
