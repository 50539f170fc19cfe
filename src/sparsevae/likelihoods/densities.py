"""Log densities as pure functions on tensors, safe in float32 at any finite decoder output."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = [
    "bernoulli_log_prob",
    "gaussian_log_prob",
    "multinomial_log_prob",
    "negative_binomial_log_prob",
    "poisson_log_prob",
]


def gaussian_log_prob(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    r"""Log density of real values, elementwise.

    .. math:: \log N(x; \mu, \sigma^2) = -\tfrac12 \left[\log 2\pi\sigma^2 + (x-\mu)^2/\sigma^2\right]
    """
    return -0.5 * ((x - mean).square() / variance + torch.log(2.0 * math.pi * variance))


def bernoulli_log_prob(x: Tensor, logits: Tensor) -> Tensor:
    r"""Log density of zeros and ones, elementwise, with ℓ the log-odds of a one.

    .. math:: x \ell - \log(1 + e^\ell)
    """
    return x * logits - F.softplus(logits)


def poisson_log_prob(x: Tensor, log_rate: Tensor) -> Tensor:
    r"""Log density of counts, elementwise, with ℓ the log of the rate.

    .. math:: x \ell - e^\ell - \log x!
    """
    return x * log_rate - log_rate.exp() - torch.lgamma(x + 1.0)


def negative_binomial_log_prob(x: Tensor, log_mean: Tensor, inverse_dispersion: Tensor) -> Tensor:
    r"""Log density of counts with mean :math:`m = e^\ell` and variance :math:`m + m^2/r`, elementwise.

    .. math:: \log\frac{\Gamma(x+r)}{\Gamma(r)\,x!} + r\log\frac{r}{r+m} + x\log\frac{m}{r+m}
        = x\ell - (x+r)\log\left(1 + \tfrac{m}{r}\right)
        + \log\frac{\Gamma(x+r)}{\Gamma(r)\,r^x} - \log x!

    Parameters
    ----------
    x, log_mean : Tensor of shape (..., n_samples, n_features)
    inverse_dispersion : Tensor broadcastable to x
        r > 0; the Poisson distribution is the limit as r grows.

    Returns
    -------
    Tensor of shape (..., n_samples, n_features)

    Notes
    -----
    The right-hand side has no term that grows with r, so float32 keeps its digits near the Poisson limit.
    """
    r = inverse_dispersion
    log_one_plus = F.softplus(log_mean - torch.log(r))
    return x * log_mean - (x + r) * log_one_plus + _log_rising_ratio(x, r) - torch.lgamma(x + 1.0)


def multinomial_log_prob(x: Tensor, logits: Tensor, observed: Tensor | None = None) -> Tensor:
    r"""Log density of word counts, summed over features.

    .. math:: \log\frac{n!}{\prod_j x_j!} + \sum_j x_j \log\mathrm{softmax}(\ell)_j, \qquad n = \sum_j x_j

    Parameters
    ----------
    x, logits : Tensor of shape (..., n_samples, n_features)
    observed : boolean Tensor of shape (..., n_samples, n_features), optional
        A word that is not observed leaves the softmax too: the density is that of the observed words given
        how many of them there are.

    Returns
    -------
    Tensor of shape (..., n_samples)
    """
    if observed is None:
        log_share = torch.log_softmax(logits, -1)
    else:
        x = torch.where(observed, x, 0.0)
        # The lowest finite number rather than -inf, whose gradient is NaN in a row with nothing observed.
        lowest = torch.finfo(logits.dtype).min
        log_share = torch.log_softmax(torch.where(observed, logits, lowest), -1)
        log_share = torch.where(observed, log_share, 0.0)
    log_coefficient = torch.lgamma(x.sum(-1) + 1.0) - torch.lgamma(x + 1.0).sum(-1)
    return log_coefficient + (x * log_share).sum(-1)


def _log_rising_ratio(x: Tensor, r: Tensor) -> Tensor:
    r""":math:`\log\Gamma(x+r) - \log\Gamma(r) - x\log r`, which goes to 0 as r grows.

    The three terms are of size r log r and cancel. Hence :math:`\Gamma(y) = \Gamma(y+4)/[y(y+1)(y+2)(y+3)]`
    and Stirling's series at y + 4, with the large parts taken off by hand; also quicker than two ``lgamma``.
    """
    shifted = r + 4.0
    rising = (1.0 + x / r) * (1.0 + x / (r + 1.0)) * (1.0 + x / (r + 2.0)) * (1.0 + x / (r + 3.0))
    leading = (x + shifted - 0.5) * torch.log1p(x / shifted) + x * (torch.log1p(4.0 / r) - 1.0)
    return leading - torch.log(rising) + (_stirling_tail(x + shifted) - _stirling_tail(shifted))


def _stirling_tail(y: Tensor) -> Tensor:
    r"""What Stirling's series adds to :math:`(y - \tfrac12)\log y - y + \tfrac12\log 2\pi`."""
    inverse = 1.0 / y
    square = inverse.square()
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
