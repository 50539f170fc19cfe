from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae.annotations.missing import (
    check_columns_seen,
    empty_rows,
    has_missing,
    hide,
    reveal_missing,
    with_nan,
)
from sparsevae.exceptions import DataError
from sparsevae.validation import check_finite

X = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0], [7.0, 8.0, 9.0]])
SEEN = np.array([[True, False, True], [True, True, False], [True, True, True]])
EXPECTED = np.where(SEEN, X, np.nan)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("mask", [np.asarray, sparse.csr_array])
def test_hidden_cells_are_nan_and_the_table_stays_as_it_was(store, mask):
    table = store(X)
    found = hide(table, mask(SEEN))
    dense = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(dense, EXPECTED)
    assert type(found) is type(table)
    assert not has_missing(table)


def test_a_sparse_table_that_is_mostly_missing_becomes_dense():
    found = hide(sparse.csr_array(X), X > 7.0)
    assert isinstance(found, np.ndarray)
    assert np.isnan(found).sum() == 7


def test_every_sign_for_a_missing_value_becomes_nan():
    masked = np.ma.masked_array(X, ~SEEN)
    np.testing.assert_array_equal(with_nan(masked), EXPECTED)
    frame = pd.DataFrame({"a": [1, pd.NA, None], "b": [1.0, 2.0, np.nan]}, dtype=object)
    assert with_nan(frame).astype(float).isna().sum().tolist() == [2, 1]
    assert with_nan(X) is X
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    pd.testing.assert_frame_equal(with_nan(names, SEEN), names.where(SEEN))
    np.testing.assert_array_equal(with_nan(X.tolist(), SEEN), EXPECTED)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_empty_rows_and_columns_are_found(store):
    table = store(np.array([[np.nan, np.nan], [np.nan, 1.0]]))
    assert empty_rows(table).tolist() == [True, False]
    with pytest.raises(DataError, match=r"only missing ones in 'a'. Drop these columns"):
        check_columns_seen(table, ["a", "b"])
    assert not empty_rows(store(X)).any()


def test_a_masked_cell_is_a_cell_without_a_value():
    X = np.arange(6.0).reshape(2, 3)
    hidden = reveal_missing(np.ma.array(X, mask=X == 4))
    np.testing.assert_array_equal(hidden, np.where(X == 4, np.nan, X))
    np.testing.assert_array_equal(reveal_missing(np.ma.array(X.astype(int), mask=X == 4)), hidden)
    assert type(reveal_missing(np.ma.array(X))) is np.ndarray
    with pytest.raises(DataError, match="NaN in 1 cells, columns 'b', the first in row 2 of 'b'"):
        check_finite(hidden, ["a", "b", "c"])


def test_the_imaginary_part_of_masked_cells_is_not_dropped():
    with pytest.raises(DataError, match="got complex ones"):
        reveal_missing(np.ma.array([[1 + 2j, 1.0]], mask=[[True, False]]))


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[D]"])
def test_dates_and_time_spans_are_no_numbers(kind):
    with pytest.raises(DataError, match="dates or time spans"):
        reveal_missing(np.ones((2, 3), dtype=int).astype(kind))
