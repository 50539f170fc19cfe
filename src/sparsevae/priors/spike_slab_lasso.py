r"""The Spike-and-Slab Lasso prior on the mask, as pure functions on tensors.

.. math::
    \eta_k \sim \mathrm{Beta}(a, b), \quad \gamma_{jk} \sim \mathrm{Bernoulli}(\eta_k), \quad
    w_{jk} \sim \gamma_{jk}\,\psi_1(w_{jk}) + (1-\gamma_{jk})\,\psi_0(w_{jk}), \quad
    \psi_s(w) = \tfrac{\lambda_s}{2} e^{-\lambda_s |w|}

Conventions: a mask has shape (..., n_features, n_factors) and an inclusion rate (..., n_factors), where
``...`` stands for replicates (several starts side by side) and may be absent. The Laplace rates are numbers,
or tensors that broadcast against the mask.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = [
    "inclusion_probability",
    "log_inclusion_prior",
    "log_prior",
    "penalty_weight",
    "proximal_step",
    "update_inclusion_rate",
]


def inclusion_probability(
    mask: Tensor, inclusion_rate: Tensor, *, spike_rate: float | Tensor, slab_rate: float | Tensor
) -> Tensor:
    r"""Posterior probability that each mask entry belongs to the slab (the E-step).

    .. math:: E[\gamma_{jk}] =
        \left[1 + \frac{1-\eta_k}{\eta_k}\frac{\psi_0(w_{jk})}{\psi_1(w_{jk})}\right]^{-1}

    Parameters
    ----------
    mask : Tensor of shape (..., n_features, n_factors)
    inclusion_rate : Tensor of shape (..., n_factors)
    spike_rate, slab_rate : float or Tensor
        Laplace rates of the spike and the slab.

    Returns
    -------
    Tensor of shape (..., n_features, n_factors)

    Notes
    -----
    Algorithm 1 (`alg:sparse_vae`). Written as a log-odds so that large ``|w|`` cannot overflow.
    """
    log_odds = torch.logit(inclusion_rate).unsqueeze(-2) + (_log(slab_rate) - _log(spike_rate))
    return torch.sigmoid(log_odds + (spike_rate - slab_rate) * mask.abs())


def update_inclusion_rate(inclusion: Tensor, a: float, b: float) -> Tensor:
    r"""The inclusion rates that maximise the expected log prior at a given E[γ].

    .. math:: \eta_k = \frac{\sum_{j=1}^G E[\gamma_{jk}] + a - 1}{a + b + G - 2}

    Parameters
    ----------
    inclusion : Tensor of shape (..., n_features, n_factors)
        E[γ], from `inclusion_probability`.
    a, b : float
        Parameters of the Beta prior, both positive.

    Returns
    -------
    Tensor of shape (..., n_factors)
        Strictly between 0 and 1.

    Notes
    -----
    Algorithm 1 (`alg:sparse_vae`). A rate of exactly 0 could never leave it again and, with a < 1 (the finite
    Indian buffet process), the formula itself goes below 0: the result is kept one rounding unit away from
    both ends.
    """
    limits = torch.finfo(inclusion.dtype)
    successes = inclusion.sum(-2) + (a - 1.0)
    trials = max(a + b + inclusion.shape[-2] - 2.0, limits.tiny)
    return (successes / trials).clamp(limits.eps, 1.0 - limits.eps)


def penalty_weight(inclusion: Tensor, *, spike_rate: float | Tensor, slab_rate: float | Tensor) -> Tensor:
    r"""Weight of :math:`|w_{jk}|` in the M-step.

    .. math:: \lambda^*_{jk} = \lambda_1 E[\gamma_{jk}] + \lambda_0 (1 - E[\gamma_{jk}])

    Parameters
    ----------
    inclusion : Tensor of shape (..., n_features, n_factors)
        E[γ], from `inclusion_probability`.
    spike_rate, slab_rate : float or Tensor

    Returns
    -------
    Tensor of shape (..., n_features, n_factors)

    Notes
    -----
    Appendix "Inference" (`appendix:inference`). The objective to be *maximised* has :math:`-\lambda^*|w|`;
    the appendix prints the term with a plus sign.
    """
    return spike_rate + (slab_rate - spike_rate) * inclusion


def proximal_step(mask: Tensor, threshold: float | Tensor) -> Tensor:
    r"""Exact minimiser of :math:`\tfrac12 (u - w)^2 + t |u|`: soft thresholding.

    .. math:: u = \mathrm{sign}(w)\,\max(|w| - t, 0)

    Parameters
    ----------
    mask : Tensor of shape (..., n_features, n_factors)
        The mask after the gradient step on the likelihood alone.
    threshold : float or Tensor broadcastable to the mask
        Step size times `penalty_weight` over n_samples; not negative.

    Returns
    -------
    Tensor of shape (..., n_features, n_factors)
        With exact zeros where ``|w| <= t``.

    Notes
    -----
    Written as ``w - clamp(w, -t, t)``, which is the same and leaves +0.0 where the product with the sign
    would leave -0.0.
    """
    if isinstance(threshold, Tensor):
        return mask - torch.minimum(torch.maximum(mask, -threshold), threshold)
    return mask - mask.clamp(-threshold, threshold)


def log_prior(
    mask: Tensor, inclusion_rate: Tensor, *, spike_rate: float | Tensor, slab_rate: float | Tensor
) -> Tensor:
    r"""Log density of the mask with γ summed out.

    .. math:: \log p(W \mid \eta) =
        \sum_{j,k} \log\left[\eta_k \psi_1(w_{jk}) + (1-\eta_k) \psi_0(w_{jk})\right]

    Parameters
    ----------
    mask : Tensor of shape (..., n_features, n_factors)
    inclusion_rate : Tensor of shape (..., n_factors)
    spike_rate, slab_rate : float or Tensor

    Returns
    -------
    Tensor of shape (...)

    Notes
    -----
    The prior term of `eq:exact_map_objective`. Its gradient in ``|w|`` is minus `penalty_weight`. Two fits
    may be compared by it at equal rates only: a change of the spike rate changes the normalising constants.
    """
    rate = inclusion_rate.unsqueeze(-2)
    slab = torch.log(rate) + _log(slab_rate / 2) - slab_rate * mask.abs()
    spike = torch.log1p(-rate) + _log(spike_rate / 2) - spike_rate * mask.abs()
    return torch.logaddexp(slab, spike).sum((-2, -1))


def log_inclusion_prior(inclusion_rate: Tensor, a: float, b: float) -> Tensor:
    r"""Log density of the inclusion rates, summed over factors.

    .. math:: \log p(\eta) = \sum_k \left[(a-1)\log\eta_k + (b-1)\log(1-\eta_k) - \log B(a, b)\right]

    Parameters
    ----------
    inclusion_rate : Tensor of shape (..., n_factors)
    a, b : float
        Parameters of the Beta prior, both positive.

    Returns
    -------
    Tensor of shape (...)
    """
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    log_kernel = torch.xlogy(a - 1.0, inclusion_rate) + torch.special.xlog1py(b - 1.0, -inclusion_rate)
    return (log_kernel - log_beta).sum(-1)


def _log(rate: float | Tensor) -> float | Tensor:
    return torch.log(rate) if isinstance(rate, Tensor) else math.log(rate)
