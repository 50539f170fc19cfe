"""Halves of the rows: factors that come back, spaces that do, and how far loadings move."""

import numpy as np
import pytest

from sparsevae.identifiability.resamples import Resamples, resample_factors


def linear_table(L, n_samples, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_samples, L.shape[1]))
    X = Z @ L.T + noise * rng.standard_normal((n_samples, len(L)))
    return (X - X.mean(0)) / X.std(0), Z


@pytest.fixture(scope="module")
def blocks():
    L = np.kron(np.eye(3), np.ones((4, 1)))
    X, Z = linear_table(L, 400)
    return L, X, Z, resample_factors(X, X, Z, L != 0, n_samples=400)


def test_factors_of_clear_blocks_come_back(blocks):
    *_, found = blocks
    assert found.match.min() > 0.95
    assert (found.return_rate == 1).all()


def test_links_that_are_there_are_selected_and_others_are_not(blocks):
    L, *_, found = blocks
    assert found.selection[L != 0].min() == 1.0
    assert found.selection[L == 0].max() < 0.5
    assert found.selection[L == 0].mean() < 0.1


def test_standard_errors_are_those_of_repeated_samples(blocks):
    L, *_, found = blocks
    estimates = []
    for seed in range(40):
        X, Z = linear_table(L, 400, seed)
        estimates.append((X.T @ Z / len(X))[L != 0])
    spread = np.std(estimates, axis=0).mean()
    assert found.deviation[L != 0].mean() == pytest.approx(spread, rel=0.5)


def test_a_space_may_come_back_where_its_axes_do_not():
    """Two factors on which all features load at random angles evenly: any rotation of the two is as good."""
    angles = np.linspace(0, np.pi, 24, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    L = np.zeros((30, 3))
    L[:24, :2], L[24:, 2] = circle, 1.0
    X, Z = linear_table(L, 600)
    found = resample_factors(X, X, Z, L != 0, n_samples=600)
    assert found.match[2] > 0.95
    assert found.match[:2].max() < 0.9 or not (found.linear[:2] >= 0.5).all()
    group = found._replace(linear=np.ones(3)).group(0, 0.9)
    assert group is not None
    assert group[0] == [0, 1]


def test_it_goes_through_plain_arrays_and_back(blocks):
    *_, found = blocks
    again = Resamples.from_dict(found.to_dict())
    for mine, theirs in zip(found, again, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_too_few_rows_or_features_say_nothing():
    X, Z = np.random.default_rng(0).standard_normal((2, 12, 3))
    assert resample_factors(X, X, Z, np.ones((3, 3), bool), n_samples=12) is None
    x = np.zeros((50, 1))
    assert resample_factors(x, x, Z[:, :1].repeat(50, 0)[:50], np.ones((1, 1), bool), n_samples=50) is None


def test_missing_values_and_constant_columns_are_no_obstacle():
    L = np.kron(np.eye(2), np.ones((4, 1)))
    X, Z = linear_table(L, 300)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    X[:, 3] = 0.0
    found = resample_factors(X, X, Z, L != 0, n_samples=300)
    assert found.match.min() > 0.9
    assert np.isnan(found.deviation[3]).all()
