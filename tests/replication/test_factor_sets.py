from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae import NMF
from sparsevae.metrics import spearman_mcc
from sparsevae.replication.factor_sets import dense_values, factor_set, standardise, varimax_set


def test_varimax_finds_simple_factors_of_half_of_the_rows_in_all_of_them():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((400, 2))
    X = 3.0 + z @ np.repeat(np.eye(2), 4, axis=0).T + 0.5 * rng.standard_normal((400, 8))
    half, everything = standardise(X[:200], X)
    assert np.allclose(half.mean(0), 0)
    assert np.allclose(half.std(0), 1)
    found = varimax_set(half, everything, 2, 0)
    assert found.codes.shape == (400, 2)
    assert spearman_mcc(found.codes, z) > 0.95
    assert sorted((found.shares > 0.5).sum(0)) == [4, 4]


def test_a_column_that_is_constant_in_the_half_explains_nothing():
    X = np.random.default_rng(0).standard_normal((60, 5))
    X[:30, 2] = 1.0
    found = varimax_set(*standardise(X[:30], X), 2, 0)
    assert np.isfinite(found.codes).all()
    assert found.shares[2].max() < 1e-6


def test_shares_of_a_linear_model_come_from_the_rows_of_its_fit():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(60, 2)) @ rng.gamma(1.0, size=(2, 6))
    rows = np.arange(30)
    model = NMF(2, alpha=0.01, max_iter=5000, random_state=0).fit(X[rows])
    found = factor_set(model, X, rows)
    expected = model.mask_**2 * found.codes[rows].var(0) / X[rows].var(0)[:, None]
    assert np.allclose(found.shares, np.minimum(expected, 1.0))
    stored = factor_set(model, sparse.csr_matrix(X), rows)
    assert np.allclose(stored.shares, found.shares, atol=1e-5)


def test_missing_values_of_pandas_become_nan():
    table = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.5, 2.0]})
    values = dense_values(table)
    assert values.dtype == np.float64
    assert np.isnan(values[1, 0])
    assert values[:, 1].tolist() == [0.5, 2.0]
