"""Counts that vary more than Poisson counts do."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from sparsevae.likelihoods.base import SMALLEST_MEAN, Parameters, per_feature
from sparsevae.likelihoods.poisson import Poisson, log_mean

__all__ = ["NegativeBinomial", "negative_binomial_log_prob"]

_DISPERSION = (1e-3, 1e6)  # range of the inverse dispersion by moments; above it a count is Poisson


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


class NegativeBinomial(Poisson):
    r"""Counts of mean :math:`m = \text{size} \cdot e^{\text{output}_j}` and variance :math:`m + m^2/r_j`.

    Parameter of the distribution: ``log_dispersion``, the logarithm of the inverse dispersion :math:`r_j`.
    """

    name = "negative_binomial"

    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        return negative_binomial_log_prob(x, log_mean(output, size), self._inverse_dispersion(parameters))

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Draw a Poisson count whose rate is a gamma variable of mean m and shape r."""
        shape = self._inverse_dispersion(parameters).expand(output.shape).contiguous()
        gamma = torch._standard_gamma(shape, generator=generator) / shape
        return torch.poisson(gamma * log_mean(output, size).exp(), generator=generator)

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        mean, shape = feature_mean.clamp(min=SMALLEST_MEAN), self._inverse_dispersion(parameters).squeeze(-2)
        return mean * shape / (mean + shape)

    def initial_parameters(self, n_features: int, replicates: tuple[int, ...] = ()) -> dict[str, Tensor]:
        return {"log_dispersion": nn.Parameter(torch.zeros(*replicates, n_features))}

    def parameters_from_residuals(
        self,
        squares: np.ndarray,
        means: np.ndarray,
        squared_means: np.ndarray,
        n_samples: int | np.ndarray,
        spread: np.ndarray,
    ) -> dict[str, np.ndarray]:
        # Var(x) = m + m²/r.
        excess = np.maximum(squares - means, 0.0)
        ratio = np.full(len(squares), np.inf)
        np.divide(squared_means, excess, out=ratio, where=excess > 0)
        return {"inverse_dispersion": np.clip(ratio, *_DISPERSION)}

    def _inverse_dispersion(self, parameters: Parameters) -> Tensor:
        return per_feature(parameters, "log_dispersion", self).exp()


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
