"""Correlations of factors whose links are known."""

import numpy as np
import pytest

from sparsevae.datasets import load_ability_tests
from sparsevae.factor_analysis import analyse_factors
from sparsevae.identifiability.confirmatory import confirm_factors, is_confirmable, settle_links


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_the_correlation_of_the_population_is_found_exactly(rho):
    L = np.kron(np.eye(2), [[0.8], [0.6], [-0.5]])
    L[2, 1] = 0.3
    phi = np.array([[1.0, rho], [rho, 1.0]])
    R = L @ phi @ L.T
    np.fill_diagonal(R, 1.0)
    found = confirm_factors(R, np.sign(L))
    assert found.correlation[0, 1] == pytest.approx(rho, abs=1e-3)


def test_the_ability_tests_have_the_published_correlations():
    """Three tests for each ability and no others: 0.46, 0.47, 0.28, as confirmatory analyses print."""
    R = np.corrcoef(load_ability_tests().X.T)
    found = confirm_factors(R, np.kron(np.eye(3), np.ones((3, 1))))
    np.testing.assert_allclose(found.correlation[np.triu_indices(3, 1)], [0.46, 0.47, 0.28], atol=0.01)


def test_two_features_of_its_own_for_every_factor_are_asked_for():
    support = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], bool)
    assert not is_confirmable(support)
    assert is_confirmable(np.vstack([support, [[False, True]]]))


def test_what_does_not_settle_is_not_reported():
    assert confirm_factors(np.full((4, 4), 1.0), np.kron(np.eye(2), np.ones((2, 1)))) is None


def test_small_links_that_a_rotation_left_go_where_the_factors_correlate():
    rng = np.random.default_rng(0)
    Z = rng.multivariate_normal(np.zeros(2), [[1, 0.6], [0.6, 1]], 2000)
    X = Z @ np.kron(np.eye(2), np.ones((4, 1))).T + 0.5 * rng.standard_normal((2000, 8))
    X = (X - X.mean(0)) / X.std(0)
    strength = np.kron(np.eye(2), np.ones((4, 1)))
    strength[:4, 1] = 0.15
    support, factors = settle_links(np.corrcoef(X.T), strength, 2000, analyse_factors(X, 2))
    assert support.sum() == 8
    assert factors.correlation[0, 1] == pytest.approx(0.6, abs=0.04)


def test_links_that_do_not_fit_are_not_settled_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2)) @ rng.standard_normal((2, 8)) + 0.5 * rng.standard_normal((2000, 8))
    X = (X - X.mean(0)) / X.std(0)
    wrong = np.kron(np.eye(2), np.ones((4, 1)))
    assert settle_links(np.corrcoef(X.T), wrong, 2000, analyse_factors(X, 2)) is None
