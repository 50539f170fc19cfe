"""The helpers as fixtures."""

from __future__ import annotations

import pytest

from . import helpers


@pytest.fixture(scope="session")
def make_table():
    return helpers.make_table


@pytest.fixture(scope="session")
def make_module():
    return helpers.make_module


@pytest.fixture(scope="session")
def make_batches():
    return helpers.make_batches
