"""Modules without a fit."""

from __future__ import annotations

import pytest

from ..training import helpers


@pytest.fixture(scope="session")
def make_module():
    """A module for tables of five features."""
    return helpers.make_module


@pytest.fixture(scope="session")
def make_batches():
    """Batches of a table of five features with two factors."""
    return helpers.make_batches
