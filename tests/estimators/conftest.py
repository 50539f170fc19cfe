"""Small models of every kind, fitted once."""

from __future__ import annotations

import os

import pytest

from .. import models, tables


@pytest.fixture(scope="session")
def fitted():
    """A model of each likelihood, fitted once; not to be changed."""
    known = {}

    def get(likelihood="gaussian"):
        if likelihood not in known:
            known[likelihood] = models.fit(models.make_model(likelihood), tables.make_table(likelihood))
        return known[likelihood]

    return get


@pytest.fixture(scope="session")
def trained():
    """A model of each likelihood that has been given the time to match its table."""
    known = {}

    def get(likelihood="gaussian"):
        if likelihood not in known:
            options = {"hidden_sizes": (16,), "max_epochs": 120, "learning_rate": 0.01}
            model = models.make_model(likelihood, validation_fraction=0.0, **options)
            known[likelihood] = models.fit(model, tables.make_table(likelihood, n_samples=200))
        return known[likelihood]

    return get


def pytest_generate_tests(metafunc):
    """Tests that take `likelihood` run for each of them, and for a table of several kinds."""
    if "likelihood" in metafunc.fixturenames:
        metafunc.parametrize("likelihood", [*tables.LIKELIHOODS, "mixed"])


def pytest_collection_modifyitems(config, items):
    """scikit-learn's check with arrays of other libraries needs a scipy that was imported for it.

    `test_sklearn_checks` runs it in a process of its own; here it could only be skipped.
    """
    if "SCIPY_ARRAY_API" not in os.environ:
        apart = [item for item in items if "check_array_api_input" in item.name]
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if item not in set(apart)]
