"""Small tables and quick fits to save."""

from __future__ import annotations

import warnings

import numpy as np

from sparsevae import SparseVAE
from sparsevae.exceptions import ConvergenceWarning


def make_table(likelihood="gaussian", seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 4))
    counts = rng.poisson(np.exp(1 + 0.3 * signal)) + 1.0
    return {"gaussian": 10 + 5 * signal, "bernoulli": (signal > 0) + 0.0}.get(likelihood, counts)


def fit(likelihood="gaussian", X=None, **options):
    settings = {"n_factors": 2, "hidden_sizes": (4,), "recipe": "paper", "max_epochs": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SparseVAE(**{**settings, "likelihood": likelihood, **options}).fit(
            make_table(likelihood) if X is None else X
        )
