"""Small modules and rows that the tests of modules share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import FactorModule, Observation

N_FEATURES = 6


def _make_observation(likelihood="gaussian", n_features=N_FEATURES, **units):
    """An observation with units that are not trivial."""
    parts = get_likelihood(likelihood, n_features)
    real = Observation.blank(parts, n_features).real_columns
    steps = np.arange(n_features)
    values = {
        "location": np.where(real, 0.1 * steps, 0.0),
        "scale": np.where(real, 1.0 + 0.2 * steps, 1.0),
        "input_location": 0.05 * steps,
        "input_scale": 1.0 + 0.1 * steps,
        "mean_total": 12.0,
        "mean_words": 9.0,
    }
    return Observation(parts, **{**values, **units})


def _make_module(likelihood="gaussian", n_factors=3, hidden_sizes=(5, 4), *, seed=0, **options):
    """A module with no parameter at its start, in float64."""
    generator = torch.Generator().manual_seed(seed)
    module = FactorModule(
        _make_observation(likelihood), n_factors, hidden_sizes, generator=generator, **options
    ).double()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            draw = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if name == "mask" and not parameter.requires_grad:
                continue
            parameter.add_(0.2 * draw)
        module.noise_variance.copy_(0.5 + torch.rand(module.noise_variance.shape, generator=generator))
        module.inclusion_rate.uniform_(0.1, 0.9, generator=generator)
        root = torch.randn(*module.replicates, n_factors, 2 * n_factors, generator=generator)
        covariance = (root @ root.mT).double()
        deviation = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        if options.get("covariance", "learned") != "identity":
            module.factor_covariance.copy_(covariance / (deviation.unsqueeze(-1) * deviation.unsqueeze(-2)))
    return module


def _make_rows(likelihood="gaussian", n_samples=8, n_features=N_FEATURES, seed=1):
    """Rows in model units."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n_samples, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(n_samples, n_features, generator=generator, dtype=torch.float64)
    if likelihood == "gaussian":
        return z + noise
    if likelihood == "bernoulli":
        return (z + noise > 0).double()
    return torch.poisson(2.0 * torch.exp(0.3 * z + 0.3 * noise), generator=generator) + 1.0


def _make_noise(n_samples=8, n_factors=3, seed=2):
    """Standard normal draws."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_samples, n_factors, generator=generator, dtype=torch.float64)


@pytest.fixture(scope="session")
def make_observation():
    return _make_observation


@pytest.fixture(scope="session")
def make_module():
    return _make_module


@pytest.fixture(scope="session")
def make_rows():
    return _make_rows


@pytest.fixture(scope="session")
def make_noise():
    return _make_noise
