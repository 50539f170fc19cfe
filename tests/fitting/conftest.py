"""Small tables and models of every kind, and modules without a fit."""

from __future__ import annotations

import pytest

from .. import models, tables
from ..training import helpers


@pytest.fixture(scope="session")
def make_table():
    return tables.make_table


@pytest.fixture(scope="session")
def make_model():
    """An estimator that fits in a blink, not yet fitted."""
    return models.make_model


@pytest.fixture(scope="session")
def fit():
    """Fit, without the warning that a few epochs were few."""
    return models.fit


@pytest.fixture(scope="session")
def make_module():
    """A module for tables of five features."""
    return helpers.make_module


@pytest.fixture(scope="session")
def make_batches():
    """Batches of a table of five features with two factors."""
    return helpers.make_batches
