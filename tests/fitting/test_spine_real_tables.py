"""The linear spine of tables with holes, weights, groups and answers in levels."""

from __future__ import annotations

import numpy as np
import pytest

from sparsevae import SparseVAE
from sparsevae.factor_analysis import LinearFactors, analyse_factors
from sparsevae.fitting.spine import find_spine, sparse_loadings

LOADINGS = np.kron(np.eye(2), np.full((4, 1), 0.9))


def make_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) @ LOADINGS.T + 0.5 * rng.standard_normal((n, 8))


def with_holes(X, fraction=0.2):
    return np.where(np.random.default_rng(1).random(X.shape) < fraction, np.nan, X)


def spine_of(X, likelihood="gaussian", **annotations):
    model = SparseVAE(4, likelihood=likelihood, random_state=0)
    return find_spine(*model.prepare_fit(X, **annotations))


def in_blocks(spine):
    """Whether the first four features are on one factor, and the others on another."""
    used = spine.factors.loadings != 0
    return used.shape[1] == 2 and bool((used == used[[0, 0, 0, 0, 7, 7, 7, 7]]).all() and used.sum() == 8)


@pytest.mark.parametrize(
    "X, likelihood",
    [
        (make_table(), "gaussian"),
        (with_holes(make_table()), "gaussian"),
        (np.digitize(make_table(), [-1.0, -0.3, 0.3, 1.0]).astype(float), "ordinal"),
        (with_holes((make_table() > 0).astype(float), 0.1), "bernoulli"),
    ],
    ids=["whole", "holes", "ordinal", "yes or no, with holes"],
)
def test_factors_of_real_tables_are_found(X, likelihood):
    assert in_blocks(spine_of(X, likelihood))


def test_whole_weights_are_copies():
    X, weight = make_table(200), np.arange(200) % 3
    model = SparseVAE(2, validation_fraction=0.0, random_state=0)
    weighted = find_spine(*model.prepare_fit(X, sample_weight=weight))
    copied = find_spine(*model.prepare_fit(np.repeat(X, weight, 0)))
    np.testing.assert_allclose(
        np.abs(weighted.factors.loadings).max(1), np.abs(copied.factors.loadings).max(1), atol=1e-3
    )


@pytest.mark.parametrize(
    "X, likelihood, annotations",
    [
        (make_table(), "gaussian", {"groups": np.arange(300) % 2}),
        (np.digitize(make_table(), [-0.5, 0.5]).astype(float), "categorical", {}),
        (with_holes(np.random.default_rng(0).poisson(np.exp(make_table() + 2.0)) * 1.0), "poisson", {}),
    ],
    ids=["groups", "categories", "counts with holes"],
)
def test_tables_without_a_linear_analysis_go_to_networks(X, likelihood, annotations):
    assert spine_of(X, likelihood, **annotations) is None


def test_density_of_rows_with_holes_is_that_of_the_features_seen():
    factors = LinearFactors(LOADINGS, np.array([[1.0, 0.3], [0.3, 1.0]]), np.linspace(0.3, 0.6, 8))
    X = make_table(5)
    X[:, [1, 6]] = np.nan
    seen = [0, 2, 3, 4, 5, 7]
    part = LinearFactors(LOADINGS[seen], factors.correlation, factors.uniqueness[seen])
    np.testing.assert_allclose(factors.log_likelihood(X), part.log_likelihood(X[:, seen]))


def test_holes_move_the_loadings_little():
    X = make_table(2000)
    X = (X - X.mean(0)) / X.std(0)
    whole, holed = (np.abs(analyse_factors(table, 2).loadings).max(1) for table in (X, with_holes(X)))
    np.testing.assert_allclose(whole, holed, atol=0.06)


def test_features_with_fewer_values_need_stronger_loadings():
    factors = LinearFactors(np.full((4, 1), 0.2), np.eye(1), np.full(4, 0.9))
    kept = sparse_loadings(factors, np.array([1000.0, 1000.0, 1000.0, 20.0]), 0.0).loadings[:, 0] != 0
    assert kept.tolist() == [True, True, True, False]
