"""Small tables of every kind, and small models fitted to them once."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pandas as pd
import pytest

from sparsevae import SparseVAE
from sparsevae.exceptions import ConvergenceWarning

LIKELIHOODS = ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial", "mixed"]
MIXED = {"gaussian": ["a", "b"], "poisson": ["c", "d"], "bernoulli": ["e"], "multinomial": ["f", "g"]}
# The paper's recipe has no search for starts: it is the quick one.
TINY = {"n_factors": 2, "hidden_sizes": (5,), "recipe": "paper", "max_epochs": 4, "random_state": 0}


def _make_table(likelihood="gaussian", n_samples=60, n_features=7, seed=0):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(1).normal(size=(2, n_features)) * (
        np.arange(n_features) % 2 == [[0], [1]]
    )
    signal = rng.normal(size=(n_samples, 2)) @ loadings
    real = 10.0 * np.arange(n_features) + 3.0 * (signal + 0.5 * rng.normal(size=signal.shape))
    binary = (signal + rng.normal(size=signal.shape) > 0).astype(float)
    counts = rng.poisson(np.exp(1.0 + 0.5 * signal)).astype(float)
    counts[:, 0] += 1.0
    if likelihood == "mixed":
        frame = pd.DataFrame(real, columns=list("abcdefg"))
        frame[["c", "d", "f", "g"]] = counts[:, [2, 3, 5, 6]]
        frame["f"] += 1.0
        return frame.assign(e=binary[:, 4])
    return {"gaussian": real, "bernoulli": binary}.get(likelihood, counts)


def _make_model(likelihood="gaussian", **options):
    spec = MIXED if likelihood == "mixed" else likelihood
    return SparseVAE(**{**TINY, "likelihood": spec, **options})


def _fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few epochs do not settle
        return model.fit(X)


@pytest.fixture(scope="session")
def make_table():
    return _make_table


@pytest.fixture(scope="session")
def make_model():
    """An estimator that fits in a blink, not yet fitted."""
    return _make_model


@pytest.fixture(scope="session")
def fit():
    """Fit, without the warning that a few epochs were few."""
    return _fit


@pytest.fixture(scope="session")
def fitted():
    """A model of each likelihood, fitted once; not to be changed."""
    models = {}

    def get(likelihood="gaussian"):
        if likelihood not in models:
            models[likelihood] = _fit(_make_model(likelihood), _make_table(likelihood))
        return models[likelihood]

    return get


@pytest.fixture(scope="session")
def trained():
    """A model of each likelihood that has been given the time to match its table."""
    models = {}

    def get(likelihood="gaussian"):
        if likelihood not in models:
            options = {"hidden_sizes": (16,), "max_epochs": 120, "learning_rate": 0.01}
            model = _make_model(likelihood, validation_fraction=0.0, **options)
            models[likelihood] = _fit(model, _make_table(likelihood, n_samples=200))
        return models[likelihood]

    return get


def pytest_generate_tests(metafunc):
    """Tests that take `likelihood` run for each of them, and for a table of several kinds."""
    if "likelihood" in metafunc.fixturenames:
        metafunc.parametrize("likelihood", LIKELIHOODS)


def pytest_collection_modifyitems(config, items):
    """scikit-learn's check with arrays of other libraries needs a scipy that was imported for it.

    `test_sklearn_checks` runs it in a process of its own; here it could only be skipped.
    """
    if "SCIPY_ARRAY_API" not in os.environ:
        apart = [item for item in items if "check_array_api_input" in item.name]
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if item not in set(apart)]
