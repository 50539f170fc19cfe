"""Real values with normal noise, whose variance has a prior and a closed form."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Generator, Tensor

from sparsevae.likelihoods.base import Factorised, Parameters, per_feature
from sparsevae.priors.noise import calibrate_noise_scale, map_noise_variance, noise_log_prior

__all__ = ["NU", "Gaussian", "gaussian_log_prob"]

NU = 3.0
"""Degrees of freedom of the noise prior, appendix "Sparse VAE settings"."""

_NOISE_SCALE = 0.05  # ξ where nothing calibrates it


def gaussian_log_prob(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    r"""Log density of real values, elementwise.

    .. math:: \log N(x; \mu, \sigma^2) = -\tfrac12 \left[\log 2\pi\sigma^2 + (x-\mu)^2/\sigma^2\right]
    """
    return -0.5 * ((x - mean).square() / variance + torch.log(2.0 * math.pi * variance))


class Gaussian(Factorised):
    r"""Real values: :math:`x_j \sim N(\text{output}_j, \sigma_j^2)`, the model of `eq:sparse_vae_model`.

    Parameters of the distribution: ``noise_variance`` :math:`\sigma_j^2`, and the scale ``noise_scale``
    :math:`\xi_j` of its inverse-gamma prior.
    """

    name = "gaussian"
    support = "real"
    shared = frozenset({"noise_scale"})

    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        return gaussian_log_prob(x, output, per_feature(parameters, "noise_variance", self))

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return output

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        noise = torch.randn(output.shape, dtype=output.dtype, device=output.device, generator=generator)
        return output + per_feature(parameters, "noise_variance", self).sqrt() * noise

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return feature_mean

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        information = 1.0 / per_feature(parameters, "noise_variance", self).squeeze(-2)
        return torch.broadcast_tensors(information, feature_mean)[0]

    def initial_parameters(self, n_features: int, replicates: tuple[int, ...] = ()) -> dict[str, Tensor]:
        return {
            "noise_variance": torch.ones(*replicates, n_features),
            "noise_scale": torch.full((n_features,), _NOISE_SCALE),
        }

    def statistics(
        self, x: Tensor, output: Tensor, observed: Tensor | None = None, weight: Tensor | None = None
    ) -> dict[str, Tensor]:
        squares = (x - output).square()
        if observed is None:
            seen = torch.full(x.shape[-1:], x.shape[-2], device=x.device)
        else:
            squares, seen = torch.where(observed, squares, 0.0), observed.sum(-2)
        if weight is not None:
            rows = weight.to(x).unsqueeze(-1)
            there = torch.ones_like(x) if observed is None else observed
            squares, seen = squares * rows, (there * rows).sum(-2)
        return {"squares": squares.sum(-2), "seen": seen}

    def update(self, parameters: Parameters, sums: Parameters, n_samples: float) -> dict[str, Tensor]:
        squares = sums["squares"] * (n_samples / sums["seen"])
        variance = map_noise_variance(squares, n_samples, NU, parameters["noise_scale"])
        # A feature that no step has drawn has no squares (0/0) and keeps its variance.
        return {"noise_variance": torch.where(sums["seen"] > 0, variance, parameters["noise_variance"])}

    def log_prior(self, parameters: Parameters) -> Tensor:
        return noise_log_prior(parameters["noise_variance"], NU, parameters["noise_scale"])

    def noise_variance(self, parameters: Parameters) -> Tensor:
        return parameters["noise_variance"]

    def parameters_from_residuals(
        self,
        squares: np.ndarray,
        means: np.ndarray,
        squared_means: np.ndarray,
        n_samples: int | np.ndarray,
        spread: np.ndarray,
    ) -> dict[str, np.ndarray]:
        xi = torch.as_tensor(calibrate_noise_scale(np.ones(1)) * np.where(spread > 0, spread, 1.0))
        count = torch.as_tensor(n_samples)
        return {"noise_variance": map_noise_variance(torch.as_tensor(squares), count, NU, xi).numpy()}
