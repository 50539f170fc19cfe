"""A small table with two factors, and modules to train on it; the tests of fitting use them too."""

from __future__ import annotations

import numpy as np
import torch

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import (
    Observation,
    OIVAEConfig,
    OIVAEModule,
    SparseVAEConfig,
    SparseVAEModule,
    VAEConfig,
    VAEModule,
)
from sparsevae.training import Batches, RowSource

KINDS = {
    "sparse": (SparseVAEModule, SparseVAEConfig),
    "plain": (VAEModule, VAEConfig),
    "group": (OIVAEModule, OIVAEConfig),
}


def make_table(n_samples=48, seed=0):
    """Features 0 and 1 have one factor, 2 and 3 the other, and feature 4 has both."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_samples, 2))
    loadings = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.7, 0.7]])
    return (z @ loadings.T + 0.3 * rng.standard_normal((n_samples, 5))).astype(np.float32)


def make_module(
    likelihood="gaussian", n_factors=2, hidden_sizes=(6,), *, kind="sparse", seed=0, replicates=(), **options
):
    """A module of one of `KINDS` for tables of five features."""
    module_class, config_class = KINDS[kind]
    observation = Observation.blank(get_likelihood(likelihood, 5), 5)
    config = config_class(n_factors=n_factors, hidden_sizes=hidden_sizes, **options)
    generator = torch.Generator().manual_seed(seed)
    return module_class(observation, config, replicates=replicates, generator=generator)


def make_batches(module, X=None, *, batch_size=16, seed=0, rows=None):
    source = RowSource(make_table() if X is None else X, module.observation)
    rows = torch.arange(source.n_samples) if rows is None else rows
    return Batches(source, rows, batch_size, torch.Generator().manual_seed(seed))


def assert_equal_states(module, other):
    """Parameters and buffers of two modules are equal to the last bit."""
    state, expected = module.state_dict(), other.state_dict()
    assert state.keys() == expected.keys()
    for name, value in state.items():
        assert torch.equal(value, expected[name]), name
