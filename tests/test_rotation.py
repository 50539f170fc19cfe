from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment

from sparsevae.principal import principal_loadings
from sparsevae.rotation import (
    _gradient_projection,
    _of_loadings,
    _of_moments,
    _sparsity_loss,
    oblique_rotation,
    promax,
    varimax,
)


def _sparse_loadings(rng, n_features, n_factors, n_anchors=4):
    """Anchors first, then features with two or three factors."""
    loadings = np.zeros((n_features, n_factors))
    for j in range(n_features):
        if j < n_anchors * n_factors:
            support = [j // n_anchors]
        else:
            support = rng.choice(n_factors, rng.integers(2, min(3, n_factors) + 1), replace=False)
        loadings[j, support] = rng.uniform(0.5, 1.0, len(support)) * rng.choice([-1, 1], len(support))
    return loadings


def _factor_correlation(n_factors, rho):
    return np.full((n_factors, n_factors), rho) + (1 - rho) * np.eye(n_factors)


def _unrotated(loadings, correlation):
    """Loadings of the same model with uncorrelated factors, in arbitrary axes."""
    signal = loadings @ correlation @ loadings.T
    return principal_loadings(signal, loadings.shape[1])


def _matched(rotated, truth):
    """Columns of `rotated` in the order and with the signs of `truth`."""
    cosine = rotated.T @ truth / np.outer(np.linalg.norm(rotated, axis=0), np.linalg.norm(truth, axis=0))
    order = linear_sum_assignment(-np.abs(cosine).T)[1]
    return order, np.sign(cosine[order, np.arange(len(order))])


@pytest.mark.parametrize("n_factors, rho", [(3, 0.0), (5, 0.3), (7, 0.6)])
def test_rotation_recovers_sparse_loadings_and_the_factor_correlation(rng, n_factors, rho):
    truth = _sparse_loadings(rng, 8 * n_factors, n_factors)
    correlation = _factor_correlation(n_factors, rho)

    rotation = oblique_rotation(_unrotated(truth, correlation), random_state=0)

    order, sign = _matched(rotation.loadings, truth)
    np.testing.assert_allclose(rotation.loadings[:, order] * sign, truth, atol=0.06)
    found = rotation.factor_correlation[np.ix_(order, order)] * np.outer(sign, sign)
    np.testing.assert_allclose(found, correlation, atol=0.06)


def test_rotation_recovers_twenty_five_factors(rng):
    truth = _sparse_loadings(rng, 500, 25)
    rotation = oblique_rotation(_unrotated(truth, _factor_correlation(25, 0.5)), n_starts=4, random_state=0)
    order, _ = _matched(rotation.loadings, truth)
    assert np.array_equal(np.abs(rotation.loadings[:, order]) > 0.25, truth != 0)


@given(st.integers(0, 2**31), st.integers(1, 4), st.sampled_from([0.5, 0.8, 1.0]))
@settings(max_examples=15)
def test_rotation_keeps_the_model(seed, n_factors, p):
    loadings = np.random.default_rng(seed).normal(size=(12, n_factors))
    rotation = oblique_rotation(loadings, p=p, n_starts=3, random_state=0)
    implied = rotation.loadings @ rotation.factor_correlation @ rotation.loadings.T
    np.testing.assert_allclose(implied, loadings @ loadings.T, atol=1e-8)
    np.testing.assert_allclose(np.diag(rotation.factor_correlation), 1.0, atol=1e-12)


@given(st.integers(0, 2**31))
@settings(max_examples=15)
def test_rotation_is_never_worse_than_where_it_began(seed):
    loadings = np.random.default_rng(seed).normal(size=(15, 3))
    before, _ = _of_loadings(loadings, 0.5)(np.eye(3)[None], 0.01)
    few, many = (oblique_rotation(loadings, epsilon=0.01, n_starts=n, random_state=0).loss for n in (1, 8))
    assert many <= few <= before[0]


def test_loss_is_what_the_docstring_says(rng):
    loadings = rng.normal(size=(10, 3))
    rotation = oblique_rotation(loadings, p=0.7, epsilon=0.02, n_starts=2, random_state=0)
    assert rotation.loss == pytest.approx(((rotation.loadings**2 + 0.02) ** 0.35).sum())


def _objectives(rng, p):
    """Of loadings and of slopes, each with the textbook's loss of one basis."""
    A, slopes = rng.normal(size=(6, 2)), rng.normal(size=(6, 5, 2))
    M = np.einsum("jil,jim->jlm", slopes, slopes) / 5
    yield _of_loadings(A, p), lambda B: np.square(A @ B.T)
    yield _of_moments(M, p), lambda B: np.square(slopes @ B.T).mean(1)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.3])
