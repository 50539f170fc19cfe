from __future__ import annotations

import numpy as np
import pytest

from sparsevae.inspection.survey import complexity, correlation_of, cronbach_alpha, omega, residual_size


def test_complexity_counts_the_factors_that_matter():
    loadings = np.array([[0.7, 0.0], [0.5, 0.5], [-0.5, 0.5], [0.0, 0.0]])
    np.testing.assert_allclose(complexity(loadings), [1.0, 2.0, 2.0, np.nan])


def test_omega_of_one_factor_is_the_textbook_formula():
    loadings = np.array([[0.8], [0.6], [-0.7]])
    unique = 1 - loadings[:, 0] ** 2
    expected = 2.1**2 / (2.1**2 + unique.sum())
    assert omega(loadings, np.eye(1), unique, 0) == pytest.approx(expected)


def test_omega_counts_the_share_of_other_factors_against_a_scale():
    pure, mixed = np.array([[0.8, 0.0], [0.8, 0.0]]), np.array([[0.8, 0.3], [0.8, 0.3]])
    unique = np.full(2, 0.36)
    assert omega(mixed, np.eye(2), unique, 0) < omega(pure, np.eye(2), unique, 0)
    assert np.isnan(omega(pure[:0], np.eye(2), unique[:0], 0))


def test_alpha_is_that_of_standardised_items(rng):
    z = rng.standard_normal((4000, 1))
    items = z + rng.standard_normal((4000, 5))
    assert cronbach_alpha(items) == pytest.approx(5 * 0.5 / (1 + 4 * 0.5), abs=0.02)
    assert cronbach_alpha(10 * items) == pytest.approx(cronbach_alpha(items))
    assert np.isnan(cronbach_alpha(items[:, :1]))


def test_the_size_of_residuals_counts_each_pair_once():
    residuals = np.array([[0.0, 0.3], [0.3, 0.0]])
    assert residual_size(residuals) == pytest.approx(np.sqrt(0.09 / 3))


def test_correlations_are_numpys_and_a_constant_has_none(rng):
    X = rng.standard_normal((50, 3))
    np.testing.assert_allclose(correlation_of(X), np.corrcoef(X.T))
    X[:, 1] = 4.0
    assert correlation_of(X)[0, 1] == 0.0
