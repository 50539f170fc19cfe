"""Dense and sparse tables measure the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from sparsevae.summaries import column_moments, constant_columns, extreme_cell, row_totals

tables = arrays(
    np.float64,
    st.tuples(st.integers(2, 20), st.integers(1, 5)),
    elements=st.integers(-(10**6), 10**6).map(lambda value: value / 8),
)


@given(tables)
def test_moments_are_those_of_numpy_for_dense_and_sparse_tables(X):
    for table in (X, X.astype(np.float32), sparse.csr_array(X), sparse.csr_matrix(X.astype(np.float32))):
        mean, variance = column_moments(table)
        assert mean.dtype == variance.dtype == np.float64
        scale = np.abs(X).max() or 1.0
        np.testing.assert_allclose(mean / scale, X.mean(0) / scale, atol=1e-12)
        np.testing.assert_allclose(variance / scale**2, X.var(0) / scale**2, atol=1e-10)


@given(tables, st.integers(-30, 30))
def test_whether_a_column_is_constant_does_not_depend_on_its_unit(X, power):
    before = constant_columns(*column_moments(X))
    after = constant_columns(*column_moments(X * 2.0**power))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9, -3e-7])
def test_a_column_of_one_value_is_constant_however_it_rounds(value):
    X = np.full((1000, 1), value)
    for table in (X, X.astype(np.float32), sparse.csr_array(X)):
        assert constant_columns(*column_moments(table)).all()


def test_row_totals_of_small_integers_do_not_overflow():
    X = np.full((2, 1000), 100, dtype=np.int8)
    np.testing.assert_array_equal(row_totals(X), [1e5, 1e5])
    np.testing.assert_array_equal(row_totals(sparse.csr_array(X)), [1e5, 1e5])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_the_extreme_cell_is_found_beside_its_own_column(make):
    X = np.ones((6, 3)) * [1.0, 1e6, 1e-6]
    X[4, 2] = 1.0
    row, column, value, ratio = extreme_cell(make(X))
    assert (row, column, value) == (4, 2, 1.0)
    assert ratio == pytest.approx(1e6)
    assert extreme_cell(make(np.zeros((3, 2))))[3] == 0.0
    X[1] = np.nan
    assert extreme_cell(make(X))[:3] == (4, 2, 1.0)
