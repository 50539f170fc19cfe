from __future__ import annotations

import warnings

import numpy as np
import pytest

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.inspection.imputation import expect_cells
from sparsevae.inspection.leftover import (
    Leftover,
    _covariance,
    _find_bounds,
    _predict_hidden,
    fill_cells,
    find_leftover,
)
from sparsevae.principal import pairwise_covariance


@pytest.fixture(scope="module")
def holed():
    """Two factors, and a pair of features that have something of their own in common."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 8)) + 0.5 * rng.standard_normal((400, 8))
    X[:, :2] += 1.5 * rng.standard_normal((400, 1))
    hidden = rng.uniform(size=X.shape) < 0.15
    return X, hidden, np.where(hidden, np.nan, X)


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseVAE(2, max_epochs=30, n_init=1, hidden_sizes=(4,), random_state=0, **options).fit(X)


@pytest.fixture(scope="module")
def model(holed):
    return fitted(holed[2])


def test_what_factors_leave_over_predicts_hidden_cells(model, holed):
    X, hidden, seen = holed
    codes = model.codes(seen)
    plain = np.square(expect_cells(codes) - X)[hidden].mean()
    assert np.square(model.impute(seen) - X)[hidden].mean() < 0.95 * plain


def test_shares_are_learned_from_several_drawings_of_hidden_cells(model, holed):
    _, _, seen = holed
    for cells in _predict_hidden(model.codes(seen), seen, np.eye(8)).values():
        assert len(cells) == pytest.approx(3 * 0.1 * (~np.isnan(seen)).sum(), rel=0.1)


def test_a_regression_is_the_closed_form(model, holed):
    _, _, seen = holed
    codes = model.codes(seen)
    alone = Leftover(model.leftover_, np.array([0.0, 1.0]))
    filled = fill_cells(codes, alone)
    i = int(np.flatnonzero(np.isnan(seen).any(1))[0])
    m, s = np.isnan(seen[i]), ~np.isnan(seen[i])
    S = np.linalg.inv(model.leftover_[1])
    z = codes.module.observation.to_model_units(seen[i : i + 1]).double().numpy()[0]
    scale, location = (getattr(codes.module.observation, name).numpy() for name in ("scale", "location"))
    by_hand = S[np.ix_(m, s)] @ np.linalg.solve(S[np.ix_(s, s)], z[s])
    np.testing.assert_allclose(filled[i, m], by_hand * scale[m] + location[m], rtol=1e-5)


@pytest.fixture(scope="module")
def rows():
    """Rows of two factors with 30 % holes, and their covariance."""
    rng = np.random.default_rng(1)
    L = rng.standard_normal((10, 2))
    truth = L @ L.T + np.eye(10)
    scale = np.sqrt(truth.diagonal())
    truth = truth / scale / scale[:, None]
    Z = rng.multivariate_normal(np.zeros(10), truth, 150)
    return Z, np.where(rng.uniform(size=Z.shape) < 0.3, np.nan, Z), truth


def test_without_holes_the_covariance_is_the_closed_form(rows):
    Z, _, _ = rows
    expected = (10 * np.eye(10) + Z.T @ Z) / 160
    np.testing.assert_allclose(_covariance(Z, np.eye(10)), expected, rtol=1e-12)


def test_each_step_makes_what_is_seen_more_probable(rows):
    _, seen, truth = rows
    prior = 0.5 * truth + 0.5 * np.eye(10)

    def log_posterior(S):
        total = -5.0 * (np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, prior)))
        for z in seen:
            s = ~np.isnan(z)
            own = S[np.ix_(s, s)]
            total -= 0.5 * (np.linalg.slogdet(own)[1] + z[s] @ np.linalg.solve(own, z[s]))
        return total

    values = [log_posterior(_covariance(seen, prior, n)) for n in (0, 1, 2, 5, 40, 41)]
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] - values[-2] < 1e-6  # it has arrived
    assert values[-1] - values[3] < 0.02 * (values[-1] - values[0])  # and nearly so after five


def test_the_covariance_is_nearer_to_the_true_one_than_that_of_pairs(rows):
    _, seen, truth = rows
    found = np.linalg.norm(_covariance(seen, np.eye(10)) - truth)
    assert found < np.linalg.norm(pairwise_covariance(seen) - truth)


def test_fewer_rows_than_features_have_a_covariance_with_an_inverse(rows):
    _, seen, _ = rows
    assert np.linalg.eigvalsh(_covariance(seen[:3], np.eye(10)))[0] > 0.1


def test_bounds_are_ends_that_many_values_share():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((300, 4))
    table[:, 1] = np.maximum(table[:, 1], 0.0)
    table[:, 2] = np.clip(np.round(table[:, 2]), -1, 1)
    table[rng.uniform(size=table.shape) < 0.1] = np.nan
    table[:, 3] = np.nan
    infinite = np.inf
    expected = [[-infinite, 0.0, -1.0, -infinite], [infinite, infinite, 1.0, infinite]]
    np.testing.assert_array_equal(_find_bounds(table), expected)


def test_an_expectation_beyond_a_bound_is_moved_nearer_to_the_value(model, holed):
    X, hidden, _ = holed
    table = np.maximum(X, 0.0)
    codes = model.codes(np.where(hidden, np.nan, table))
    free = Leftover(model.leftover_, model.leftover_shares_)
    bounded = free._replace(bounds=_find_bounds(codes.X))
    plain, filled = fill_cells(codes, free)[hidden], fill_cells(codes, bounded)[hidden]
    assert plain.min() < 0
    assert filled.min() == 0
    assert (np.abs(filled - table[hidden]) <= np.abs(plain - table[hidden])).all()


def test_a_row_is_filled_alike_alone_and_among_others(model, holed):
    seen = holed[2]
    np.testing.assert_allclose(model.impute(seen[:3]), model.impute(seen)[:3], rtol=1e-6)


def test_draws_are_about_the_value_that_is_filled_in(model, holed):
    _, hidden, seen = holed
    draws = model.impute(seen, n_draws=200, random_state=0)
    error = (draws.mean(0) - model.impute(seen))[hidden] / draws.std(0)[hidden]
    assert np.abs(error).mean() < 0.15


def test_it_is_saved_with_the_model(model, holed, tmp_path):
    again = SparseVAE.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.impute(holed[2]), model.impute(holed[2]))


def test_a_model_without_bounds_opens_and_fills_in(holed, tmp_path):
    seen = np.maximum(holed[2], 0.0)
    model = fitted(seen)
    del model.leftover_bounds_
    again = SparseVAE.load(model.save(tmp_path / "m"))
    leftover = Leftover(model.leftover_, model.leftover_shares_)
    expected = fill_cells(model.codes(seen), leftover)[np.isnan(seen)]
    np.testing.assert_array_equal(again.impute(seen)[np.isnan(seen)], expected)


def test_tables_without_holes_and_of_answers_have_none(holed):
    X, hidden, _ = holed
    assert not hasattr(fitted(X), "leftover_")
    answers = np.where(hidden, np.nan, (X > 0) + 1.0)
    other = fitted(answers, likelihood="ordinal")
    assert find_leftover(other.codes(answers)) is None


def test_a_constant_feature_is_filled_with_its_value():
    X = make_anchored_factors(150, 6, 2, random_state=0).X
    X[:, 3] = 7.0
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.1] = np.nan
    filled = fitted(X).impute(X)
    np.testing.assert_allclose(filled[:, 3], 7.0, atol=0.05)
