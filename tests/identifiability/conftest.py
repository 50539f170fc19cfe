"""Hand-made modules whose curves, slopes and anchors are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch

from sparsevae.inspection.codes import Codes
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEConfig, SparseVAEModule

NOISE = 0.3


class Made(NamedTuple):
    """A module, rows that it generates, and their codes."""

    module: SparseVAEModule
    X: np.ndarray
    factors: np.ndarray
    codes: Codes


@pytest.fixture
def make_module() -> Callable[..., Made]:
    """Features that rise with slope a where the factor is positive and with slope b where it is negative."""

    def make(
        rising: np.ndarray,
        falling: np.ndarray,
        *,
        correlation: float = 0.3,
        n_samples: int = 600,
        likelihood: str = "gaussian",
        covariance: str = "fixed",
        seed: int = 0,
    ) -> Made:
        rising, falling = np.asarray(rising, dtype=float), np.asarray(falling, dtype=float)
        n_features, n_factors = rising.shape
        rng = np.random.default_rng(seed)
        C = np.full((n_factors, n_factors), correlation)
        np.fill_diagonal(C, 1.0)
        factors = rng.standard_normal((n_samples, n_factors)) @ np.linalg.cholesky(C).T
        output = np.maximum(factors, 0.0) @ rising.T - np.maximum(-factors, 0.0) @ falling.T
        X = output + NOISE * rng.standard_normal(output.shape)
        if likelihood != "gaussian":
            X = rng.poisson(np.exp(0.5 * output + 1.0)).astype(float)
        observation = Observation.blank(get_likelihood(likelihood, n_features), n_features)
        config = SparseVAEConfig(n_factors, (2 * n_factors,), covariance=covariance)
        module = SparseVAEModule(observation, config, generator=torch.Generator().manual_seed(0))
        support = (rising != 0) | (falling != 0)
        encoder = np.linalg.lstsq(X - X.mean(0), factors, rcond=None)[0].T
        with torch.no_grad():
            module.mask.weight.copy_(torch.as_tensor(support, dtype=torch.float32))
            module.decoder.first.copy_(torch.cat([torch.eye(n_factors), -torch.eye(n_factors)]))
            module.decoder.heads.copy_(torch.as_tensor(np.hstack([rising, -falling]), dtype=torch.float32))
            module.decoder.intercept.zero_()
            module.noise_variance.fill_(NOISE**2)
            module.factor_covariance.copy_(torch.as_tensor(C, dtype=torch.float32))
            module.encoder.mean_weight.zero_()
            module.encoder.mean_bias.zero_()
            module.encoder.linear.copy_(torch.as_tensor(encoder, dtype=torch.float32))
        module.eval().requires_grad_(False)
        return Made(module, X, factors, Codes(module, X))

    return make
