"""A small table with two factors, and modules to train on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import FactorModule, Observation
from sparsevae.training import Batches, Table


def _make_table(n_samples=48, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_samples, 2))
    loadings = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.7, 0.7]])
    return (z @ loadings.T + 0.3 * rng.standard_normal((n_samples, 5))).astype(np.float32)


@pytest.fixture(scope="session")
def make_table():
    return _make_table


@pytest.fixture(scope="session")
def make_module():
    def make(likelihood="gaussian", n_factors=2, hidden_sizes=(6,), *, seed=0, **options):
        observation = Observation.blank(get_likelihood(likelihood, 5), 5)
        generator = torch.Generator().manual_seed(seed)
        return FactorModule(observation, n_factors, hidden_sizes, generator=generator, **options)

    return make


@pytest.fixture(scope="session")
def make_batches():
    def make(module, X=None, *, batch_size=16, seed=0, rows=None):
        table = Table(_make_table() if X is None else X, module.observation)
        rows = torch.arange(table.n_samples) if rows is None else rows
        return Batches(table, rows, batch_size, torch.Generator().manual_seed(seed))

    return make
