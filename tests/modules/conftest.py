"""Small modules and rows that the tests of modules share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEModule

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


def _make_module(
    likelihood="gaussian",
    n_factors=3,
    hidden_sizes=(5, 4),
    *,
    kind=SparseVAEModule,
    replicates=(),
    seed=0,
    **settings,
):
    """A module with no parameter at its start, in float64."""
    generator = torch.Generator().manual_seed(seed)
    config = kind.config_class(n_factors=n_factors, hidden_sizes=hidden_sizes, **settings)
    observation = _make_observation(likelihood)
    module = kind(observation, config, replicates=replicates, generator=generator).double()
    with torch.no_grad():
        for parameter in module.parameters():
            draw = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.2 * draw)
        values = module.nuisance.values()
        if "noise_variance" in values:
            draw = torch.rand(values["noise_variance"].shape, generator=generator)
            values["noise_variance"].copy_(0.5 + draw)
        if isinstance(module, SparseVAEModule):
            module.mask.inclusion_rate.uniform_(0.1, 0.9, generator=generator)
            root = torch.randn(*module.replicates, n_factors, 2 * n_factors, generator=generator)
            covariance = (root @ root.mT).double()
            deviation = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
            if module.config.covariance != "identity":
                correlation = covariance / (deviation.unsqueeze(-1) * deviation.unsqueeze(-2))
                module.factor_covariance.copy_(correlation)
    return module


def _make_rows(likelihood="gaussian", n_samples=8, n_features=N_FEATURES, seed=1):
    """Rows in model units."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n_samples, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(n_samples, n_features, generator=generator, dtype=torch.float64)
    values = {
        "real": z + noise,
        "binary": (z + noise > 0).double(),
        "level": (2.5 + z + noise).round().clamp(0.0, 4.0),
        "count": torch.poisson(2.0 * torch.exp(0.3 * z + 0.3 * noise), generator=generator) + 1.0,
    }
    x = torch.empty(n_samples, n_features, dtype=torch.float64)
    for part, columns in get_likelihood(likelihood, n_features).split(n_features):
        x[:, columns] = values[part.support][:, columns]
    return x


def _make_batch(likelihood="gaussian", n_samples=8, seed=1):
    """The same rows as a module takes them."""
    return _make_observation(likelihood).double().batch(_make_rows(likelihood, n_samples, seed=seed))


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
def make_batch():
    return _make_batch


@pytest.fixture(scope="session")
def make_noise():
    return _make_noise
