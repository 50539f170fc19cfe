import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from sparsevae.factor_analysis import LinearFactors, analyse_factors, find_parts, whitened_eigenvectors


def standardised(X):
    return (X - X.mean(0)) / X.std(0)


def matched(first, second):
    """Absolute correlations of columns, matched one to one."""
    n = first.shape[1]
    correlation = np.abs(np.corrcoef(first.T, second.T)[:n, n:])
    return correlation[linear_sum_assignment(-correlation)]


@pytest.fixture(scope="module")
def blocks():
    """Three correlated factors of five features each; factors and standardised table."""
    rng = np.random.default_rng(0)
    covariance = np.full((3, 3), 0.4) + 0.6 * np.eye(3)
    z = rng.multivariate_normal(np.zeros(3), covariance, size=2000)
    return z, standardised(z @ np.kron(np.eye(3), np.ones(5)) + 0.6 * rng.normal(size=(2000, 15)))


def test_the_likelihood_is_that_of_scikit_learn(blocks):
    found = analyse_factors(blocks[1], 3)
    reference = FactorAnalysis(3, tol=1e-8, max_iter=5000).fit(blocks[1])
    constant = -0.5 * 15 * np.log(2 * np.pi)
    assert found.log_likelihood(blocks[1]).mean() + constant == pytest.approx(
        reference.score(blocks[1]), abs=1e-3
    )


def test_axes_are_the_blocks_and_their_correlation_is_found(blocks):
    z, X = blocks
    found = analyse_factors(X, 3)
    assert matched(X @ found.maps(), z).min() > 0.95
    strongest = np.abs(found.loadings).argmax(1).reshape(3, 5)
    assert all(len(set(row)) == 1 for row in strongest)
    off_diagonal = np.abs(found.correlation[np.triu_indices(3, 1)])
    np.testing.assert_allclose(off_diagonal, 0.4, atol=0.1)


def test_the_density_is_that_of_a_gaussian():
    rng = np.random.default_rng(1)
    factors = LinearFactors(
        rng.normal(size=(6, 2)), np.array([[1.0, 0.3], [0.3, 1.0]]), rng.uniform(0.3, 1, 6)
    )
    X = rng.normal(size=(20, 6))
    covariance = factors.loadings @ factors.correlation @ factors.loadings.T + np.diag(factors.uniqueness)
    expected = multivariate_normal(np.zeros(6), covariance).logpdf(X) + 3 * np.log(2 * np.pi)
    np.testing.assert_allclose(factors.log_likelihood(X), expected, rtol=1e-10)


def test_maps_are_posterior_means():
    rng = np.random.default_rng(2)
    L, C, psi = rng.normal(size=(5, 2)), np.array([[1.0, -0.5], [-0.5, 1.0]]), rng.uniform(0.3, 1, 5)
    expected = np.linalg.solve(L @ C @ L.T + np.diag(psi), L @ C)
    np.testing.assert_allclose(LinearFactors(L, C, psi).maps(), expected, rtol=1e-10)


def test_power_iteration_finds_the_exact_eigenvectors(blocks):
    X, psi = blocks[1], np.full(15, 0.4)
    exact, vectors = whitened_eigenvectors(X, psi, 3, X.T @ X / len(X))
    basis = None
    for _ in range(10):
        values, basis = whitened_eigenvectors(X, psi, 3, None, basis)
    np.testing.assert_allclose(values[:3], exact, rtol=1e-6)
    np.testing.assert_allclose(np.abs((basis[:, :3] * vectors).sum(0)), 1.0, rtol=1e-6)


def test_a_feature_that_is_explained_entirely_keeps_some_noise():
    z = np.random.default_rng(3).normal(size=(200, 1))
    found = analyse_factors(standardised(np.repeat(z, 4, axis=1)), 1)
    assert (found.uniqueness >= 0.005).all()
    assert np.isfinite(found.maps()).all()


def test_more_factors_than_there_are_stay_finite(blocks):
    found = analyse_factors(blocks[1], 12)
    assert np.isfinite(found.loadings).all()
    assert np.isfinite(found.maps()).all()


def test_parts_of_counts_are_found_without_a_sign():
    rng = np.random.default_rng(4)
    z = rng.gamma(0.5, size=(1500, 3))
    counts = rng.poisson(3 * z @ np.kron(np.eye(3), np.ones(4)) + 0.1)
    X = standardised(np.log1p(counts))
    found = find_parts(X, 3)
    assert (found.loadings >= 0).all()
    assert matched(X @ found.maps(), np.log1p(z)).min() > 0.85
    np.testing.assert_allclose(np.diag(found.correlation), 1.0)
    np.testing.assert_array_equal(find_parts(X, 3).loadings, found.loadings)
