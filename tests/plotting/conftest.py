"""Fitted models whose masks are known, small and large."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def closed_figures():
    """Plots open figures of pyplot, which would add up over the tests."""
    with pyplot.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


@pytest.fixture(scope="session")
def small(linear_model):
    """Seven features, two factors, and room for a third; the names would be formulas to matplotlib."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((120, 3))
    loadings = np.zeros((7, 3))
    loadings[:3, 0], loadings[3:6, 1], loadings[6, :2] = 0.9, -0.8, (0.6, 0.5)
    X = factors @ loadings.T + 0.4 * rng.standard_normal((120, 7))
    table = pd.DataFrame(X, columns=["$a_1", "b$", "c" * 90, "d", "e", "f\nf", "g"])
    return linear_model(table, factors, loadings), table


@pytest.fixture(scope="session")
def large(linear_model):
    """Three thousand features, fifty factors."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((20, 50))
    loadings = np.zeros((3000, 50))
    loadings[np.arange(3000), np.arange(3000) % 50] = 0.9
    return linear_model(factors @ loadings.T + 0.3 * rng.standard_normal((20, 3000)), factors, loadings), None
