"""Small tables and quick fits to save."""

from __future__ import annotations

import warnings

from sparsevae import SparseVAE
from sparsevae.exceptions import ConvergenceWarning

from .. import tables


def make_table(likelihood="gaussian", seed=0):
    return tables.make_table(likelihood, n_samples=40, n_features=4, seed=seed)


def fit(likelihood="gaussian", X=None, **options):
    settings = {"n_factors": 2, "hidden_sizes": (4,), "recipe": "paper", "max_epochs": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SparseVAE(**{**settings, "likelihood": likelihood, **options}).fit(
            make_table(likelihood) if X is None else X
        )