def test_losses_are_the_textbooks_and_their_slopes_the_derivatives(rng, p):
    inverse = rng.normal(size=(3, 2, 2))
    for objective, squares in _objectives(rng, p):
        loss, slope = objective(inverse, 0.01)
        for B, value in zip(inverse, loss, strict=True):
            assert value == pytest.approx(((squares(B) + 0.01) ** (p / 2)).sum())
        for index in np.ndindex(inverse.shape):
            shift = np.zeros_like(inverse)
            shift[index] = 1e-6
            difference = objective(inverse + shift, 0.01)[0] - objective(inverse - shift, 0.01)[0]
            assert slope[index] == pytest.approx(difference.sum() / 2e-6, rel=1e-5, abs=1e-7)


def test_starts_side_by_side_arrive_where_each_arrives_alone(rng):
    A = _unrotated(_sparse_loadings(rng, 30, 3), _factor_correlation(3, 0.3))
    starts = np.linalg.qr(rng.normal(size=(4, 3, 3)))[0]
    objective, tolerance = _of_loadings(A, 0.5), 1e-5 * A.size
    together = _gradient_projection(objective, starts, 0.01, tolerance)
    for i in range(4):
        (alone,) = _gradient_projection(objective, starts[i : i + 1], 0.01, tolerance)
        np.testing.assert_allclose(together[i], alone, atol=1e-8)


def test_rotation_arrives_at_a_stationary_point(rng):
    A = _unrotated(_sparse_loadings(rng, 30, 3), _factor_correlation(3, 0.3))
    best = oblique_rotation(A, random_state=0)
    T = np.linalg.inv(np.linalg.lstsq(A, best.loadings, rcond=None)[0]).T
    for _ in range(50):
        moved = T + 1e-3 * rng.normal(size=T.shape)
        moved /= np.linalg.norm(moved, axis=0)
        loss, _ = _of_loadings(A, 0.5)(np.linalg.inv(moved)[None], 1e-3)
        assert loss[0] >= best.loss - 1e-4


def test_order_and_sign_are_canonical_and_repeat_with_the_seed(rng):
    A = _unrotated(_sparse_loadings(rng, 40, 4), _factor_correlation(4, 0.4))
    first, second = (oblique_rotation(A, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.loadings, second.loadings)
    sums = np.square(first.loadings).sum(0)
    assert (np.diff(sums) <= 0).all()
    largest = first.loadings[np.abs(first.loadings).argmax(0), np.arange(4)]
    assert (largest > 0).all()


def test_a_sharp_loss_is_found_through_smooth_ones(rng):
    truth = _sparse_loadings(rng, 56, 7)
    correlation = _factor_correlation(7, 0.6)
    rotation = oblique_rotation(_unrotated(truth, correlation), epsilon=1e-5, random_state=0)
    order, sign = _matched(rotation.loadings, truth)
    np.testing.assert_allclose(rotation.loadings[:, order] * sign, truth, atol=0.01)


def test_a_squared_loading_that_rounds_below_zero_counts_as_zero():
    loss, weight = _sparsity_loss(np.array([[[-1e-9, 0.0, 0.25]]]), 0.5, 1e-12)
    np.testing.assert_allclose(loss, 2.0 * 1e-3 + np.sqrt(0.5))
    assert np.isfinite(weight).all()


def test_varimax_is_an_orthogonal_rotation_that_lowers_its_criterion():
    A = np.random.default_rng(0).normal(size=(30, 4))
    L = varimax(A)
    np.testing.assert_allclose(L @ L.T, A @ A.T, atol=1e-8)
    assert np.square(L).var(0).sum() > np.square(A).var(0).sum()


def test_varimax_and_promax_undo_a_rotation_of_simple_loadings():
    simple = np.kron(np.eye(3), np.ones((4, 1)))
    turned = simple @ np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    loadings, correlation = promax(varimax(turned))
    np.testing.assert_allclose(np.sort(np.abs(loadings).max(1)), 1.0, atol=1e-6)
    assert (np.sort(np.abs(loadings), axis=1)[:, :-1] < 1e-6).all()
    np.testing.assert_allclose(correlation, np.eye(3), atol=1e-6)


def test_promax_keeps_what_is_explained():
    A = varimax(np.random.default_rng(2).normal(size=(20, 3)))
    loadings, correlation = promax(A)
    np.testing.assert_allclose(loadings @ correlation @ loadings.T, A @ A.T, atol=1e-8)
    np.testing.assert_allclose(np.diag(correlation), 1.0)


def test_promax_of_empty_loadings_turns_nothing():
    loadings, correlation = promax(np.zeros((6, 2)))
    np.testing.assert_array_equal(loadings, 0.0)
    np.testing.assert_array_equal(correlation, np.eye(2))
