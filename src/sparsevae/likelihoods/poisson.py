"""Counts whose variance is their mean."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from sparsevae.likelihoods.base import SMALLEST_MEAN, Factorised, Parameters

__all__ = ["Poisson", "log_mean", "poisson_log_prob"]


def poisson_log_prob(x: Tensor, log_rate: Tensor) -> Tensor:
    r"""Log density of counts, elementwise, with ℓ the log of the rate.

    .. math:: x \ell - e^\ell - \log x!
    """
    return x * log_rate - log_rate.exp() - torch.lgamma(x + 1.0)


class Poisson(Factorised):
    r"""Counts: :math:`x_j \sim \mathrm{Poisson}(\text{size} \cdot e^{\text{output}_j})`."""

    name = "poisson"
    support = "count"
    uses_size = True

    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        return poisson_log_prob(x, log_mean(output, size))

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return log_mean(output, size).exp()

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return torch.poisson(log_mean(output, size).exp(), generator=generator)

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return torch.log(feature_mean.clamp(min=SMALLEST_MEAN))

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        return feature_mean.clamp(min=SMALLEST_MEAN)


def log_mean(output: Tensor, size: Tensor | None) -> Tensor:
    """Logarithm of the mean of a count: the output, and the size of the row."""
    return output if size is None else output + torch.log(size).unsqueeze(-1)
