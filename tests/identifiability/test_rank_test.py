from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from sparsevae.identifiability import rank_test
from sparsevae.identifiability.rank_test import (
    candidate_pairs,
    contrast_correlation,
    degrees_of_freedom,
    instruments,
    likelihood_ratio,
)

# Two anchors each of three factors, with unequal loadings and signs, and three mixed features.
ANCHORS = [[0.9, 0, 0], [-0.5, 0, 0], [0, 0.8, 0], [0, 0.6, 0], [0, 0, 0.7], [0, 0, -0.9]]
LOADINGS = np.array([*ANCHORS, [0.5, 0.5, 0], [0, 0.4, 0.6], [0.6, 0, -0.3]])
FACTORS = np.array([[1.0, 0.4, 0.2], [0.4, 1.0, 0.3], [0.2, 0.3, 1.0]])


def population(loadings=LOADINGS, factors=FACTORS):
    correlation = loadings @ factors @ loadings.T
    np.fill_diagonal(correlation, 1.0)
    return correlation


def all_pairs(n):
    rows, columns = np.triu_indices(n, 1)
    return rows, columns


def brute_force(correlation, basis, i, j):
    """Smallest share over a fine grid of v, by ordinary regression on instruments without i and j."""
    weights = basis.copy()
    weights[[i, j]] = 0.0
    V = weights.T @ correlation @ weights
    r = correlation[i, j]
    low = max(abs(r), 1e-3)
    best = np.inf
    for v in np.sign(r) * np.exp(np.linspace(np.log(low), -np.log(low), 1001)):
        contrast = np.zeros(len(correlation))
        contrast[i], contrast[j] = 1.0, -v
        covariance = weights.T @ correlation @ contrast
        best = min(best, covariance @ np.linalg.solve(V, covariance) / (contrast @ correlation @ contrast))
    return best


def test_it_equals_a_regression_on_the_other_features(rng):
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 9)) + rng.normal(size=(300, 9))
    correlation = np.corrcoef(X.T)
    basis = rng.normal(size=(9, 4))
    rows, columns = all_pairs(9)
    closed = contrast_correlation(correlation, basis, rows, columns)
    brute = [brute_force(correlation, basis, i, j) for i, j in zip(rows, columns, strict=True)]
    np.testing.assert_allclose(closed, brute, atol=2e-5)


def test_anchors_of_one_factor_leave_nothing_to_explain_whatever_their_loadings():
    correlation = population()
    basis = np.linalg.eigh(correlation)[1][:, -4:]
    rows, columns = np.array([0, 2, 4]), np.array([1, 3, 5])
    np.testing.assert_allclose(contrast_correlation(correlation, basis, rows, columns), 0.0, atol=1e-9)


def test_every_other_pair_leaves_something():
    correlation = population()
    basis = np.linalg.eigh(correlation)[1][:, -4:]
    rows, columns = all_pairs(len(correlation))
    anchors = {(0, 1), (2, 3), (4, 5)}
    others = np.array([pair not in anchors for pair in zip(rows, columns, strict=True)])
    assert contrast_correlation(correlation, basis, rows, columns)[others].min() > 0.003


def test_a_feature_tied_to_the_other_alone_does_not_pass():
    """Factor 3 shows in two features only, one of them mixed: the contrast v = 0 must not hide that."""
    loadings = np.hstack([LOADINGS, np.zeros((9, 1))])
    loadings = np.vstack([loadings, [0, 0, 0, 0.8], [0.6, 0, 0, 0.6]])
    correlation = population(loadings, np.block([[FACTORS, np.zeros((3, 1))], [np.zeros((1, 3)), np.eye(1)]]))
    basis = np.linalg.eigh(correlation)[1][:, -3:]
    assert contrast_correlation(correlation, basis, np.array([9]), np.array([10]))[0] > 0.01


@given(st.lists(st.sampled_from([-1.0, 1.0]), min_size=9, max_size=9))
def test_signs_of_the_features_do_not_matter(signs):
    correlation = population()
    rng = np.random.default_rng(0)
    basis, flip = rng.normal(size=(9, 3)), np.array(signs)
    rows, columns = all_pairs(9)
    flipped = contrast_correlation(correlation * np.outer(flip, flip), basis * flip[:, None], rows, columns)
    np.testing.assert_allclose(flipped, contrast_correlation(correlation, basis, rows, columns), atol=1e-9)


def test_copies_of_a_column_have_no_contrast(rng):
    X = rng.normal(size=(200, 6))
    X[:, 1] = X[:, 0]
    correlation = np.corrcoef(X.T)
    basis = np.linalg.eigh(correlation)[1][:, -2:]
    assert contrast_correlation(correlation, basis, np.array([0]), np.array([1]))[0] == 0.0


def test_the_statistic_is_chi_squared_for_anchors_with_instruments_from_other_samples():
    rng = np.random.default_rng(1)
    noise = np.sqrt(1.0 - np.einsum("jk,kl,jl->j", LOADINGS, FACTORS, LOADINGS))
    n_samples, p_values = 300, []
    for _ in range(150):
        halves = []
        for _ in range(2):
            z = rng.standard_normal((n_samples, 3)) @ np.linalg.cholesky(FACTORS).T
            halves.append(np.corrcoef((z @ LOADINGS.T + noise * rng.standard_normal((n_samples, 9))).T))
        basis = np.linalg.eigh(halves[1])[1][:, -4:]
        share = contrast_correlation(halves[0], basis, np.array([2]), np.array([3]))
        p_values.append(chi2.sf(likelihood_ratio(share, n_samples, 4)[0], degrees_of_freedom(4)))
    assert kstest(p_values, "uniform").pvalue > 0.01


def test_candidates_hold_the_anchors_and_leave_out_the_unrelated():
    loadings = np.vstack([LOADINGS, np.zeros((4, 3))])
    correlation = population(loadings)
    found = set(zip(*candidate_pairs(correlation, np.linalg.eigh(correlation)[1][:, -4:], 2000), strict=True))
    assert {(0, 1), (2, 3), (4, 5)} <= found
    assert not {pair for pair in found if max(pair) >= 9}


def test_rows_of_the_candidates_rise():
    rows, columns = candidate_pairs(population(), np.linalg.eigh(population())[1][:, -4:], 2000)
    assert (np.diff(rows) >= 0).all()
    assert (rows < columns).all()


def test_instruments_are_as_many_as_rise_above_the_noise_and_one_more(rng):
    noise = np.corrcoef(rng.normal(size=(1000, 30)).T)
    assert instruments(noise, 1000).shape == (30, 2)
    X = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 30)) + rng.normal(size=(1000, 30))
    assert instruments(np.corrcoef(X.T), 1000).shape == (30, 5)


@pytest.mark.parametrize("n_features", [4, 5, 6])
def test_instruments_leave_features_over_to_compare(n_features, rng):
    correlation = np.corrcoef(rng.normal(size=(100, n_features)).T)
    assert 2 <= instruments(correlation, 100).shape[1] <= max(2, n_features - 3)


def test_iteration_finds_the_same_space_as_the_full_decomposition(rng, monkeypatch):
    X = rng.normal(size=(500, 5)) @ rng.normal(size=(5, 60)) + rng.normal(size=(500, 60))
    correlation = np.corrcoef(X.T)
    full = instruments(correlation, 500)[:, :5]
    monkeypatch.setattr(rank_test, "_DENSE", 10)
    iterated = instruments(correlation, 500)[:, :5]
    overlap = np.linalg.svd(full.T @ iterated, compute_uv=False)
    np.testing.assert_allclose(overlap, 1.0, atol=1e-6)
