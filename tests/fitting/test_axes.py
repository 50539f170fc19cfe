import numpy as np
import pandas as pd
import pytest

from sparsevae.factor_analysis import analyse_counts, analyse_factors, analyse_sparse_factors
from sparsevae.fitting import axes
from sparsevae.fitting.axes import choose_axes, matched_correlations, worth


def standardised(X):
    return (X - X.mean(0)) / X.std(0)


def blocks(n_factors, width, rng, n_samples=400, noise=1.0):
    """Each factor behind features of its own."""
    signal = rng.normal(size=(n_samples, n_factors)) @ np.kron(np.eye(n_factors), np.full((1, width), 0.9))
    return signal + noise * rng.normal(size=signal.shape)


def test_what_returns_is_worth_one_and_what_does_not_costs_half():
    assert worth(np.array([0.95, 0.9]), 2) == pytest.approx(2.0)
    assert worth(np.array([0.95, 0.5]), 2) == pytest.approx(1.0 - 0.5)
    assert worth(np.zeros(0), 3) == pytest.approx(-1.5)
    assert worth(np.array([0.75]), 1) == pytest.approx(0.5 - 0.25)


def test_factors_are_matched_one_to_one_whatever_their_order_and_sign():
    codes = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(matched_correlations(codes, -np.exp(codes[:, [2, 0, 1]])), 1.0)


def test_the_right_number_of_factors_stays():
    X = standardised(blocks(9, 5, np.random.default_rng(0)))
    assert choose_axes(X, 9, counts=False)[1] == 9


def test_one_factor_fewer_is_taken_where_as_many_return():
    rng = np.random.default_rng(0)
    X = np.hstack([blocks(2, 6, rng, 300, 0.5), 0.25 * rng.normal(size=(300, 1)) * np.ones((1, 2))])
    X[:, -2:] += 0.5 * rng.normal(size=(300, 2))
    assert [choose_axes(standardised(X), n, counts=False)[1] for n in (2, 3)] == [2, 2]


def test_far_too_many_factors_come_down_to_those_that_return():
    X = standardised(blocks(3, 10, np.random.default_rng(0), 300))
    assert choose_axes(X, 20, counts=False)[1] == 3


def test_the_order_of_rows_does_not_choose_the_number_of_factors_of_ordered_answers(real_data):
    X = pd.read_csv(real_data("bfi.csv"), index_col=0).iloc[:, :25].to_numpy(dtype=float)
    X = (X - np.nanmean(X, 0)) / np.nanstd(X, 0)
    X = X[np.random.default_rng(3).permutation(len(X))]  # ten halvings of these rows show six
    assert choose_axes(X, 6, counts=False) == (analyse_factors, 5)


def correlated(rng, n_samples=600):
    """Four correlated factors, three anchors each, and twelve features of two factors."""
    z = rng.multivariate_normal(np.zeros(4), 0.4 + 0.6 * np.eye(4), n_samples)
    loadings = np.zeros((24, 4))
    loadings[np.arange(12), np.arange(12) % 4] = rng.uniform(0.8, 1.2, 12)
    for j in range(12, 24):
        loadings[j, rng.choice(4, 2, replace=False)] = rng.uniform(0.5, 1.0, 2)
    return z @ loadings.T + 0.7 * rng.normal(size=(n_samples, 24)), loadings


def test_sparsest_axes_are_taken_where_they_return():
    X, loadings = correlated(np.random.default_rng(0))
    analyse, n_factors = choose_axes(standardised(X), 4, counts=False)
    assert (analyse, n_factors) == (analyse_sparse_factors, 4)
    found = analyse(standardised(X), 4).loadings
    own = np.abs(np.corrcoef(found.T, loadings.T)[:4, 4:])
    assert own.max(0).min() > 0.98


def test_sparsest_axes_are_left_where_they_do_not_return():
    rng = np.random.default_rng(0)  # loadings without a zero: the sparsest axes are chance
    X = rng.normal(size=(600, 4)) @ rng.uniform(0.3, 1.0, (4, 24)) + rng.normal(size=(600, 24))
    assert choose_axes(standardised(X), 4, counts=False)[0] is analyse_factors


def test_few_rows_say_nothing():
    X = standardised(blocks(3, 10, np.random.default_rng(0), 150))
    assert choose_axes(X, 20, counts=False) == (analyse_factors, 20)


def test_rough_analyses_of_several_numbers_are_those_of_each_number():
    X = standardised(blocks(4, 20, np.random.default_rng(0), 500))
    for rough, count in zip(analyse_counts(X, [6, 4]), (6, 4), strict=True):
        exact = analyse_factors(X, count)
        codes = X @ rough.maps(), X @ exact.maps()
        assert np.sort(matched_correlations(*codes))[-4:].min() > 0.99


@pytest.mark.parametrize("least, n_halvings", [(-100.0, 4), (100.0, 4), (None, 16)])
def test_parts_are_halved_until_their_worth_tells(monkeypatch, least, n_halvings):
    """Far from what is asked four halvings are enough; near it they are as many as are allowed."""
    X = np.random.default_rng(0).poisson(2.0, (60, 8)).astype(float)
    seen = []

    def alternating(correlations, n_factors):
        seen.append(float(len(seen) % 2))
        return seen[-1]

    monkeypatch.setattr(axes, "worth", alternating)
    value = axes._parts_worth(X, 2, 0.5 if least is None else least)
    assert len(seen) == n_halvings
    assert value == pytest.approx(0.5)
