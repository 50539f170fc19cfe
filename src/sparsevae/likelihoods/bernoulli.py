"""Zeros and ones."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from sparsevae.likelihoods.base import SMALLEST_MEAN, Factorised, Parameters

__all__ = ["Bernoulli", "bernoulli_log_prob"]

_FLOOR = 1e-6  # distance of a reconstructed probability from 0 and 1


def bernoulli_log_prob(x: Tensor, logits: Tensor) -> Tensor:
    r"""Log density of zeros and ones, elementwise, with ℓ the log-odds of a one.

    .. math:: x \ell - \log(1 + e^\ell)
    """
    return x * logits - F.softplus(logits)


class Bernoulli(Factorised):
    r"""Zeros and ones: :math:`x_j \sim \mathrm{Bernoulli}(\mathrm{sigmoid}(\text{output}_j))`."""

    name = "bernoulli"
    support = "binary"

    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        return bernoulli_log_prob(x, output)

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return torch.sigmoid(output)

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return torch.bernoulli(torch.sigmoid(output), generator=generator)

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return torch.logit(feature_mean, eps=SMALLEST_MEAN)

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        chance = feature_mean.clamp(SMALLEST_MEAN, 1.0 - SMALLEST_MEAN)
        return chance * (1.0 - chance)

    def possible(self, mean: np.ndarray) -> np.ndarray:
        return np.clip(mean, _FLOOR, 1.0 - _FLOOR)
