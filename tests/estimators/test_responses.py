"""Response curves of linear models are lines with known slopes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sparsevae.estimators.explained import order_features, signed_strength
from sparsevae.estimators.responses import directions, responses, spread_rows

LOADINGS = np.array([[0.9, 0.0], [-0.8, 0.0], [0.6, 0.5], [0.0, 0.9]])
UNITS = np.array([1.0, 10.0, 2.0, 1.0])


@pytest.fixture(scope="module")
def made(linear_model):
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((400, 2))
    X = (factors @ LOADINGS.T + 0.3 * rng.standard_normal((400, 4))) * UNITS + 5.0
    model = linear_model(X, factors, LOADINGS)
    return model, X


def column(model, feature):
    return int(np.flatnonzero(model.mask_[feature])[0])


def test_a_line_has_the_slope_of_its_effect(made):
    model, _ = made
    k = column(model, 1)
    found = responses(model, k, [1, 0])
    slope = np.diff(found.curves[:, 0]) / np.diff(found.grid)
    np.testing.assert_allclose(slope, model.effects_[1, k], rtol=1e-3)
    assert found.at.shape == (0,)
    assert found.points.shape == (0, 2)


def test_points_are_free_of_other_factors(made):
    """x2 is of both factors: around its line there is noise, not the other factor."""
    model, X = made
    k = column(model, 0)
    found = responses(model, k, [2], X)
    line = np.interp(found.at, found.grid, found.curves[:, 0])
    left = np.std(found.points[:, 0] - line)
    raw = np.std(X[:, 2] - line)
    assert left < 0.7 * raw


def test_the_grid_reaches_as_far_as_the_data(made):
    model, X = made
    found = responses(model, 0, [0], 10 * (X - X.mean(0)) + X.mean(0))
    assert found.grid[0] <= found.at.min()
    assert found.grid[-1] >= found.at.max()


def test_directions_are_signs_of_lines(made):
    model, _ = made
    np.testing.assert_array_equal(directions(model), np.sign(model.effects_))


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "multinomial"])
def test_counts_and_answers_have_curves_too(linear_model, family):
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((200, 2))
    output = factors @ LOADINGS.T
    X = (output > 0) * 1.0 if family == "bernoulli" else rng.poisson(np.exp(output + 1.0)) * 1.0
    model = linear_model(X, factors, LOADINGS, likelihood=family)
    found = responses(model, column(model, 0), [0], X)
    assert (np.diff(found.curves[:, 0]) * np.sign(found.curves[-1, 0] - found.curves[0, 0]) >= 0).all()
    assert found.curves.min() >= 0
    assert found.points.shape == (200, 1)
    assert np.isfinite(found.points).all()


def test_strength_of_a_linear_model_is_the_standardised_loading(made):
    model, X = made
    k = column(model, 0)
    expected = np.corrcoef(X[:, 0], model.transform(X)[:, k])[0, 1]
    assert signed_strength(model)[0, k] == pytest.approx(expected, abs=0.1)
    assert (signed_strength(model)[model.mask_ == 0] == 0).all()


def test_features_are_ordered_by_factor_then_anchors_then_strength(made):
    model, _ = made
    order = order_features(model).tolist()
    assert order.index(2) > min(order.index(0), order.index(1))
    assert sorted(order) == [0, 1, 2, 3]


def test_rows_are_spread_over_the_table():
    assert spread_rows(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert spread_rows(100, 3).tolist() == [0, 50, 99] or spread_rows(100, 3).tolist() == [0, 49, 99]


def test_a_feature_whose_curve_and_average_slope_disagree_has_no_direction(made):
    model, _ = made
    turned = copy.copy(model)
    turned.effects_ = -model.effects_
    assert (directions(turned) == 0).all()
