from __future__ import annotations

import numpy as np
import pytest

from sparsevae.principal import _leading_eigenvalues, parallel_analysis, principal_loadings


def _standardised(X):
    return (X - X.mean(0)) / X.std(0)


def test_principal_loadings_rebuild_a_matrix_of_that_rank(rng):
    A = rng.normal(size=(8, 3))
    loadings = principal_loadings(A @ A.T, 3)
    np.testing.assert_allclose(loadings @ loadings.T, A @ A.T, atol=1e-10)
    assert (np.diff(np.square(loadings).sum(0)) <= 0).all()


def test_principal_loadings_of_uncorrelated_features_are_unit_vectors():
    np.testing.assert_allclose(
        principal_loadings(np.diag([1.0, 3.0, 2.0]), 2), [[0, 0], [3**0.5, 0], [0, 2**0.5]]
    )


@pytest.mark.parametrize("n_factors", [0, 4])
def test_principal_loadings_refuse_an_impossible_number_of_factors(n_factors):
    with pytest.raises(ValueError, match=f"between 1 and the number of features, 3; got {n_factors}"):
        principal_loadings(np.eye(3), n_factors)


@pytest.mark.parametrize("n_factors", [1, 3, 6])
def test_parallel_analysis_counts_the_factors(rng, n_factors):
    loadings = np.kron(np.eye(n_factors), rng.uniform(0.5, 1.0, size=(8, 1)))
    factors = rng.normal(size=(800, n_factors)) + 0.5 * rng.normal(size=(800, 1))  # correlated at 0.2
    signal = factors @ loadings.T
    X = _standardised(signal + 0.5 * signal.std(0) * rng.normal(size=signal.shape))
    assert parallel_analysis(X, random_state=0) == n_factors


def test_parallel_analysis_finds_next_to_nothing_in_noise(rng):
    assert parallel_analysis(_standardised(rng.normal(size=(300, 20))), random_state=0) <= 1


def test_parallel_analysis_counts_in_tables_wider_than_long(rng):
    signal = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 300))
    X = _standardised(signal + rng.normal(size=signal.shape))
    assert parallel_analysis(X, random_state=0) == 2


def test_parallel_analysis_repeats_with_the_seed_and_stops_at_max_factors(rng):
    X = _standardised(rng.normal(size=(200, 4)) @ rng.normal(size=(4, 12)) + rng.normal(size=(200, 12)))
    assert parallel_analysis(X, random_state=1) == parallel_analysis(X, random_state=1)
    assert parallel_analysis(X, random_state=1, max_factors=2) == 2


def test_parallel_analysis_of_a_long_table_takes_a_sample_of_rows(rng):
    X = _standardised(rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 10)) + rng.normal(size=(3000, 10)))
    assert parallel_analysis(X, random_state=0, max_samples=500) == 2


def test_parallel_analysis_bears_constant_columns(rng):
    X = _standardised(rng.normal(size=(200, 1)) + 0.5 * rng.normal(size=(200, 8)))
    assert parallel_analysis(np.hstack([X, np.zeros((200, 3))]), random_state=0) == 1


def test_power_iteration_agrees_with_the_exact_eigenvalues_of_factors(rng):
    columns = rng.normal(size=(620, 3)) @ rng.normal(size=(3, 700)) + rng.normal(size=(620, 700))
    exact = np.linalg.eigvalsh(columns @ columns.T / 700)[::-1][:3]
    found = _leading_eigenvalues(columns, 10, np.random.RandomState(0))
    np.testing.assert_allclose(found[:3], exact, rtol=1e-6)
    assert (np.diff(found) <= 0).all()
