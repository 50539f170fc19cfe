"""Response curves of linear models are lines with known slopes."""

from __future__ import annotations

import numpy as np
import pytest

from sparsevae.inspection.curves import directions

from .helpers import FEW_LOADINGS, column


def test_a_line_has_the_slope_of_its_effect(made):
    model, _ = made
    k = column(model, 1)
    found = model.responses(k, [1, 0])
    slope = np.diff(found.curves[:, 0]) / np.diff(found.grid)
    np.testing.assert_allclose(slope, model.effects_[1, k], rtol=1e-3)
    assert found.at.shape == (0,)
    assert found.points.shape == (0, 2)


def test_points_are_free_of_other_factors(made):
    """x2 is of both factors: around its line there is noise, not the other factor."""
    model, X = made
    k = column(model, 0)
    found = model.responses(k, [2], X)
    line = np.interp(found.at, found.grid, found.curves[:, 0])
    left = np.std(found.points[:, 0] - line)
    raw = np.std(X[:, 2] - line)
    assert left < 0.7 * raw


def test_the_grid_reaches_as_far_as_the_data(made):
    model, X = made
    found = model.responses(0, [0], 10 * (X - X.mean(0)) + X.mean(0))
    assert found.grid[0] <= found.at.min()
    assert found.grid[-1] >= found.at.max()


def test_directions_are_signs_of_lines(made):
    model, _ = made
    np.testing.assert_array_equal(model.link_directions(), np.sign(model.effects_))


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "multinomial"])
def test_counts_and_answers_have_curves_too(linear_model, family):
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((200, 2))
    output = factors @ FEW_LOADINGS.T
    X = (output > 0) * 1.0 if family == "bernoulli" else rng.poisson(np.exp(output + 1.0)) * 1.0
    model = linear_model(X, factors, FEW_LOADINGS, likelihood=family)
    found = model.responses(column(model, 0), [0], X)
    assert (np.diff(found.curves[:, 0]) * np.sign(found.curves[-1, 0] - found.curves[0, 0]) >= 0).all()
    assert found.curves.min() >= 0
    assert found.points.shape == (200, 1)
    assert np.isfinite(found.points).all()


def test_a_feature_whose_curve_and_average_slope_disagree_has_no_direction(made):
    model, _ = made
    assert (directions(model.module_, -model.effects_) == 0).all()
