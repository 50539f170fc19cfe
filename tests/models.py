"""Models of the tables in `tables` that fit in a blink: `from ..models import fit, make_model`."""

from __future__ import annotations

import warnings
from dataclasses import replace

from sparsevae import SparseVAE
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.fitting import RECIPES

from .tables import MIXED

LADDER = replace(RECIPES["default"], spine=None)  # networks only
# The paper's recipe has no search for starts: it is the quick one.
TINY = {"n_factors": 2, "hidden_sizes": (5,), "recipe": "paper", "max_epochs": 4, "random_state": 0}


def make_model(likelihood="gaussian", **options):
    """An estimator that fits in a blink, not yet fitted."""
    spec = MIXED if likelihood == "mixed" else likelihood
    return SparseVAE(**{**TINY, "likelihood": spec, **options})


def fit(model, X):
    """Fit, without the warning that a few epochs were few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)
