"""The five families: real values, words, zeros and ones, counts, overdispersed counts."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Generator, Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods.base import Likelihood
from sparsevae.likelihoods.densities import (
    bernoulli_log_prob,
    gaussian_log_prob,
    multinomial_log_prob,
    negative_binomial_log_prob,
    poisson_log_prob,
)

__all__ = ["Bernoulli", "Gaussian", "Multinomial", "NegativeBinomial", "Poisson"]

_SMALLEST_MEAN = 1e-7  # a feature that is always zero starts at a finite output


class _Factorised(Likelihood):
    """A likelihood whose features are independent given the output: a sum of elementwise log densities."""

    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        if observed is None:
            return self._log_density(x, output, dispersion, size).sum(-1)
        # Filled before as well as masked after: a NaN in x would otherwise reach the gradient as 0 · NaN.
        log_density = self._log_density(torch.where(observed, x, 0.0), output, dispersion, size)
        return torch.where(observed, log_density, 0.0).sum(-1)

    @abstractmethod
    def _log_density(
        self, x: Tensor, output: Tensor, dispersion: Tensor | None, size: Tensor | None
    ) -> Tensor: ...


class Gaussian(_Factorised):
    r"""Real values: :math:`x_j \sim N(\text{output}_j, \sigma_j^2)`, the model of `eq:sparse_vae_model`."""

    name = "gaussian"
    support = "real"
    has_dispersion = True

    def _log_density(
        self, x: Tensor, output: Tensor, dispersion: Tensor | None, size: Tensor | None
    ) -> Tensor:
        return gaussian_log_prob(x, output, _per_feature(dispersion, self))

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return output

    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        noise = torch.randn(output.shape, dtype=output.dtype, device=output.device, generator=generator)
        return output + _per_feature(dispersion, self).sqrt() * noise

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return feature_mean

    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        information = 1.0 / _per_feature(dispersion, self).squeeze(-2)
        return torch.broadcast_tensors(information, feature_mean)[0]


class Multinomial(Likelihood):
    r"""Words of a document: :math:`x \sim \mathrm{Multinomial}(n, \mathrm{softmax}(\text{output}))`."""

    name = "multinomial"
    support = "count"
    factorised = False

    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        return multinomial_log_prob(x, output, observed)

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        """Expected words; without ``total``, shares that sum to one."""
        share = torch.softmax(output, -1)
        return share if total is None else share * total.unsqueeze(-1)

    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
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
        return torch.log(share.clamp(min=_SMALLEST_MEAN))

    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        return feature_mean.clamp(min=_SMALLEST_MEAN)


class Bernoulli(_Factorised):
    r"""Zeros and ones: :math:`x_j \sim \mathrm{Bernoulli}(\mathrm{sigmoid}(\text{output}_j))`."""

    name = "bernoulli"
    support = "binary"

    def _log_density(
        self, x: Tensor, output: Tensor, dispersion: Tensor | None, size: Tensor | None
    ) -> Tensor:
        return bernoulli_log_prob(x, output)

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return torch.sigmoid(output)

    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return torch.bernoulli(torch.sigmoid(output), generator=generator)

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return torch.logit(feature_mean, eps=_SMALLEST_MEAN)

    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        chance = feature_mean.clamp(_SMALLEST_MEAN, 1.0 - _SMALLEST_MEAN)
        return chance * (1.0 - chance)


class Poisson(_Factorised):
    r"""Counts: :math:`x_j \sim \mathrm{Poisson}(\text{size} \cdot e^{\text{output}_j})`."""

    name = "poisson"
    support = "count"
    uses_size = True

    def _log_density(
        self, x: Tensor, output: Tensor, dispersion: Tensor | None, size: Tensor | None
    ) -> Tensor:
        return poisson_log_prob(x, _log_mean(output, size))

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return _log_mean(output, size).exp()

    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return torch.poisson(_log_mean(output, size).exp(), generator=generator)

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return torch.log(feature_mean.clamp(min=_SMALLEST_MEAN))

    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        return feature_mean.clamp(min=_SMALLEST_MEAN)


class NegativeBinomial(Poisson):
    r"""Counts of mean :math:`m = \text{size} \cdot e^{\text{output}_j}` and variance :math:`m + m^2/r_j`."""

    name = "negative_binomial"
    has_dispersion = True

    def _log_density(
        self, x: Tensor, output: Tensor, dispersion: Tensor | None, size: Tensor | None
    ) -> Tensor:
        return negative_binomial_log_prob(x, _log_mean(output, size), _per_feature(dispersion, self))

    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Draw a Poisson count whose rate is a gamma variable of mean m and shape r."""
        shape = _per_feature(dispersion, self).expand(output.shape).contiguous()
        gamma = torch._standard_gamma(shape, generator=generator) / shape
        return torch.poisson(gamma * _log_mean(output, size).exp(), generator=generator)

    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        mean, shape = feature_mean.clamp(min=_SMALLEST_MEAN), _per_feature(dispersion, self).squeeze(-2)
        return mean * shape / (mean + shape)


def _log_mean(output: Tensor, size: Tensor | None) -> Tensor:
    return output if size is None else output + torch.log(size).unsqueeze(-1)


def _per_feature(dispersion: Tensor | None, likelihood: Likelihood) -> Tensor:
    if dispersion is None:
        raise ParameterError(
            f"Expected dispersion, one positive number per feature, for the {likelihood.name} likelihood; "
            "got None. Pass dispersion= with shape (n_features,)."
        )
    return dispersion.unsqueeze(-2)
