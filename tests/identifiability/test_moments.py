from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sparsevae.identifiability.moments import FoldMoments


def test_all_folds_together_give_the_correlation_of_the_table(rng):
    X = rng.normal(size=(101, 6)) @ rng.normal(size=(6, 6)) + 50.0
    moments = FoldMoments(X, n_folds=4, random_state=0)
    np.testing.assert_allclose(moments.correlation((0, 1, 2, 3)), np.corrcoef(X.T), atol=1e-5)
    assert moments.n_samples((0, 1, 2, 3)) == 101


def test_folds_share_no_rows(rng):
    X = rng.normal(size=(80, 3))
    moments = FoldMoments(X, n_folds=4, random_state=0)
    assert [moments.n_samples((f,)) for f in range(4)] == [20] * 4
    order = np.random.default_rng(0).permutation(80)
    np.testing.assert_allclose(moments.correlation((1,)), np.corrcoef(X[order[20:40]].T), atol=1e-5)


def test_a_sparse_table_gives_the_same_as_a_dense_one(rng):
    X = rng.poisson(0.7, size=(200, 12)).astype(float)
    dense, thin = (FoldMoments(t, n_folds=2, random_state=3) for t in (X, sparse.csr_matrix(X)))
    for folds in ((0,), (1,), (0, 1)):
        np.testing.assert_allclose(dense.correlation(folds), thin.correlation(folds), atol=1e-5)


def test_units_do_not_matter(rng):
    X = rng.normal(size=(60, 4))
    scaled = FoldMoments(X * [1e-3, 1.0, 1e3, 1e9] + 7.0, n_folds=2, random_state=0)
    plain = FoldMoments(X, n_folds=2, random_state=0)
    np.testing.assert_allclose(scaled.correlation((0,)), plain.correlation((0,)), atol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_constant_column_correlates_with_nothing(rng, kind):
    X = rng.normal(size=(40, 4))
    X[:, 2] = 3.0
    correlation = FoldMoments(kind(X), n_folds=2, random_state=0).correlation((0, 1))
    np.testing.assert_allclose(correlation[2], [0, 0, 1, 0], atol=1e-6)


def test_a_column_that_is_constant_in_one_fold_is_no_trouble():
    X = np.zeros((40, 2))
    X[:, 0] = np.arange(40)
    order = np.random.default_rng(0).permutation(40)
    X[order[0], 1] = 1.0
    correlation = FoldMoments(X, n_folds=2, random_state=0).correlation((1,))
    np.testing.assert_allclose(correlation, np.eye(2), atol=1e-6)
