from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sparsevae.annotations.levels import check_levels, count_levels, find_levels, known_cells
from sparsevae.exceptions import DataError

X = np.array([[1.0, 0.5, 7.2], [5.0, 2.0, 1.1], [np.nan, 0.5, 0.3], [2.0, 1.0, 9.9]])
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_levels_are_first_step_and_number(store):
    levels = find_levels(store(X), np.array([0, 1]), NAMES)
    np.testing.assert_array_equal(levels[:2], [[1.0, 1.0, 5.0], [0.5, 0.5, 4.0]])
    assert np.isnan(levels[2]).all()
    check_levels(store(X), levels, NAMES)
    np.testing.assert_array_equal(count_levels(store(X), levels, 0), [1, 1, 0, 0, 1])
    weight = np.array([1.0, 2.0, 5.0, 0.5])
    np.testing.assert_array_equal(count_levels(store(X), levels, 0, weight), [1, 0.5, 0, 0, 2])


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_cells_with_other_values_than_the_levels_are_found(store):
    levels = find_levels(store(X), np.array([0, 1]), NAMES)
    other = X.copy()
    other[0], other[1, 1] = [6.0, 0.75, -3.0], 2.5
    expected = np.ones_like(X, dtype=bool)  # what is missing, and a column without levels, is not wrong
    expected[0, :2], expected[1, 1] = False, False
    np.testing.assert_array_equal(known_cells(store(other), levels), expected)


def test_a_constant_column_has_two_levels():
    np.testing.assert_array_equal(find_levels(np.full((3, 1), 4.0), np.array([0]), ["a"]), [[4.0, 1.0, 2.0]])


def test_real_values_and_many_levels_are_refused():
    with pytest.raises(DataError, match=r"in 'c'; got 4 different values from 0.3 to 9.9. Use likelihood="):
        find_levels(X, np.array([2]), NAMES)
    with pytest.raises(DataError, match="got 51 different values"):
        find_levels(np.arange(51.0)[:, None], np.array([0]), ["a"])


@pytest.mark.parametrize("value", [0.0, 6.0, 1.5])
def test_other_values_than_the_levels_are_refused(value):
    levels = find_levels(X, np.array([0]), NAMES)
    other = X.copy()
    other[1, 0] = value
    with pytest.raises(DataError, match=f"from 1 to 5 in steps of 1, in 'a'; got {value:g}"):
        check_levels(other, levels, NAMES)
