"""Small tables and models, and a linear module whose slopes and variances are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation

from ..tables import LIKELIHOODS
from .helpers import FEW_LOADINGS, LOADINGS, new_module


def pytest_generate_tests(metafunc):
    """Tests that take `likelihood` run for each of them, and for a table of several kinds."""
    if "likelihood" in metafunc.fixturenames:
        metafunc.parametrize("likelihood", [*LIKELIHOODS, "mixed"])


@pytest.fixture
def linear():
    """A linear model, whose slopes are its loadings times the units of the features."""
    units = np.array([1.0, 10.0, 2.0, 1.0])
    observation = Observation(get_likelihood("gaussian", 4), np.ones(4), units, np.zeros(4), np.ones(4))
    module = new_module(observation, LOADINGS)
    module.noise_variance.fill_(0.25)
    z = torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
    return module, z / z.square().mean(0).sqrt(), units


@pytest.fixture(scope="session")
def made(linear_model):
    """A fitted linear model of four features in different units, and its table."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((400, 2))
    noisy = factors @ FEW_LOADINGS.T + 0.3 * rng.standard_normal((400, 4))
    X = noisy * np.array([1.0, 10.0, 2.0, 1.0]) + 5.0
    return linear_model(X, factors, FEW_LOADINGS), X
