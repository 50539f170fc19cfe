"""Words of a document, given how many they are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods.base import SMALLEST_MEAN, Likelihood, Parameters

__all__ = ["Multinomial", "multinomial_log_prob"]

_FLOOR = 1e-6  # smallest reconstructed probability of a word


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


class Multinomial(Likelihood):
    r"""Words of a document: :math:`x \sim \mathrm{Multinomial}(n, \mathrm{softmax}(\text{output}))`."""

    name = "multinomial"
    support = "count"
    factorised = False

    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        return multinomial_log_prob(x, output, observed)

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        """Expected words; without ``total``, probabilities."""
        share = torch.softmax(output, -1)
        return share if total is None else share * total.unsqueeze(-1)

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Draw word after word, each a binomial part of what is left: memory does not grow with the total."""
        if total is None:
            raise ParameterError(
                "Expected total, the number of words per sample, for the multinomial likelihood; got None. "
                "Pass total= with one number per sample."
            )
        share = torch.softmax(output.double(), -1)
        rest = share.flip(-1).cumsum(-1).flip(-1)
        chance = (share / rest).nan_to_num(0.0).clamp(max=1.0)
        left = total.double().expand(share.shape[:-1])
        words = []
        for j in range(share.shape[-1] - 1):
            words.append(torch.binomial(left, chance[..., j].contiguous(), generator=generator))
            left = left - words[-1]
        return torch.stack([*words, left], -1).to(output.dtype)

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        share = feature_mean / feature_mean.sum(-1, keepdim=True)
        return torch.log(share.clamp(min=SMALLEST_MEAN))

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        return feature_mean.clamp(min=SMALLEST_MEAN)

    def possible(self, mean: np.ndarray) -> np.ndarray:
        weights = np.maximum(mean, 0.0)
        sums = weights.sum(1, keepdims=True)
        return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), 1.0 / mean.shape[1]) + _FLOOR
